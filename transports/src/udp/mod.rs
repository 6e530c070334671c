//! RoCE v2 through ordinary UDP sockets: no privilege, any network that IP crosses, several
//! processes a machine.
//!
//! A device is an address and a port. At RoCE's own port, 4791, it speaks to standard peers (the
//! kernel's driver, adapters) and to others of its kind there; at any other port, to others of its
//! kind at such ports.
//!
//! One socket listens. Peers that are sent to often have one each beside it, connected to them: the
//! kernel finds their way once, and gives their datagrams to that socket. Peers with connections
//! have precedence over those that are only sent datagrams, and nobody gets such a socket by being
//! answered. Nobody else can take the port; in the microsecond in which such a socket is bound,
//! only a process of the same user.
//!
//! What the kernel does not send to one peer is lost for that peer alone. A frame for which the
//! listener has no room, since much of what it sent waits for hosts that do not answer, waits
//! aside: peers with sockets of their own go on.
//!
//! A frame is as long as the interface lets it be, whatever ICMP messages say of links further on:
//! they are logged, and change nothing, for anybody can forge them. Both ends agree on the size of
//! packets when they connect.
//!
//! Runs leave and arrive whole where the system has segmentation offload for UDP, and it has
//! whenever the interface sums checksums. Where sending one is refused, to that peer goes a frame a
//! packet from then on.
//!
//! Where the system of a peer's host says that the peer's port is closed, since the process there
//! has ended, the NIC [hears](Inbox::port_closed) of that and asks the peer at once; or the port is
//! that of a peer which is asked for a connection, and the connection fails at once.
//!
//! A device of a client need not hear anybody but those whom it has asked:
//! [`Udp::without_strangers`]. [`Udp::own_address_towards`] tells at which of this machine's
//! addresses it is to be opened for one of them.
//!
//! # Wildcards
//! A device has one address, for every packet's ICRC covers the addresses that it is from and for,
//! and peers know the NIC by one. So a device that is opened at `0.0.0.0` or `[::]` is bound to one
//! address of that family, the one by which other machines come: which the default route leaves
//! from; without such a route the first of an interface that is up, that is neither loopback's nor
//! link-local; or else loopback's. [`Device::address`] tells which. Peers on the same machine come
//! by that one, too: at 127.0.0.1 or at addresses of other interfaces nobody answers, unless other
//! devices are opened there. `[::]` is IPv6 alone.
//!
//! # Bounds
//! [`MOST_PEERS`] connected sockets, with 8 MiB each of what has arrived and 2 MiB of what is to
//! leave, as the kernel counts, if it lets this process ask for so much (`net.core.rmem_max`,
//! `wmem_max`). Of senders without one, the last few hundred are remembered. 64 messages that ports
//! are closed wait to be told. A device without strangers keeps each address that it has reached.

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
