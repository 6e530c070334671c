//! The processors that a thread may run on, and how the thread is scheduled.

use rustix::thread::{CpuSet, sched_setaffinity};

/// Lets this thread run on any processor, as an ordinary thread. Its parent may poll on a processor
/// of its own, by a real-time policy, and is not to be disturbed. Where the system refuses, the
/// thread keeps what it inherited.
pub(crate) fn run_anywhere() {
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
    let _ = sched_setaffinity(None, &all);
    // The priority of every ordinary thread.
    let priority = 0_i32;
    // `libc`: no crate wraps this call.
    // SAFETY: the kernel reads one live number, and changes only how this thread is scheduled.
    unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_OTHER, &raw const priority)
    };
}
