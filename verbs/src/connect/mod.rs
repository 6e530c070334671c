//! Connections: made by the connection manager or by an exchange over TCP, and ended.
//!
//! This folder is told whom to connect to, and hands requests to the control plane. It returns the
//! connection's outcome and its handle. It knows queue pairs only as a [`Kind`], which the folders
//! above implement.

mod connecting;
mod connection;
mod exchange;
mod incoming;
mod listener;
mod mapping;
mod prober;
mod reach;
mod unconnected;

pub use connection::Connection;
pub(crate) use connection::QueuePairOwner;
pub use exchange::Side;
pub(crate) use exchange::{QueuePairAddress, exchange_addresses};
pub use incoming::Incoming;
pub use listener::{Listener, StopListening};
pub use prober::{Awaits, Prober, watch_over};
pub(crate) use reach::reach;
pub(crate) use unconnected::sealed;
pub use unconnected::{Kind, Unconnected};
