//! Messages along Unix sockets, and descriptors that come with them.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_passcred;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::sys::deferred_close;

/// The most descriptors that come with a message: Linux sends no more.
const MOST: usize = 253;

/// The result of looking for a message in a socket.
pub(crate) enum ReceivedMessage {
    /// A message of so many bytes, and the descriptor that came with the message, if one did.
    Message(usize, Option<PassedFd>),
    /// A message whose descriptor is lost, since this process may have no more descriptors.
    NoDescriptor,
    Nothing,
    /// The socket's other end is closed, and all that it sent has been read.
    End,
}

/// A descriptor that a peer has passed, whatever it may be for. One that is not kept is closed by
/// another thread, since that may take any time.
pub(crate) struct PassedFd(Option<OwnedFd>);

impl PassedFd {
    /// Borrows the descriptor, to find out what it is.
    pub fn look(&self) -> BorrowedFd<'_> {
        self.0.as_ref().expect("it is there until it is kept or dropped").as_fd()
    }

    /// Takes the descriptor out, for a caller who knows that its close never waits.
    pub fn keep(mut self) -> OwnedFd {
        self.0.take().expect("it is there until it is kept or dropped")
    }
}

impl Drop for PassedFd {
    fn drop(&mut self) {
        if let Some(fd) = self.0.take() {
            deferred_close::discard(fd, deferred_close::close);
        }
    }
}

/// A message that one system call has received, with its descriptors.
struct Taken {
    len: usize,
    flags: ReturnFlags,
    descriptors: Vec<OwnedFd>,
}

/// Receives a message to some bytes, with descriptors as far as `room` goes.
fn take(
    socket: BorrowedFd<'_>,
    to: &mut [u8],
    room: &mut [MaybeUninit<u8>],
    flags: RecvFlags,
) -> Result<Taken, Errno> {
    let mut control = RecvAncillaryBuffer::new(room);
    let flags = flags | RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(socket, &mut [IoSliceMut::new(to)], &mut control, flags)?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            descriptors.extend(passed);
        }
    }
    Ok(Taken { len: received.bytes, flags: received.flags, descriptors })
}

/// Receives a message as [`take`] does. A peer that was closed before it had read everything is
/// reported once by an error, before its last messages: then this looks a second time.
fn take_past_reset(
    socket: BorrowedFd<'_>,
    to: &mut [u8],
    room: &mut [MaybeUninit<u8>],
    flags: RecvFlags,
) -> Result<Taken, Errno> {
    match take(socket, to, room, flags) {
        Err(Errno::CONNRESET) => take(socket, to, room, flags),
        taken => taken,
    }
}

/// Returns whether nothing waits in a socket to be read, for good if nobody can send to the socket
/// any more.
///
/// A message without bytes looks like the end of the connection. But a message, and not the end,
/// comes with the credentials of its sender, if those are asked for, and the kernel says that there
/// is no room for them.
pub(super) fn is_empty(socket: BorrowedFd<'_>) -> bool {
    if set_socket_passcred(socket, true).is_err() {
        return false;
    }
    let taken = take_past_reset(socket, &mut [], &mut [], RecvFlags::PEEK);
    let waits = taken.is_ok_and(|taken| taken.flags.contains(ReturnFlags::CTRUNC));
    set_socket_passcred(socket, false).is_ok() && !waits
}

/// Takes the next message out of a socket, and returns its descriptors.
pub(super) fn take_descriptors(socket: BorrowedFd<'_>) -> Vec<OwnedFd> {
    let mut room = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST))];
    let taken = take(socket, &mut [], &mut room, RecvFlags::empty());
    taken.map_or_else(|_| Vec::new(), |taken| taken.descriptors)
}

/// Sends a message, and a descriptor with it. The error is `WouldBlock` if the other end has many
/// messages to read.
pub(super) fn send(
    socket: BorrowedFd<'_>,
    message: &[u8],
    fd: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let mut room = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut room);
    let fds = fd.map(|fd| [fd]);
    if let Some(fds) = &fds {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(socket, &[IoSlice::new(message)], &mut control, flags)?;
    Ok(())
}

/// Receives the next message, if there is one. Of several descriptors, the first comes along, and
/// the others are closed.
pub(super) fn receive(socket: BorrowedFd<'_>, to: &mut [u8]) -> io::Result<ReceivedMessage> {
    let mut room = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST))];
    let taken = match take_past_reset(socket, to, &mut room, RecvFlags::empty()) {
        Ok(taken) => taken,
        Err(Errno::AGAIN) => return Ok(ReceivedMessage::Nothing),
        Err(Errno::CONNRESET) => return Ok(ReceivedMessage::End),
        Err(why) => return Err(why.into()),
    };
    let mut passed = taken.descriptors.into_iter().map(|fd| PassedFd(Some(fd)));
    let first = passed.next();
    passed.for_each(drop);
    if first.is_none() && taken.flags.contains(ReturnFlags::CTRUNC) {
        return Ok(ReceivedMessage::NoDescriptor);
    }
    // No message that devices send is empty, so an empty one is the end.
    Ok(match taken.len {
        0 => ReceivedMessage::End,
        len => ReceivedMessage::Message(len, first),
    })
}
