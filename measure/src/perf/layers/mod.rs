//! The tests of each layer: a folder or a file each. Tests of Active Messages and of streams share
//! `following`, and those of Active Messages and of RPC `callers`.

pub mod am;
pub mod bytestream;
mod callers;
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
