//! The processors that this process may use.

use anyhow::{Context, bail};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Of those that this thread may use, the one at a place in their order.
pub fn allowed(place: usize) -> anyhow::Result<usize> {
    let set = sched_getaffinity(Pid::from_raw(0)).context("asking for the processors")?;
    let mut allowed = (0..CpuSet::count()).filter(|&processor| set.is_set(processor) == Ok(true));
    match allowed.nth(place) {
        Some(processor) => Ok(processor),
        None => bail!(
            "two ends on one machine take {} processors, one each, and this process may use \
             {place}: allow it more (`taskset`, the container's cpuset)",
            place + 1
        ),
    }
}

/// Binds this thread, and those that it will start, to a processor.
pub fn bind(processor: usize) -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    set.set(processor)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .with_context(|| format!("binding to processor {processor}"))
}
