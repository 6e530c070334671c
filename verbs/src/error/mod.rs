//! The errors of this crate. Each says what was tried, what was found, and where possible what to
//! do.
//!
//! This folder knows the state of a connection, which many errors name, and nothing else.

mod connect;
mod failed;
mod map;
mod open;

use doorbell_core::nic::{PostError, ReceiveRequest, TableFull};
use thiserror::Error;

pub(crate) use connect::Target;
pub use connect::{ConnectError, ListenRefused};
pub use failed::{Failed, FailedWhy};
pub use map::MapError;
pub use open::NicError;

/// The error of a receive that was not posted.
#[derive(Debug, Error)]
#[error("{why}")]
pub struct PostReceiveError {
    /// The reason why the receive was refused.
    pub why: PostError,
    /// The receive, with its buffer.
    pub request: Box<ReceiveRequest>,
}

/// The error of registering memory, or of revoking a registration.
#[derive(Debug, Error)]
pub enum RegisterError {
    /// The NIC's table of registrations is full.
    #[error(transparent)]
    Full(#[from] TableFull),
    /// The registration was revoked before, through another handle.
    #[error("this registration was revoked already, by another handle to it")]
    Revoked,
}
