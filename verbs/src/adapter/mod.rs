//! A NIC with its device.

mod closed;
mod machine;
mod traffic;

pub(crate) use machine::{Engine, Machine, Turned};
pub(crate) use traffic::Traffic;
