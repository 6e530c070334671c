//! Messages with control messages: `sendmsg` and `recvmsg` for what `rustix` has no type for, such
//! as segments.
//!
//! Functions of the C library would do, but they are points of cancellation, and in a process of
//! several threads pay 60 ns for being one. So these make the system calls themselves.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use libc::{c_int, c_long, c_void};

use super::socket_address::EncodedAddress;

/// A control message that holds a number of up to 8 bytes, as the kernel lays it out.
#[repr(C)]
pub(super) struct Control {
    /// The bytes of the header and of the value, without padding.
    len: usize,
    level: c_int,
    kind: c_int,
    value: [u8; 8],
}

/// The bytes of a control message's header.
pub(super) const CONTROL_HEADER: usize = size_of::<usize>() + 2 * size_of::<c_int>();

impl Control {
    /// Makes a control message that holds the first bytes of `value`, as many as the number has.
    #[inline]
    pub fn of<const N: usize>(level: c_int, kind: c_int, value: [u8; N]) -> Self {
        let mut bytes = [0; 8];
        bytes[..N].copy_from_slice(&value);
        Self { len: CONTROL_HEADER + N, level, kind, value: bytes }
    }
}

/// Room for the control messages that come with datagrams: the time, the size of each, and the
/// traffic class.
pub(super) type Controls = [u64; 12];

/// Returns the control messages in what the kernel has written: each with its level, its kind, and
/// its value.
#[inline]
pub(super) fn controls(mut written: &[u8]) -> impl Iterator<Item = ((c_int, c_int), &[u8])> {
    std::iter::from_fn(move || {
        let (len, rest) = written.split_first_chunk()?;
        let (level, rest) = rest.split_first_chunk()?;
        let (kind, _) = rest.split_first_chunk()?;
        let len = usize::from_ne_bytes(*len);
        let value = written.get(CONTROL_HEADER..len)?;
        written = written.get(len.next_multiple_of(size_of::<usize>())..).unwrap_or_default();
        Some(((c_int::from_ne_bytes(*level), c_int::from_ne_bytes(*kind)), value))
    })
}

/// The message that these system calls read and write (`user_msghdr`).
#[repr(C)]
struct MessageHeader {
    name: *mut c_void,
    name_len: c_int,
    parts: *mut libc::iovec,
    count: usize,
    control: *mut c_void,
    control_len: usize,
    flags: u32,
}

#[inline]
fn outcome(result: c_long) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Sends datagrams with a control message, to an address or to the peer that the socket is
/// connected to.
#[inline]
pub(super) fn send(
    socket: BorrowedFd<'_>,
    datagrams: &[u8],
    control: Option<&Control>,
    to: Option<&EncodedAddress>,
) -> io::Result<()> {
    let mut part =
        libc::iovec { iov_base: datagrams.as_ptr().cast_mut().cast(), iov_len: datagrams.len() };
    let mut message = MessageHeader {
        name: ptr::null_mut(),
        name_len: 0,
        parts: &raw mut part,
        count: 1,
        control: ptr::null_mut(),
        control_len: 0,
        flags: 0,
    };
    if let Some(to) = to {
        let (bytes, len) = to.bytes();
        (message.name, message.name_len) = (bytes.as_ptr().cast_mut().cast(), len as c_int);
    }
    if let Some(control) = control {
        message.control = ptr::from_ref(control).cast_mut().cast();
        message.control_len = size_of::<Control>();
    }
    let fd = socket.as_raw_fd();
    // `libc`: neither `rustix` nor `socket2` makes this call with such control messages, without
    // going through the C library.
    // SAFETY: the kernel reads a message whose parts all live until the call returns, and writes
    // none of them.
    let sent = unsafe { libc::syscall(libc::SYS_sendmsg, fd, &raw const message, 0) };
    outcome(sent).map(drop)
}

/// Receives a message to `to`, its control messages to `control`, and whom it is from to `from`.
/// Returns its length, and how many bytes of control messages came.
#[inline]
pub(super) fn receive<C>(
    socket: BorrowedFd<'_>,
    to: &mut [u8],
    control: &mut C,
    from: Option<&mut EncodedAddress>,
    flags: c_int,
) -> io::Result<(usize, usize)>
where
    C: ControlRoom,
{
    let mut part = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let mut message = MessageHeader {
        name: ptr::null_mut(),
        name_len: 0,
        parts: &raw mut part,
        count: 1,
        control: ptr::from_mut(control).cast(),
        control_len: size_of::<C>(),
        flags: 0,
    };
    if let Some(from) = from {
        let room = from.room();
        (message.name, message.name_len) = (room.as_mut_ptr().cast(), room.len() as c_int);
    }
    let fd = socket.as_raw_fd();
    // `libc`: as for `send`.
    // SAFETY: the kernel writes at most the lengths that it is told, to parts that all live, and of
    // which any bytes are a value.
    let received = unsafe { libc::syscall(libc::SYS_recvmsg, fd, &raw mut message, flags) };
    outcome(received).map(|len| (len, message.control_len))
}

/// Memory of which any bytes are a value, aligned for control messages.
pub(super) trait ControlRoom {}

impl<const N: usize> ControlRoom for [u64; N] {}
