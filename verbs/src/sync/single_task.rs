//! A task of which there is one at most, for work that comes and goes.

use super::{AtomicBool, Ordering, fence};

/// Whether a task runs that others begin when they have work for it, and that ends by itself when
/// there is none.
///
/// Whoever has work enters it first, and asks then whether to begin the task. The task looks for
/// work after it has said that it ends. A fence stands between the two steps of either side: so
/// either the task sees the work, or whoever entered it begins another one.
#[derive(Debug)]
pub(crate) struct SingleTask(AtomicBool);

impl SingleTask {
    pub fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Returns whether the caller, who has entered work, is to begin the task.
    #[inline]
    pub fn is_to_begin(&self) -> bool {
        fence(Ordering::SeqCst);
        !self.0.load(Ordering::Relaxed) && !self.0.swap(true, Ordering::AcqRel)
    }

    /// Returns whether the task, which asks this, is to end: there is no work, and no other task
    /// has begun since that was found.
    pub fn is_to_end(&self, has_work: impl Fn() -> bool) -> bool {
        if has_work() {
            return false;
        }
        self.0.store(false, Ordering::Release);
        fence(Ordering::SeqCst);
        !has_work() || self.0.swap(true, Ordering::AcqRel)
    }
}
