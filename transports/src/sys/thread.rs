//! Where a thread runs.

use std::mem::size_of;

/// Lets this thread run on any processor, and as ordinary threads do: it was started by one that
/// may have a processor for itself, which it is not to disturb. Where the system does not allow
/// that, it stays as it is.
pub(crate) fn run_anywhere() {
    // SAFETY: zero is a value for both, and a set of all processors is one; the kernel reads live
    // memory of the size that it is told, and changes nothing but how this thread is scheduled.
    unsafe {
        let mut all: libc::cpu_set_t = std::mem::zeroed();
        (0..libc::CPU_SETSIZE as usize).for_each(|cpu| libc::CPU_SET(cpu, &mut all));
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &all);
        let ordinary: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, libc::SCHED_OTHER, &ordinary);
    }
}
