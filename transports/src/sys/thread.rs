//! Where a thread runs.

use std::mem::size_of;

/// Lets this thread run on any processor, and as ordinary threads do: it was started by one that
/// may have a processor for itself, which it is not to disturb. Where the system does not allow
/// that, it stays as it is.
pub(crate) fn run_anywhere() {
    // SAFETY: zero is a value for a set of processors: none of them.
    let mut all: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for cpu in 0..libc::CPU_SETSIZE as usize {
        // SAFETY: the set has a place for each processor below that number.
        unsafe { libc::CPU_SET(cpu, &mut all) };
    }
    // SAFETY: the kernel reads live memory of the size that it is told, and changes nothing but
    // where this thread runs.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &all) };
    // SAFETY: zero is a value for it, the only one of an ordinary thread.
    let ordinary: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel reads live memory, and changes nothing but how this thread is scheduled.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &ordinary) };
}
