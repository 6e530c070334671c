//! The user of the Unix socket that has a name, which the kernel tells by `sock_diag`, as `ss -xae`
//! shows it.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use libc::{NLM_F_DUMP, NLM_F_REQUEST};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

use super::error::Context;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// The bits that ask the kernel for the name and the user of each socket.
const SHOW: u32 = SHOW_NAME | SHOW_USER;
const SHOW_NAME: u32 = 1;
const SHOW_USER: u32 = 0x40;
const NAME: u16 = 0;
const USER: u16 = 7;

/// The lengths of a message's header, of what the message tells of each socket, and of an
/// attribute's header.
const HEADER: usize = 16;
const SOCKET: usize = 16;
const ATTRIBUTE: usize = 4;

/// Returns the number of the user who has an abstract name, in this network namespace; `None` if
/// nobody does, or the kernel does not tell: before Linux 5.3, or without its module `unix_diag`.
///
/// All Unix sockets are looked through, so this is for errors.
pub(super) fn user_of(name: &[u8]) -> Option<u32> {
    let socket = ask().ok()?;
    let mut memory = vec![0; 32 << 10];
    loop {
        let (len, _) = recv(&socket, &mut memory[..], RecvFlags::empty()).ok()?;
        let mut rest = &memory[..len];
        while let Some((kind, message, behind)) = next(rest) {
            match kind {
                SOCK_DIAG_BY_FAMILY => {
                    if let Some(user) = user_in(message, name) {
                        return Some(user);
                    }
                }
                // The kernel has told of all sockets, or does not know how to.
                _ => return None,
            }
            rest = behind;
        }
        if len == 0 {
            return None;
        }
    }
}

/// Splits off the first of some messages: its kind, its body, and the messages that follow.
fn next(messages: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let (len, kind) = (word(messages, 0)? as usize, half(messages, 4)?);
    let message = messages.get(HEADER..len)?;
    Some((kind, message, messages.get(len.next_multiple_of(4)..).unwrap_or_default()))
}

/// Returns the user of the socket that a message tells of, if the socket has this name.
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

/// Asks the kernel for all Unix sockets, and returns the socket by which the answer comes.
fn ask() -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))
        .context("NETLINK_SOCK_DIAG")?;
    // A kernel that does not answer is not waited for without end.
    set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(1)))
        .context("SO_RCVTIMEO")?;
    let flags = (NLM_F_REQUEST | NLM_F_DUMP) as u16;
    // The header: length, kind and flags, a sequence number, a port that is the kernel's. Then
    // family, protocol and padding; states; inode; what to show; a cookie.
    let header = [(HEADER + 24) as u32, u32::from_ne_bytes(pair(SOCK_DIAG_BY_FAMILY, flags)), 1, 0];
    let family = u32::from_ne_bytes([AddressFamily::UNIX.as_raw() as u8, 0, 0, 0]);
    let request = [family, u32::MAX, 0, SHOW, u32::MAX, u32::MAX];
    let words: Vec<u8> =
        header.iter().chain(&request).flat_map(|word| word.to_ne_bytes()).collect();
    send(&socket, &words, SendFlags::empty()).context("asking for Unix sockets")?;
    Ok(socket)
}

/// Returns two numbers of 16 bits as the bytes of one of 32.
fn pair(first: u16, second: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (first.to_ne_bytes(), second.to_ne_bytes());
    [a, b, c, d]
}
