//! The adapter: a software NIC with its control plane, attached to a device.
//!
//! This folder is told to take a turn, to send what was posted, and to arm the device before a
//! sleep. It tells what arrived, whether a task was woken, and which descriptors to sleep on. It
//! decides neither who takes turns nor when; that is the progress engine's part.

mod closed;
mod device_adapter;
mod interface;
mod traffic;

pub(crate) use device_adapter::DeviceAdapter;
pub(crate) use interface::{Adapter, Turned};
