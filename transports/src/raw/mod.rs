//! What raw devices have in common: they send and receive whole Ethernet frames through packet
//! sockets.
//!
//! A packet that is alone leaves through a plain socket; a run of them through one that tells the
//! kernel how to cut it, which costs a frame a quarter of a microsecond. All frames arrive through
//! one ring, in their order; which socket's ring that is may change.

mod device;
mod duplicates;
mod frame;
mod intake;
mod interface;
mod peers;
mod ring_socket;
mod schedule;
mod socket_order;

pub use device::Raw;
pub(crate) use frame::LONGEST;
pub(crate) use intake::Intake;
pub(crate) use interface::BoundInterface;
pub use peers::Peers;
pub(crate) use ring_socket::Recipe;
