//! UDP sockets: segments both ways, peers that the kernel remembers, and identifications learnt.

mod error_queue;
mod message;
mod socket;
mod socket_address;

pub(crate) use error_queue::Report;
pub(crate) use socket::{Datagrams, RECEIVE_BUFFER, SEND_BUFFER, UdpSocket};
pub(crate) use socket_address::EncodedAddress;
