//! The errors of the crate. Each says what was tried, what was found, and what to do about it.

mod call;
mod undeliverable;

pub use call::{CallError, Called, WaitedFor};
pub use undeliverable::Undeliverable;

pub use doorbell_verbs::{
    CloseError, ConnectError, Credits, GivenUp, OpenError, SendError, Unsent, Unwelcome,
    WhyGivenUp, WhyGone,
};
