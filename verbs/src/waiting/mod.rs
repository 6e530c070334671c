//! Futures that wait for something of a NIC, and make progress meanwhile.
//!
//! Each future in this folder joins a [`Look`](crate::progress::Look) with the state of one wait,
//! and is told by the progress engine what was found. It tells the engine when it is dropped, so
//! that another task leads.

mod block_on;
mod state;
mod until;
mod wait_for;
mod with_progress;

pub(crate) use block_on::block_on;
pub(crate) use state::Waiting;
pub use until::{Until, UntilHeld};
pub use wait_for::WaitFor;
pub(crate) use with_progress::with_progress;
