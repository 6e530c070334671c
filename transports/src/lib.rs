//! The devices that carry Doorbell's packets: shared memory, UDP sockets and raw Ethernet, each
//! behind the trait [`Device`]. A NIC sends and receives packets by a device, and does not know which
//! one it is. Programs name a device when they open a NIC; this crate is for those who write a device.
//!
//! ```
//! use doorbell_transports::Device;
//! use doorbell_transports::udp::Udp;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Udp::open("127.0.0.1:0".parse()?)?;
//! let capabilities = device.capabilities();
//! println!("{}: packets of up to {} bytes", device.address(), capabilities.mtu.bytes());
//! assert!(!capabilities.lossless); // datagrams may be lost, and the NIC sends them again
//! # Ok(())
//! # }
//! ```
//!
//! # The parts
//!
//! | | |
//! |---|---|
//! | [`Device`], [`Capabilities`], [`Statistics`], [`Trouble`] | what a device does, and what it tells of itself |
//! | [`shm`] | shared memory between processes of one machine and one user |
//! | [`udp`] | ordinary UDP sockets, which need no privilege: RoCE v2 |
//! | [`packet`], [`packet_v2`] | raw Ethernet, which needs CAP_NET_RAW: RoCE v1, and RoCE v2 with segmentation offload |
//! | [`Spec`], [`AnyDevice`] | a device by its name, as text |
//! | [`Address`], [`HostName`] | where peers reach a device |
//! | [`SharedMemory`], [`Grant`] | memory that processes of one machine map |
//! | [`wrap`] | devices around a device, which lose, record or trace its packets |
//! | [`sharing`] | several processes on one Ethernet interface |
//! | [`discover`] | the network interfaces of this machine |
//! | [`Burst`], [`Clock`] | help for writers of devices |
//!
//! # A device of your own
//!
//! This is a whole device: it sends packets of RoCE v1, in frames that are datagrams of a pair of
//! sockets within a process. Frames may be lost, so the device promises nothing and remembers
//! nothing.
//!
//! ```
#![doc = include_str!("../tests/in_memory/mod.rs")]
//!
//! // Two NICs over the two ends of such a pair, and turns of a program that polls.
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
//! A device has three promises to keep. What [`receive`](Device::receive) lends must be what
//! arrived: memory that others still write is copied from, never lent. A frame that arrives between
//! a [look](Device::receive) that found nothing and the sleep must end the sleep: arm first, and
//! look once more. And nothing from outside may make the device panic. The suite in `doorbell-kit`
//! (`conformance!`) tests devices for these promises. A device that loses nothing has a fourth,
//! which [`Outbox::delivered`](doorbell_core::nic::Outbox::delivered) describes.
//!
//! # Features
//!
//! With `serde`, addresses, capabilities, counters and the settings of shared memory and of
//! [faults](wrap) can be serialised.

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
mod look_up;
mod open;
pub mod packet;
pub mod packet_v2;
mod raw;
#[cfg(feature = "serde")]
mod serde;
pub mod sharing;
pub mod shm;
mod stamp;
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
pub use host_name::{HostName, HostNameError};
pub use look_up::LookUpError;
pub use open::DeviceError;
pub use sys::epoll_timer::EpollTimer;
pub use sys::random;
pub use sys::unix::PeerProcess;

/// Items for the other crates of this workspace, for which writers of devices have no use. They are
/// no part of the public interface, and change without notice.
#[doc(hidden)]
pub mod floor {
    pub use crate::sharing::message::sharing_message_again;
    pub use crate::shm::fuzz::{LINK_BYTES, RingEnds, shm_message_again};
    pub use crate::sys::limit::{Room, addresses, descriptors, is_limit, naming_limits};
}
