//! In which order the kernel asks the sockets of an interface whether a frame is theirs.

use std::fs;
use std::io;

use doorbell_core::wire::EtherType;

use crate::sys::packet::PacketSocket;

/// The packet sockets of this thread's network namespace, in the order in which they were opened.
const SOCKETS: &str = "/proc/thread-self/net/packet";

/// Whether a socket on this interface was opened after `own`, and is asked before it: the kernel
/// asks the one first that was bound last, which is opened last as a rule, and each takes a tenth of a
/// microsecond to say no. Of a socket that is not of this thread's namespace that is not told, and it
/// is an error.
pub fn is_behind(own: &PacketSocket, index: u32, protocol: EtherType) -> io::Result<bool> {
    let own = own.inode()?;
    let sockets = fs::read_to_string(SOCKETS)?;
    let elsewhere = || io::Error::new(io::ErrorKind::NotFound, format!("{own} in {SOCKETS}"));
    is_followed(&sockets, own, index, protocol).ok_or_else(elsewhere)
}

/// Whether others of an interface and a protocol stand behind a socket in the kernel's list of them;
/// `None` where that socket does not stand there.
fn is_followed(sockets: &str, own: u64, index: u32, protocol: EtherType) -> Option<bool> {
    let mut sockets = sockets.lines().skip(1).filter_map(Entry::read);
    sockets.find(|socket| socket.inode == own)?;
    Some(sockets.any(|socket| (socket.index, socket.protocol) == (index, protocol.0)))
}

struct Entry {
    protocol: u16,
    index: u32,
    inode: u64,
}

impl Entry {
    /// Reads a line: address, references, kind, protocol, interface, whether it receives, bytes that
    /// wait, user, inode.
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
        let of = |own, index, protocol| is_followed(LIST, own, index, protocol);
        assert_eq!(of(11, 2, EtherType::ROCE), Some(true));
        assert_eq!(of(13, 3, EtherType::ROCE), Some(false));
        assert_eq!(of(14, 2, EtherType::ROCE), Some(false));
        assert_eq!(of(11, 2, EtherType::IPV6), Some(true));
        assert_eq!(of(15, 2, EtherType::IPV6), Some(false));
    }

    #[test]
    fn of_a_socket_that_is_not_there_nothing_is_said() {
        assert_eq!(is_followed(LIST, 16, 2, EtherType::ROCE), None);
        assert_eq!(is_followed("", 11, 2, EtherType::ROCE), None);
        assert_eq!(is_followed("sk\nwhat is this\n", 11, 2, EtherType::ROCE), None);
    }
}
