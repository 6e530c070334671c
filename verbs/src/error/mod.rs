//! The errors of this crate. Each says what was tried, what was found, and where possible what to
//! do.
//!
//! [`OpenError`], [`ConnectError`], [`SendError`] and [`CloseError`] are those of endpoints of all
//! floors above, too. This folder knows names and the state of a connection, which many errors
//! tell, and nothing else.

mod close;
mod connect;
mod failed;
mod gone;
mod listen;
mod map;
mod open;
mod register;
mod send;
mod unwelcome;

use doorbell_core::nic::{PostError, ReceiveRequest};
use thiserror::Error;

pub use close::{CloseError, GivenUp, WhyGivenUp};
pub use connect::ConnectError;
pub(crate) use connect::Target;
pub use failed::{Failed, FailedWhy};
pub use gone::WhyGone;
pub use listen::{ListenRefused, ListenerEnded};
pub use map::MapError;
pub use open::OpenError;
pub use register::RegisterError;
pub use send::{Credits, SendError, Unsent};
pub use unwelcome::Unwelcome;

/// The error of a receive that was not posted.
#[derive(Debug, Error)]
#[error("{why}")]
pub struct PostReceiveError {
    /// The reason why the receive was refused.
    pub why: PostError,
    /// The receive, with its buffer.
    pub request: Box<ReceiveRequest>,
}
