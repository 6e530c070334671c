//! The processors of the two ends.

use anyhow::{Context, bail};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::args::End;

/// The processors of an end whose runtime has a number of threads: the client has the first that this
/// process may use, the server those that follow. Both have as many as threads, or half of them all
/// where there are fewer.
pub fn of(end: End, threads: usize) -> anyhow::Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0)).context("asking for the processors")?;
    let allowed: Vec<_> =
        (0..CpuSet::count()).filter(|&processor| set.is_set(processor) == Ok(true)).collect();
    if allowed.len() < 2 {
        bail!(
            "the two ends take a processor each, and this process may use one: allow it more \
             (`taskset`, the container's cpuset)"
        );
    }
    let each = threads.min(allowed.len() / 2);
    let first = if end == End::Client { 0 } else { each };
    Ok(allowed[first..first + each].to_vec())
}

/// Binds this thread, and those that it will start, to processors.
pub fn bind(processors: &[usize]) -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    for &processor in processors {
        set.set(processor).with_context(|| format!("processor {processor}"))?;
    }
    sched_setaffinity(Pid::from_raw(0), &set)
        .with_context(|| format!("binding to the processors {processors:?}"))
}
