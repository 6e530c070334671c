//! The waker of the task that reads a completion queue.

use crate::sync::wakers::WakerCell;

/// The waker of the task that reads a completion queue, if the task sleeps.
pub(crate) type ReaderWaker = WakerCell;
