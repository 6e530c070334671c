//! The tests of each layer: a folder or a file each, and `following`, which tests of Active
//! Messages and of streams share.

pub mod am;
pub mod bytestream;
mod following;
pub mod frames;
pub mod groups;
pub mod logp;
pub mod rpc;
pub mod sockets;
pub mod splitc;
pub mod streams;
pub mod tags;
pub mod verbs;
