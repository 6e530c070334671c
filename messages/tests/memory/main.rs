//! How much memory messages take: of floods, of peers that have gone, of streams, and of peers that
//! speak as no endpoint would. Of these tests one runs after the other, since the memory of the
//! whole process is counted.

mod counted;
#[allow(dead_code, reason = "the other program uses more")]
#[path = "../seam/ends.rs"]
mod ends;
mod hostile;
#[allow(dead_code, reason = "the other program uses more")]
#[path = "../seam/wire.rs"]
mod wire;

use doorbell_kit::Allocated;
use tokio::sync::{Mutex, MutexGuard};

/// Counts the memory of the process.
#[global_allocator]
static ALLOCATED: Allocated = Allocated::nothing();

/// Held by the test that runs.
static ALONE: Mutex<()> = Mutex::const_new(());

/// Waits until no other test runs, and keeps others waiting.
fn alone() -> MutexGuard<'static, ()> {
    ALONE.blocking_lock()
}
