//! What the kernel notes of a UDP socket beside what it receives: identifications, interfaces that
//! are too narrow, and messages of the network.

use std::io;
use std::mem::zeroed;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::ptr;

use doorbell_core::wire::{Bth, Ipv4, Ipv6, Udp};
use libc::{c_int, c_void};

use super::{Control, Name, UdpSocket};
use crate::sys::count;

/// What the kernel notes of a socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Note {
    /// A datagram that was to be shown has left, with this identification if that is shown.
    Sent(Option<u16>),
    /// A datagram was longer than a link takes at once: `here`, as the interface's MTU is, or as
    /// somebody on the network says.
    TooLong { mtu: u32, here: bool },
    /// The system of a host says that nobody is at the port which a datagram was for, and quotes
    /// how that datagram began: at least the first header of its packet.
    Closed { at: SocketAddr, quoted: Box<[u8]> },
    /// Something became of another.
    Other,
}

/// What a note is about, if the kernel says.
fn cause(message: &libc::msghdr) -> Option<libc::sock_extended_err> {
    // SAFETY: the kernel has filled in as much of the control messages as their length says.
    let mut at = unsafe { libc::CMSG_FIRSTHDR(message) };
    loop {
        // SAFETY: it is null, or points to the header of a control message.
        let header = unsafe { at.as_ref() }?;
        let kind = (header.cmsg_level, header.cmsg_type);
        if kind == (libc::SOL_IP, libc::IP_RECVERR) || kind == (libc::SOL_IPV6, libc::IPV6_RECVERR)
        {
            // SAFETY: data stand behind the header.
            let why = unsafe { libc::CMSG_DATA(at) }.cast::<libc::sock_extended_err>();
            // SAFETY: what a note of either family carries begins with such a structure.
            return Some(unsafe { why.read_unaligned() });
        }
        // SAFETY: it is one of the message's headers.
        at = unsafe { libc::CMSG_NXTHDR(message, at) };
    }
}

/// The note of a message that a port is closed, if the message quotes enough of the datagram.
fn closed(to: &Name, datagram: &[u8]) -> Note {
    match to.address() {
        Some(at) if datagram.len() >= Bth::LEN => Note::Closed { at, quoted: datagram.into() },
        _ => Note::Other,
    }
}

impl UdpSocket {
    /// The MTU of the interface by which the peer that this socket is connected to is reached, if
    /// IP packets of `len` bytes do not fit it.
    ///
    /// The kernel is offered the beginning of a datagram of that length, which it judges and keeps
    /// until the rest comes; and then a rest that no datagram can have, so that it drops all of it.
    /// Nothing is sent. What ICMP messages say of links further on does not count.
    pub fn narrower_than(&self, len: usize) -> Option<u32> {
        const LONGEST: usize = u16::MAX as usize;
        const NOTES: usize = 64;
        static ZEROS: [u8; LONGEST] = [0; LONGEST];
        let headers = if self.v6 { Ipv6::LEN + Udp::LEN } else { Ipv4::LEN + Udp::LEN };
        let begin = |len: usize| {
            let (fd, nowhere, bytes) = (self.fd.as_raw_fd(), ptr::null::<c_void>(), &ZEROS[..len]);
            let (bytes, len) = (bytes.as_ptr(), bytes.len());
            // SAFETY: the kernel reads the bytes of a live slice.
            count(unsafe {
                libc::syscall(libc::SYS_sendto, fd, bytes, len, libc::MSG_MORE, nowhere, 0)
            })
        };
        let notes = || (0..NOTES).map_while(|_| self.note());
        // What was noted of earlier sends is not about this one.
        notes().for_each(drop);
        match begin(len.saturating_sub(headers).min(LONGEST)) {
            Ok(_) => {
                let _ = begin(LONGEST);
                notes().for_each(drop);
                None
            }
            Err(why) if why.raw_os_error() == Some(libc::EMSGSIZE) => {
                let told = notes().map(|note| match note {
                    Note::TooLong { mtu, here: true } => Some(mtu),
                    _ => None,
                });
                told.fold(None, Option::or)
            }
            Err(_) => None,
        }
    }

    /// Sends an empty datagram that the kernel will [note](Self::note) with all its outer headers,
    /// as it does for whoever asks for the time of sending.
    pub fn send_shown(&self) -> io::Result<()> {
        let report = libc::SOF_TIMESTAMPING_SOFTWARE as c_int;
        self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, report, "SO_TIMESTAMPING")?;
        let when = libc::SOF_TIMESTAMPING_TX_SCHED;
        let control = Control::of(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &when.to_ne_bytes());
        self.send_with(&[], Some(&control), None)
    }

    /// What the kernel notes beside what is received, if there is something.
    pub fn note(&self) -> Option<Note> {
        const HEADERS: usize = 20 + 8;
        let (mut frame, mut control) = ([0u8; 128], [0u64; 64]);
        let mut bytes = libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() };
        // SAFETY: msghdr is plain and zero is a value for it.
        let mut message: libc::msghdr = unsafe { zeroed() };
        (message.msg_iov, message.msg_iovlen) = (&raw mut bytes, 1);
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        let mut to = Name::NOBODY;
        (message.msg_name, message.msg_namelen) = ((&raw mut to.storage).cast(), to.len);
        let fd = self.fd.as_raw_fd();
        // SAFETY: the kernel writes at most the lengths that it is told, to parts that all live.
        let result = count(unsafe {
            libc::syscall(libc::SYS_recvmsg, fd, &raw mut message, libc::MSG_ERRQUEUE)
        });
        let len = result.ok()?;
        let Some(cause) = cause(&message) else { return Some(Note::Other) };
        if cause.ee_origin != libc::SO_EE_ORIGIN_TIMESTAMPING {
            let here = cause.ee_origin == libc::SO_EE_ORIGIN_LOCAL;
            return Some(match cause.ee_errno as c_int {
                libc::EMSGSIZE => Note::TooLong { mtu: cause.ee_info, here },
                libc::ECONNREFUSED => closed(&to, &frame[..len.min(frame.len())]),
                _ => Note::Other,
            });
        }
        // What else is sent is not to be shown, nor received with its time.
        let _ = self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, 0, "SO_TIMESTAMPING");
        // Nothing follows the headers, so they are the last bytes, whatever stands in front.
        let headers = frame[..len.min(frame.len())].last_chunk::<HEADERS>();
        let udp = |headers: &&[u8; HEADERS]| headers[0] == 0x45 && headers[9] == 17;
        let id = |headers: &[u8; HEADERS]| u16::from_be_bytes([headers[4], headers[5]]);
        Some(Note::Sent(headers.filter(udp).map(id)))
    }
}
