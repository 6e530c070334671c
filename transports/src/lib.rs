//! How Doorbell's packets move: devices between a NIC and the world.
//!
//! A [`Device`] carries packets both ways; what stands above it does not know which one it is.
//!
//! # A device of your own
//!
//! This is all of one: packets as RoCE v1 has them, in frames that are datagrams of a pair of
//! sockets within a process. Frames may be lost, so it promises nothing and remembers nothing.
//!
//! ```
#![doc = include_str!("../tests/in_memory/mod.rs")]
//!
//! // Two NICs joined by it; these are turns of a program that polls.
//! use doorbell_core::nic::{Config, Nic, Seed};
//!
//! let (mut here, mut there) = InMemory::pair()?;
//! let way = here.reach(there.address())?.expect("it is known at once");
//! let mut one = Nic::new(Config::default(), Seed::from_number(1))?;
//! let mut other = Nic::new(Config::default(), Seed::from_number(2))?;
//! one.manage(way.path(PathId(0)), [7; 256])?;
//! one.transmit(&mut here);
//! assert_eq!(there.receive(&mut other), 1);
//! assert_eq!(other.management().map(|message| message.bytes), Some([7; 256]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Who writes one has three promises to keep. What [`receive`](Device::receive) lends must be what
//! arrived: memory that others still write is copied from, never lent. What arrives between a
//! [look](Device::receive) that found nothing and the sleep must end the sleep: arm first, and look
//! once more. And nothing from outside may make it panic. The suite in `doorbell-kit`
//! (`conformance!`) holds a device to them, this one, too. One that loses nothing has a fourth, which
//! [`Outbox::delivered`](doorbell_core::nic::Outbox::delivered) describes.

#![deny(unsafe_code)]
#![deny(clippy::multiple_unsafe_ops_per_block)]

mod address;
mod any;
mod burst;
mod clock;
mod debug;
mod device;
pub mod discover;
mod grant;
mod holder;
mod host;
mod host_name;
mod open;
pub mod packet;
pub mod packet_v2;
mod raw;
#[cfg(feature = "serde")]
mod serde;
pub mod sharing;
pub mod shm;
#[allow(unsafe_code)]
mod sys;
pub mod udp;
pub mod wrap;

pub use address::{Address, AddressError, ReachError};
pub use any::{AnyDevice, Spec, SpecError};
pub use burst::Burst;
pub use clock::Clock;
pub use device::{Capabilities, Device, Statistics, Trouble};
pub use grant::{Grant, GrantError, SharedMemory};
pub use holder::Holder;
pub use host_name::{HostName, HostNameError, LookUpError};
pub use open::OpenError;
pub use sys::process::PeerProcess;
pub use sys::random;
pub use sys::sentry::Sentry;

/// For crates of this workspace that stand on transports: what they use of it and writers of
/// devices have no use for. It is no part of the interface, and changes without notice.
#[doc(hidden)]
pub mod floor {
    pub use crate::sharing::floor::sharing_message_again;
    pub use crate::shm::floor::{LINK_BYTES, RingEnds, shm_message_again};
    pub use crate::sys::limit::{Room, addresses, descriptors, is_limit, naming_limits};
}
