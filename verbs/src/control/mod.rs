//! The control plane of a NIC: queue pairs, connections, listeners and their teardown.
//!
//! Whoever holds the NIC may call this folder, and nothing in it waits. It is told of posted
//! control operations, of time, and of the NIC's and the connection manager's events. It tells
//! programs by the state of their connection, by one-shot channels, and by events; it tells its
//! caller whether a task was woken. [`Control`] is the state. The tables that it
//! consists of are `connections`, `handshakes`, `listeners`, `grants`, `lingering`, `paths` and `operations`; the other files
//! are what it does: in each `turn`, in `management` of connections, in `connecting`, `requesting` and
//! `answering`, with `services`, and in `teardown`.

mod answering;
mod connecting;
mod connections;
mod encryption;
mod grants;
mod handshakes;
mod lingering;
mod listeners;
mod management;
mod operations;
mod paths;
mod requesting;
mod services;
mod state;
mod teardown;
mod turn;

pub use encryption::Encryption;
pub(crate) use encryption::check_fits;
pub(crate) use grants::{Absent, Granted, MOST_UNTAKEN, granted_as};
pub(crate) use listeners::{ConnectionRequest, Listening, RequestQueue};
pub(crate) use operations::{ControlOp, ControlQueue, DroppedQueuePair, LingeringQueue};
pub(crate) use state::{Control, ControlConfig, NetworkSharing};
