//! What the kernel reports of a UDP socket beside what the socket receives, in its error queue:
//! identifications, interfaces that are too narrow, and ICMP messages.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use doorbell_core::wire::{Bth, Ipv4, Ipv6, Udp};
use libc::c_int;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use super::message::{self, Control};
use super::socket::UdpSocket;
use super::socket_address::EncodedAddress;
use crate::sys::option;

/// An entry of the error queue of a socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Report {
    /// A datagram that [`send_shown`](UdpSocket::send_shown) sent has left, with this
    /// identification if the kernel shows it.
    Sent(Option<u16>),
    /// A datagram was longer than a link takes at once: `here`, by the MTU of this machine's
    /// interface, or else as somebody on the network says.
    TooLong { mtu: u32, here: bool },
    /// The system of a host says that nobody is at the port which a datagram was for, and quotes
    /// how that datagram began: at least the first header of its packet.
    Closed { at: SocketAddr, quoted: Box<[u8]> },
    /// The kernel reports something that devices have no use for.
    Other,
}

/// Why the kernel has reported something (`sock_extended_err`).
struct Cause {
    error: u32,
    origin: u8,
    info: u32,
}

impl Cause {
    /// Finds the cause among the control messages of a report.
    fn among(written: &[u8]) -> Option<Self> {
        const KINDS: [(c_int, c_int); 2] =
            [(libc::SOL_IP, libc::IP_RECVERR), (libc::SOL_IPV6, libc::IPV6_RECVERR)];
        let mut causes = message::controls(written).filter(|(kind, _)| KINDS.contains(kind));
        causes.next().and_then(|(_, value)| Self::read(value))
    }

    /// Reads a cause, which stands in front of what each family adds.
    fn read(value: &[u8]) -> Option<Self> {
        let word = |at: usize| value.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word));
        Some(Self { error: word(0)?, origin: *value.get(4)?, info: word(8)? })
    }
}

/// Returns the report of a message that a port is closed, if the message quotes enough of the
/// datagram.
fn closed(to: &EncodedAddress, datagram: &[u8]) -> Report {
    match to.decoded() {
        Some(at) if datagram.len() >= Bth::LEN => Report::Closed { at, quoted: datagram.into() },
        _ => Report::Other,
    }
}

impl UdpSocket {
    /// Returns the MTU of the interface by which the peer that this socket is connected to is
    /// reached, if IP packets of `len` bytes do not fit it.
    ///
    /// The kernel is offered the beginning of a datagram of that length, which it judges and keeps
    /// until the rest comes; and then a rest that no datagram can have, so that it drops all of it.
    /// Nothing is sent. What ICMP messages say of links further on does not count.
    pub fn narrower_than(&self, len: usize) -> Option<u32> {
        const LONGEST: usize = u16::MAX as usize;
        const REPORTS: usize = 64;
        static ZEROS: [u8; LONGEST] = [0; LONGEST];
        let headers = if self.is_v6() { Ipv6::LEN + Udp::LEN } else { Ipv4::LEN + Udp::LEN };
        let begin = |len: usize| send(self, &ZEROS[..len], SendFlags::MORE);
        let reports = || (0..REPORTS).map_while(|_| self.report());
        // Reports of earlier sends are not about this one.
        reports().for_each(drop);
        match begin(len.saturating_sub(headers).min(LONGEST)) {
            Ok(_) => {
                let _ = begin(LONGEST);
                reports().for_each(drop);
                None
            }
            Err(Errno::MSGSIZE) => {
                let told = reports().map(|report| match report {
                    Report::TooLong { mtu, here: true } => Some(mtu),
                    _ => None,
                });
                told.fold(None, Option::or)
            }
            Err(_) => None,
        }
    }

    fn set_timestamping(&self, flags: c_int) -> io::Result<()> {
        option::set(self, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags, "SO_TIMESTAMPING")
    }

    /// Sends an empty datagram that the kernel will [report](Self::report) with all its outer
    /// headers, as it does for whoever asks for the time of sending.
    pub fn send_shown(&self) -> io::Result<()> {
        self.set_timestamping(libc::SOF_TIMESTAMPING_SOFTWARE as c_int)?;
        let when = libc::SOF_TIMESTAMPING_TX_SCHED;
        let control = Control::of(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, when.to_ne_bytes());
        message::send(self.as_fd(), &[], Some(&control), None)
    }

    /// Takes the next report out of the error queue, if there is one.
    pub fn report(&self) -> Option<Report> {
        const HEADERS: usize = 20 + 8;
        let (mut frame, mut control, mut to) = ([0; 128], [0_u64; 64], EncodedAddress::UNKNOWN);
        let flags = libc::MSG_ERRQUEUE;
        let received =
            message::receive(self.as_fd(), &mut frame, &mut control, Some(&mut to), flags);
        let (len, control_len) = received.ok()?;
        let control = control.map(u64::to_ne_bytes);
        let control = control.as_flattened();
        let cause = Cause::among(&control[..control_len.min(control.len())]);
        let Some(Cause { error, origin, info }) = cause else { return Some(Report::Other) };
        if origin != libc::SO_EE_ORIGIN_TIMESTAMPING {
            let here = origin == libc::SO_EE_ORIGIN_LOCAL;
            return Some(match Errno::from_raw_os_error(error as i32) {
                Errno::MSGSIZE => Report::TooLong { mtu: info, here },
                Errno::CONNREFUSED => closed(&to, &frame[..len.min(frame.len())]),
                _ => Report::Other,
            });
        }
        // Other datagrams are not to be shown, nor received with their time.
        let _ = self.set_timestamping(0);
        // The datagram is empty, so the headers are the last bytes, whatever stands in front of
        // them.
        let headers = frame[..len.min(frame.len())].last_chunk::<HEADERS>();
        let udp = |headers: &&[u8; HEADERS]| headers[0] == 0x45 && headers[9] == 17;
        let id = |headers: &[u8; HEADERS]| u16::from_be_bytes([headers[4], headers[5]]);
        Some(Report::Sent(headers.filter(udp).map(id)))
    }
}
