//! Tests that have the whole process to themselves: in a process of its own each if memory is
//! counted, or one after the other if metrics and spans are kept.

mod footprint;
mod metrics;
#[allow(dead_code, reason = "the other program uses more")]
#[path = "../seam/mixed.rs"]
mod mixed;
mod owed;
mod soak;
mod traces;
#[path = "../seam/virtual_time.rs"]
mod virtual_time;

use doorbell_kit::Allocated;
use tokio::sync::Mutex;

/// Counts the memory of the process.
#[global_allocator]
static ALLOCATED: Allocated = Allocated::nothing();

/// Held by the test that runs.
static ALONE: Mutex<()> = Mutex::const_new(());
