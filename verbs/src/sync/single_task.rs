//! A task of which there is one at most, for work that comes and goes.

use super::{AtomicBool, Ordering};

/// Whether a task runs that others begin when they have work for it, and that ends by itself when
/// there is none.
///
/// Whoever has work enters it first, and asks then whether to begin the task. The task looks for
/// work after it has said that it ends. Both in sequential consistency: so either the task sees the
/// work, or whoever entered it begins another one.
#[derive(Debug)]
pub(crate) struct SingleTask(AtomicBool);

impl SingleTask {
    pub fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Returns whether the caller, who has entered work, is to begin the task.
    #[inline]
    pub fn is_to_begin(&self) -> bool {
        !self.0.load(Ordering::SeqCst) && !self.0.swap(true, Ordering::SeqCst)
    }

    /// Returns whether the task, which asks this, is to end: there is no work, and no other task
    /// has begun since that was found.
    pub fn is_to_end(&self, has_work: impl Fn() -> bool) -> bool {
        if has_work() {
            return false;
        }
        self.0.store(false, Ordering::SeqCst);
        !has_work() || self.0.swap(true, Ordering::SeqCst)
    }
}
