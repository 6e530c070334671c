//! RoCE v2 through ordinary UDP sockets, which need no privilege, cross any network that IP
//! crosses, and serve several processes of a machine.
//!
//! A device has an address and a port. At RoCE's own port, 4791, it speaks to standard peers (the
//! kernel's driver, adapters) and to other devices of this kind at that port; at any other port, to
//! devices of this kind at such ports.
//!
//! One socket of a device, the listener, receives from all peers. Peers that are sent to often have
//! a socket each beside it, which is connected to them: the kernel looks for their route once, and
//! gives their datagrams to that socket. Peers with connections have precedence over those that are
//! only sent datagrams, and no peer gets such a socket by being answered. No other process can take
//! the port, except in the microsecond in which such a socket is bound: then a process of the same
//! user can.
//!
//! If the kernel refuses a frame to one peer, the frame is lost for that peer alone. The listener
//! may have no room for a frame, since much of what it sent waits for hosts that do not answer.
//! Then the frame is put aside, and peers with sockets of their own go on.
//!
//! A frame is as long as the interface lets it be, whatever ICMP messages say of links further on.
//! Such messages are logged and change nothing, since anybody can forge them. Both ends agree on
//! the size of packets when they connect.
//!
//! Runs leave and arrive whole where the system has segmentation offload for UDP, which it has
//! whenever the interface computes checksums. A peer to which the system refuses a run is sent each
//! packet in a frame of its own from then on.
//!
//! The system of a peer's host may say that the peer's port is closed, since the process there has
//! ended. The NIC [hears](doorbell_core::nic::Inbox::port_closed) of that, and asks the peer at
//! once; a request for a connection to that port fails at once.
//!
//! The device of a client can ignore packets of all addresses but those that it has reached:
//! [`Udp::without_strangers`]. [`Udp::own_address_towards`] tells at which address of this machine
//! such a device is to be opened.
//!
//! # Wildcards
//! A device has one address, since every packet's ICRC covers the addresses that the packet is from
//! and for, and peers know the NIC by one address. So a device that is opened at `0.0.0.0` or
//! `[::]` is bound to one address of that family, by which other machines come: the address that
//! the default route leaves from; without such a route the first one of an interface that is up,
//! unless it is loopback's or link-local; or else loopback's.
//! [`Device::address`](crate::Device::address) tells which. Peers on the same machine reach the
//! device by that address, too: at 127.0.0.1, or at addresses of other interfaces, no device
//! answers unless another one is opened there. `[::]` stands for IPv6 addresses alone.
//!
//! # Bounds
//! A device has up to [`MOST_PEERS`] connected sockets. Each holds 8 MiB of what has arrived and 2
//! MiB of what is to leave, as the kernel counts, if the kernel lets this process ask for so much
//! (`net.core.rmem_max`, `wmem_max`). The last few hundred senders without such a socket are
//! remembered. Up to 64 messages that ports are closed wait for the NIC. A device without strangers
//! keeps each address that it has reached.

mod connecting;
mod device;
mod error;
mod headers;
mod local_address;
mod open;
mod peer;
mod receiving;
mod sender;
mod sending;
mod state;
mod traffic;
mod turn;
mod watching;

pub use state::{MOST_PEERS, Udp};
