//! The processor time of this process.

use std::time::Duration;

use anyhow::Context;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// The time that this process has spent on processors.
pub fn processor_time() -> anyhow::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).context("asking for the processor time")?;
    let duration = |time: TimeVal| {
        Duration::new(time.tv_sec() as u64, 0) + Duration::from_micros(time.tv_usec() as u64)
    };
    Ok(duration(usage.user_time()) + duration(usage.system_time()))
}
