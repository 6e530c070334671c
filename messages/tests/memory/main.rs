//! How much memory messages take, of floods, of peers that have gone, and of streams. Of these tests
//! one runs after the other, since the memory of the whole process is counted.

#[allow(dead_code, reason = "the other tests use more")]
#[path = "../common/ends.rs"]
mod ends;
mod floods;
mod peers;
mod streams;

use std::sync::{Mutex, MutexGuard, PoisonError};

use doorbell_kit::Allocated;

#[global_allocator]
static ALLOCATED: Allocated = Allocated::nothing();

/// Waits until no other test runs, and keeps others waiting.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
