//! Which user has a Unix socket of some name, as `ss -xae` shows it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use libc::c_int;

use super::{check, count, owned, set_option};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// The bits that ask the kernel for the name and the user of each socket.
const SHOW: u32 = SHOW_NAME | SHOW_USER;
const SHOW_NAME: u32 = 1;
const SHOW_USER: u32 = 0x40;
const NAME: u16 = 0;
const USER: u16 = 7;

/// The lengths of a message's header, of what it tells of each socket, and of an attribute's header.
const HEADER: usize = 16;
const SOCKET: usize = 16;
const ATTRIBUTE: usize = 4;

/// The number of the user who has an abstract name, in this network namespace; none if nobody does,
/// or the kernel does not tell: before Linux 5.3, or without its module `unix_diag`.
///
/// All Unix sockets are looked through: this is for errors.
pub(super) fn user_of(name: &[u8]) -> Option<u32> {
    let socket = ask().ok()?;
    let mut memory = vec![0; 32 << 10];
    loop {
        let len = receive(&socket, &mut memory).ok()?;
        let mut rest = &memory[..len.min(memory.len())];
        while let Some((kind, message, behind)) = next(rest) {
            match kind {
                SOCK_DIAG_BY_FAMILY => {
                    if let Some(user) = user_in(message, name) {
                        return Some(user);
                    }
                }
                // It is done, or does not know how.
                _ => return None,
            }
            rest = behind;
        }
        if len == 0 {
            return None;
        }
    }
}

/// The first of some messages: its kind, what it says, and what follows.
fn next(messages: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let (len, kind) = (word(messages, 0)? as usize, half(messages, 4)?);
    let message = messages.get(HEADER..len)?;
    Some((kind, message, messages.get(len.next_multiple_of(4)..).unwrap_or_default()))
}

/// The user of the socket that a message tells of, if the socket has this name.
fn user_in(message: &[u8], name: &[u8]) -> Option<u32> {
    let (mut attributes, mut user, mut found) = (message.get(SOCKET..)?, None, false);
    while let Some(len) = half(attributes, 0) {
        let value = attributes.get(ATTRIBUTE..usize::from(len))?;
        match half(attributes, 2)? {
            // An abstract name begins with a zero.
            NAME => found = value.split_first() == Some((&0, name)),
            USER => user = word(value, 0),
            _ => {}
        }
        let behind = usize::from(len).next_multiple_of(4);
        attributes = attributes.get(behind..).unwrap_or_default();
    }
    user.filter(|_| found)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|half| u16::from_ne_bytes(*half))
}

/// Asks for all Unix sockets.
fn ask() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: the call touches no memory.
    let result = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG) };
    // SAFETY: the descriptor is new and nobody else's.
    let socket = unsafe { owned(result, "NETLINK_SOCK_DIAG") }?;
    // Nobody waits for ever for a kernel that does not answer.
    let patience = libc::timeval { tv_sec: 1, tv_usec: 0 };
    let (level, name) = (libc::SOL_SOCKET, libc::SO_RCVTIMEO);
    set_option(socket.as_raw_fd(), level, name, &patience, "SO_RCVTIMEO")?;
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    // The header: length, kind and flags, a number, nobody. Then family, protocol, padding; states;
    // inode; what to show; a cookie.
    let header = [(HEADER + 24) as u32, u32::from_ne_bytes(pair(SOCK_DIAG_BY_FAMILY, flags)), 1, 0];
    let family = u32::from_ne_bytes([libc::AF_UNIX as u8, 0, 0, 0]);
    let request = [family, u32::MAX, 0, SHOW, u32::MAX, u32::MAX];
    let words: Vec<u8> =
        header.iter().chain(&request).flat_map(|word| word.to_ne_bytes()).collect();
    let no_flags: c_int = 0;
    // SAFETY: the kernel reads the bytes of a live slice.
    let sent =
        unsafe { libc::send(socket.as_raw_fd(), words.as_ptr().cast(), words.len(), no_flags) };
    check(sent as c_int, "asking for Unix sockets").map(|_| socket)
}

/// Two numbers of 16 bits as the bytes of one of 32.
fn pair(first: u16, second: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (first.to_ne_bytes(), second.to_ne_bytes());
    [a, b, c, d]
}

fn receive(socket: &OwnedFd, to: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most the length of a live slice.
    let len = unsafe { libc::recv(socket.as_raw_fd(), to.as_mut_ptr().cast(), to.len(), 0) };
    count(len as libc::c_long)
}
