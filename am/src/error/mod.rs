//! The errors of the crate. Each says what was tried, what was found, and what to do about it.

mod call;
mod close;
mod map;
mod open;
mod send;
mod undeliverable;

pub use call::{CallError, Called, WaitedFor};
pub use close::{CloseError, GivenUp, WhyGivenUp};
pub use map::MapError;
pub use open::OpenError;
pub use send::{Credits, SendError};
pub use undeliverable::Undeliverable;
