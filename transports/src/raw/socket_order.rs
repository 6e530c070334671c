//! The order in which the kernel asks packet sockets whether a frame is theirs.

use std::fs;
use std::io;

use doorbell_core::wire::EtherType;

use crate::sys::packet::PacketSocket;

/// The file that lists the packet sockets of this thread's network namespace, in the order in which
/// they were opened.
const SOCKETS: &str = "/proc/thread-self/net/packet";

/// The place of a socket among those of its interface and its protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SocketPlace {
    /// The socket is the only one.
    Alone,
    /// The socket is asked before all others.
    First,
    /// The socket is asked after another one.
    Behind,
}

/// Finds the place of the socket `own`. The kernel first asks the socket that was bound last, which
/// as a rule was opened last, and each socket takes a tenth of a microsecond to say no. A socket
/// that is not of this thread's namespace is an error.
pub fn place_of(own: &PacketSocket, index: u32, protocol: EtherType) -> io::Result<SocketPlace> {
    let own = own.inode()?;
    let sockets = fs::read_to_string(SOCKETS)?;
    let elsewhere = || io::Error::new(io::ErrorKind::NotFound, format!("{own} in {SOCKETS}"));
    among(&sockets, own, index, protocol).ok_or_else(elsewhere)
}

/// Finds the place of a socket in the kernel's list, where the first socket was opened first.
/// `None` if the list does not have the socket.
fn among(sockets: &str, own: u64, index: u32, protocol: EtherType) -> Option<SocketPlace> {
    let sockets = sockets.lines().skip(1).filter_map(Entry::read);
    let alike = |socket: &Entry| (socket.index, socket.protocol) == (index, protocol.0);
    let asked: Vec<_> = sockets.filter(|it| it.inode == own || alike(it)).collect();
    let place = asked.iter().position(|socket| socket.inode == own)?;
    Some(match place + 1 == asked.len() {
        true if place == 0 => SocketPlace::Alone,
        true => SocketPlace::First,
        false => SocketPlace::Behind,
    })
}

/// A packet socket in the kernel's list.
struct Entry {
    protocol: u16,
    index: u32,
    inode: u64,
}

impl Entry {
    /// Reads a line, whose fields are: address, references, kind, protocol, interface, whether the
    /// socket receives, bytes that wait, user, inode.
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split_whitespace();
        let protocol = u16::from_str_radix(fields.nth(3)?, 16).ok()?;
        let index = fields.next()?.parse().ok()?;
        Some(Self { protocol, index, inode: fields.nth(3)?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
sk               RefCnt Type Proto  Iface R Rmem   User   Inode
00000000d46a8ee0 3      3    8915   2     1 0      0      11
000000003f4b5c00 3      3    0003   2     1 0      0      12
000000007c1d2e00 3      3    8915   3     1 0      0      13
00000000aa1d2e00 3      3    8915   2     1 0      1000   14
00000000bb1d2e00 3      3    86dd   2     1 0      0      15
";

    #[test]
    fn who_was_opened_later_on_the_same_interface_for_the_same_protocol_is_in_front() {
        let of = |own, index| among(LIST, own, index, EtherType::ROCE);
        assert_eq!(of(11, 2), Some(SocketPlace::Behind));
        assert_eq!(of(13, 3), Some(SocketPlace::Alone));
        assert_eq!(of(14, 2), Some(SocketPlace::First));
        assert_eq!(among(LIST, 15, 2, EtherType::IPV6), Some(SocketPlace::Alone));
    }

    #[test]
    fn of_a_socket_that_is_not_there_nothing_is_said() {
        assert_eq!(among(LIST, 16, 2, EtherType::ROCE), None);
        assert_eq!(among("", 11, 2, EtherType::ROCE), None);
        assert_eq!(among("sk\nwhat is this\n", 11, 2, EtherType::ROCE), None);
    }
}
