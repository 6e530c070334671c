//! Memory: registered, named to peers, and taken back.

pub(crate) mod mapped;
mod registered;

pub use registered::{Registered, RemoteMemory, RemoteMemoryError, Rights};
