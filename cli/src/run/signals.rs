//! The signals that a launcher is sent, and from where they come.

use std::fs;
use std::io;
use std::time::Duration;

use nix::libc;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithRawSiginfo;

/// Signals that have come, with what the system says of them.
pub type Signals = SignalsInfo<WithRawSiginfo>;

/// How long processes that are told to end may take before they are killed.
pub const GRACE: Duration = Duration::from_secs(5);

/// The signals that a launcher passes on to the processes of its job.
const PASSED_ON: [i32; 6] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2];

/// Handles the signals that are passed on from now on, and `more`. A signal that whoever started
/// this process had it ignore, as `nohup` does with SIGHUP, stays ignored.
pub fn handled(more: &[i32]) -> io::Result<Signals> {
    let ignored = ignored();
    let is_heard = |signal: &&i32| ignored & (1 << (**signal - 1)) == 0;
    Signals::new(PASSED_ON.iter().filter(is_heard).chain(more))
}

/// Whether a signal comes from the terminal, which sends it to all processes of the group in its
/// foreground: to those of the job as well as to the launcher.
pub fn is_of_terminal(info: &libc::siginfo_t) -> bool {
    info.si_code == libc::SI_KERNEL
}

/// Whether a signal ends the job.
pub fn ends_job(signal: i32) -> bool {
    PASSED_ON.contains(&signal) && !matches!(signal, SIGUSR1 | SIGUSR2)
}

/// The signals that this process ignores, a bit for each. None where the system does not tell.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
