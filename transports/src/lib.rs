//! How Doorbell's packets move: devices between a NIC and the world.
//!
//! A [`Device`] carries packets both ways; what stands above it does not know which one it is.

mod address;
mod any;
mod burst;
mod clock;
mod device;
mod grant;
mod open;
pub mod packet;
pub mod packet_v2;
mod raw;
pub mod sharing;
pub mod shm;
mod sys;
pub mod udp;

pub use address::{Address, AddressError, ReachError};
pub use any::{AnyDevice, Spec, SpecError};
pub use burst::Burst;
pub use clock::Clock;
pub use device::{Capabilities, Device, Statistics, Trouble};
pub use grant::{Grant, GrantError, SharedMemory};
pub use open::OpenError;
