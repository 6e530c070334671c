//! What this process has used: processor time and memory.

use anyhow::Context;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::unistd::{SysconfVar, sysconf};
use serde::{Deserialize, Serialize};

/// What a process has used so far.
#[derive(Clone, Copy, Serialize, Deserialize, Debug)]
pub struct Usage {
    /// Processor time in microseconds, the process's own and the kernel's for it.
    pub processor_us: i64,
    /// Resident memory in bytes.
    pub resident: u64,
}

impl Usage {
    pub fn of_this_process() -> anyhow::Result<Self> {
        let used = getrusage(UsageWho::RUSAGE_SELF).context("asking for the processor time")?;
        let processor_us =
            used.user_time().num_microseconds() + used.system_time().num_microseconds();
        Ok(Self { processor_us, resident: resident()? })
    }

    /// The processor time since an earlier usage of the same process, in microseconds.
    pub fn since(&self, before: &Self) -> f64 {
        (self.processor_us - before.processor_us) as f64
    }
}

fn resident() -> anyhow::Result<u64> {
    let path = "/proc/self/statm";
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {path}"))?;
    let pages: Option<u64> = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().and_then(|size| size.try_into().ok());
    let resident = pages.zip(page).map(|(pages, page): (u64, u64)| pages * page);
    resident.with_context(|| format!("{path} says `{}`, without resident pages", text.trim()))
}
