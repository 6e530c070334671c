//! A UDP socket: what is set on it, and how datagrams go through it.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::{SOL_UDP, c_int, c_long};
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, getsockname, recv,
    send, socket_with,
};

use super::message::{self, Control, Controls};
use super::socket_address::EncodedAddress;
use crate::stamp::Stamp;
use crate::sys::error::Context;
use crate::sys::option;

/// Options that `libc` does not have for some targets.
const UDP_NO_CHECK6_RX: c_int = 102;
const IPV6_ADDR_PREFERENCES: c_int = 72;
const IPV6_PREFER_SRC_PUBLIC: c_int = 2;

/// How many bytes of what has arrived wait at a socket at most. The kernel counts double, for what
/// it keeps beside each datagram.
pub(crate) const RECEIVE_BUFFER: usize = 4 << 20;
/// How many bytes of what is to leave wait at a socket at most.
pub(crate) const SEND_BUFFER: usize = 1 << 20;

/// A UDP socket that blocks nobody, fragments nothing, has one address, and says when what it was
/// to send did not leave. What the kernel [reports](Self::report) of the network must be read.
pub(crate) struct UdpSocket {
    fd: OwnedFd,
    v6: bool,
}

/// A datagram that was received, or several that the kernel put together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Datagrams {
    pub len: usize,
    /// The size of each datagram, if the kernel put several together.
    pub segment: Option<u16>,
    /// The sender's address, if the caller asked for it.
    pub from: Option<SocketAddr>,
    /// When they came.
    pub stamp: Stamp,
    /// Whether a switch has marked them as Congestion Experienced.
    pub marked: bool,
}

impl Datagrams {
    /// Learns what a control message says.
    #[inline]
    fn learn(&mut self, kind: (c_int, c_int), value: &[u8]) {
        const TIME: (c_int, c_int) = (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
        const SEGMENT: (c_int, c_int) = (SOL_UDP, libc::UDP_GRO);
        const CLASS: (c_int, c_int) = (libc::IPPROTO_IP, libc::IP_TOS);
        const CLASS6: (c_int, c_int) = (libc::IPPROTO_IPV6, libc::IPV6_TCLASS);
        match (kind, value) {
            (TIME, value) => self.stamp = stamp(value).unwrap_or_default(),
            (SEGMENT, &[a, b, c, d, ..]) => {
                self.segment = Some(u32::from_ne_bytes([a, b, c, d]) as u16);
            }
            (CLASS, &[class, ..]) => self.marked = u32::from(class) & ECN == MARKED,
            (CLASS6, &[a, b, c, d, ..]) => {
                self.marked = u32::from_ne_bytes([a, b, c, d]) & ECN == MARKED;
            }
            _ => {}
        }
    }
}

/// The ECN bits of a traffic class, and their value where a switch has marked a packet.
const ECN: u32 = 3;
const MARKED: u32 = 3;

/// Reads a `timespec`.
#[inline]
fn stamp(value: &[u8]) -> Option<Stamp> {
    let (seconds, rest) = value.split_first_chunk()?;
    let nanos = c_long::from_ne_bytes(*rest.first_chunk()?);
    Some(Stamp::new(c_long::from_ne_bytes(*seconds) as u64, nanos as u32))
}

impl UdpSocket {
    /// Opens a socket for peers of the same family as `local`, which is not yet bound.
    ///
    /// What the socket sends is not fragmented, and is as long as the interface lets it be: what
    /// ICMP messages say of narrower links further on, which anybody can forge, fails no send
    /// (`PROBE`).
    pub fn open(local: SocketAddr) -> io::Result<Self> {
        let v6 = local.is_ipv6();
        let family = if v6 { AddressFamily::INET6 } else { AddressFamily::INET };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(family, SocketType::DGRAM, flags, None).context("a UDP socket")?;
        if v6 {
            let whole = Ipv6PathMtuDiscovery::PROBE;
            sockopt::set_ipv6_v6only(&fd, true).context("IPV6_V6ONLY")?;
            sockopt::set_ipv6_mtu_discover(&fd, whole).context("IPV6_MTU_DISCOVER")?;
            option::set(&fd, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1, "IPV6_RECVERR")?;
            option::set(&fd, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1, "IPV6_RECVTCLASS")?;
            // The kernel's own RoCE sends no checksum.
            option::set(&fd, libc::IPPROTO_UDP, UDP_NO_CHECK6_RX, 1, "UDP_NO_CHECK6_RX")?;
        } else {
            let whole = Ipv4PathMtuDiscovery::PROBE;
            sockopt::set_ip_mtu_discover(&fd, whole).context("IP_MTU_DISCOVER")?;
            option::set(&fd, libc::IPPROTO_IP, libc::IP_RECVERR, 1, "IP_RECVERR")?;
            option::set(&fd, libc::IPPROTO_IP, libc::IP_RECVTOS, 1, "IP_RECVTOS")?;
        }
        // Without the privilege, buffers are as large as the system's limit allows.
        sockopt::set_socket_recv_buffer_size_force(&fd, RECEIVE_BUFFER)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(&fd, RECEIVE_BUFFER))
            .context("SO_RCVBUF")?;
        sockopt::set_socket_send_buffer_size_force(&fd, SEND_BUFFER)
            .or_else(|_| sockopt::set_socket_send_buffer_size(&fd, SEND_BUFFER))
            .context("SO_SNDBUF")?;
        Ok(Self { fd, v6 })
    }

    /// Opens another socket, if this thread is in the network namespace of this socket. Sockets
    /// belong for good to the network namespace of the thread that opens them, and another
    /// namespace has other addresses.
    pub fn another(&self, local: SocketAddr) -> io::Result<Self> {
        let other = Self::open(local)?;
        // Systems that don't tell are taken to have a single namespace.
        let namespace =
            |socket: &Self| option::words::<2>(&socket.fd, libc::SOL_SOCKET, libc::SO_NETNS_COOKIE);
        match namespace(self) == namespace(&other) {
            true => Ok(other),
            false => Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    }

    /// Has the system, where it chooses the address that this socket sends from, not choose one of
    /// those that IPv6 replaces each day for privacy.
    pub fn prefer_lasting_address(&self) -> io::Result<()> {
        if !self.v6 {
            return Ok(());
        }
        let (name, lasting) = (IPV6_ADDR_PREFERENCES, IPV6_PREFER_SRC_PUBLIC);
        option::set(&self.fd, libc::IPPROTO_IPV6, name, lasting, "IPV6_ADDR_PREFERENCES")
    }

    /// Takes an address, on which nobody else listens.
    pub fn bind(&self, local: SocketAddr) -> io::Result<()> {
        // The error stays as it is: its kind matters to whoever opens a device.
        Ok(bind(&self.fd, &local)?)
    }

    /// Takes the address that `listener` has already, to be connected to a peer.
    ///
    /// The system lets sockets share an address if they all say so. The listener says so for the
    /// length of this call only, and to processes of the same user only (`SO_REUSEPORT`): at any
    /// other time nobody else takes the address, for with the listener nobody may share it. The
    /// sockets beside the listener have said so for good (`SO_REUSEADDR`), as each must accept the
    /// next.
    ///
    /// `anywhere` binds the socket to all addresses, of which connecting leaves the one that the
    /// system chooses. It is for IPv6, where sockets that share an address stand behind each other,
    /// and the kernel takes its short cut to the first only: two fifths of a microsecond.
    /// Connecting puts a socket to the front that had all addresses before.
    pub fn bind_beside(
        &self,
        listener: &Self,
        local: SocketAddr,
        anywhere: bool,
    ) -> io::Result<()> {
        let from = match anywhere {
            true => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), local.port()),
            false => local,
        };
        let share = |socket: &Self, shares| {
            sockopt::set_socket_reuseport(&socket.fd, shares).context("SO_REUSEPORT")
        };
        sockopt::set_socket_reuseaddr(&self.fd, true).context("SO_REUSEADDR")?;
        share(self, true)?;
        share(listener, true)?;
        let bound = self.bind(from);
        share(listener, false)?;
        share(self, false)?;
        bound
    }

    /// Sends to a peer, and receives from that peer alone, from here on.
    pub fn connect(&self, peer: SocketAddr) -> io::Result<()> {
        Ok(connect(&self.fd, &peer)?)
    }

    /// Returns the address that the socket is bound to.
    pub fn local(&self) -> io::Result<SocketAddr> {
        let name = getsockname(&self.fd).context("getsockname")?;
        name.try_into().map_err(|_| io::ErrorKind::AddrNotAvailable.into())
    }

    /// Allows or forbids the kernel to put datagrams together that arrive together.
    pub fn put_together(&self, together: bool) -> io::Result<()> {
        option::set(&self.fd, SOL_UDP, libc::UDP_GRO, together.into(), "UDP_GRO")
    }

    /// Has the kernel tell when what arrives has arrived, or no longer.
    pub fn stamp(&self, stamp: bool) -> io::Result<()> {
        let name = libc::SO_TIMESTAMPNS;
        option::set(&self.fd, libc::SOL_SOCKET, name, stamp.into(), "SO_TIMESTAMPNS")
    }

    /// Returns how many datagrams came while there was no room for them.
    pub fn overrun(&self) -> u64 {
        const DROPS: usize = 8;
        let name = libc::SO_MEMINFO;
        let counted = option::words::<{ DROPS + 1 }>(&self.fd, libc::SOL_SOCKET, name);
        counted.map_or(0, |counted| counted[DROPS].into())
    }

    /// Sends a datagram to the peer that the socket is connected to.
    #[inline]
    pub fn send(&self, datagram: &[u8]) -> io::Result<()> {
        send(&self.fd, datagram, SendFlags::empty())?;
        Ok(())
    }

    /// Sends datagrams of `segment` bytes each, the last possibly shorter; a single one, if
    /// `segment` is not given. Without `to`, they go to the peer that the socket is connected to.
    #[inline]
    pub fn send_run(
        &self,
        datagrams: &[u8],
        segment: Option<u16>,
        to: Option<&EncodedAddress>,
    ) -> io::Result<()> {
        let control =
            segment.map(|segment| Control::of(SOL_UDP, libc::UDP_SEGMENT, segment.to_ne_bytes()));
        message::send(self.as_fd(), datagrams, control.as_ref(), to)
    }

    /// Receives a datagram, at a socket where the kernel puts none together.
    #[inline]
    pub fn receive_one(&self, to: &mut [u8]) -> io::Result<usize> {
        Ok(recv(&self.fd, to, RecvFlags::empty())?.0)
    }

    /// Receives a datagram, or several that were put together, and if `named` the sender's address.
    /// This costs 0.12 µs more than to receive one alone, and the address another 0.04.
    #[inline]
    pub fn receive(&self, to: &mut [u8], named: bool) -> io::Result<Datagrams> {
        let (mut from, mut control): (_, Controls) = (EncodedAddress::UNKNOWN, [0; _]);
        let name = if named { Some(&mut from) } else { None };
        let (len, written) = message::receive(self.as_fd(), to, &mut control, name, 0)?;
        let from = if named { from.decoded() } else { None };
        let stamp = Stamp::default();
        let mut received = Datagrams { len, segment: None, from, stamp, marked: false };
        let control = control.map(u64::to_ne_bytes);
        let control = control.as_flattened();
        for (kind, value) in message::controls(&control[..written.min(control.len())]) {
            received.learn(kind, value);
        }
        Ok(received)
    }

    /// Has what the socket sends carry a traffic class from here on.
    #[cold]
    pub fn set_traffic_class(&self, class: u8) {
        // What has no ECN bits is not marked, but dropped where a queue is full.
        let _ = match self.v6 {
            true => sockopt::set_ipv6_tclass(&self.fd, class.into()),
            false => sockopt::set_ip_tos(&self.fd, class),
        };
    }

    /// Returns true if the socket is of IPv6.
    pub(super) fn is_v6(&self) -> bool {
        self.v6
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
