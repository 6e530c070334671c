//! What tests say by system calls of their own, so that they can say anything: a caller, a name that
//! somebody has taken, memory.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use doorbell_kit::readable;
use doorbell_transports::shm::Shm;
use doorbell_transports::{Address, Device};

use crate::shm::common::*;

/// What a hello begins with: that it is one, and the version.
pub const HELLO: [u8; 2] = [1, 3];
pub const LINES: u32 = 256;
pub const RING: usize = 256 + LINES as usize * 64;

/// A socket by which a test says to a device what the test likes.
pub struct Liar(pub OwnedFd);

/// Of the system calls that are made here: none is to fail.
#[track_caller]
pub fn ok(result: libc::c_int) -> libc::c_int {
    assert!(result >= 0, "{}", std::io::Error::last_os_error());
    result
}

pub fn socket() -> OwnedFd {
    // SAFETY: the descriptor is new and nobody else's.
    unsafe {
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        OwnedFd::from_raw_fd(ok(libc::socket(libc::AF_UNIX, kind, 0)))
    }
}

fn address(of: &str) -> (libc::sockaddr_un, u32) {
    // SAFETY: zero is a value for it.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as u16;
    let name = format!("doorbell/{of}");
    for (to, from) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    (address, (2 + 1 + name.len()) as u32)
}

/// The name of a device.
pub fn named(device: &Shm) -> String {
    device.address().to_string().trim_start_matches("shm:").to_owned()
}

impl Liar {
    /// Connects to a device by the device's name.
    pub fn call(name: &str) -> Self {
        let (socket, (address, len)) = (socket(), address(name));
        // SAFETY: the kernel reads the length that it is told.
        ok(unsafe { libc::connect(socket.as_raw_fd(), ptr::from_ref(&address).cast(), len) });
        Self(socket)
    }

    /// Says hello by a name, for rings of so many lines.
    pub fn hello_as(device: &Shm, name: &str, lines: u32) -> Self {
        let liar = Self::call(&named(device));
        let hello = [&HELLO[..], &lines.to_le_bytes(), name.as_bytes()].concat();
        liar.say(&hello, None);
        liar
    }

    /// Calls it, and says hello as it should.
    pub fn hello(device: &mut Shm) -> (Self, Segment) {
        Self::hello_for(device, LINES)
    }

    pub fn hello_for(device: &mut Shm, lines: u32) -> (Self, Segment) {
        let liar = Self::hello_as(device, &name("liar"), lines);
        let mut heard = Heard::default();
        until(|| {
            turn(device, &mut heard);
            liar.hears()
        });
        let (answer, fd) = liar.hear();
        assert_eq!(answer[..2], [2, 0]);
        assert_eq!(answer[2..], lines.to_le_bytes());
        (liar, Segment::map(fd.expect("memory"), 256 + lines as usize * 64))
    }

    pub fn say(&self, bytes: &[u8], fd: Option<BorrowedFd<'_>>) {
        assert!(self.says(bytes, fd), "{}", std::io::Error::last_os_error());
    }

    /// Sends bytes, and a descriptor if one is given. Returns true if the kernel took both.
    pub fn says(&self, bytes: &[u8], fd: Option<BorrowedFd<'_>>) -> bool {
        self.passes(bytes, fd.as_slice()).is_ok()
    }

    /// Sends bytes, and passes descriptors with the bytes, which the kernel may refuse.
    pub fn passes(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> std::io::Result<()> {
        let mut iov = libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() };
        let mut control = [0u64; 130];
        // SAFETY: zero is a value for msghdr; the kernel reads live memory, which has room for as
        // many descriptors as a message may have.
        let sent = unsafe {
            let mut header: libc::msghdr = std::mem::zeroed();
            (header.msg_iov, header.msg_iovlen) = (&mut iov, 1);
            if !fds.is_empty() {
                let len = libc::CMSG_LEN(4 * fds.len() as u32) as usize;
                assert!(len <= size_of_val(&control), "no message has so many");
                header.msg_control = control.as_mut_ptr().cast();
                header.msg_controllen = len;
                let first = libc::CMSG_FIRSTHDR(&header);
                (*first).cmsg_level = libc::SOL_SOCKET;
                (*first).cmsg_type = libc::SCM_RIGHTS;
                (*first).cmsg_len = len;
                let places = libc::CMSG_DATA(first).cast::<i32>();
                for (place, fd) in fds.iter().enumerate() {
                    places.add(place).write_unaligned(fd.as_raw_fd());
                }
            }
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            libc::sendmsg(self.0.as_raw_fd(), &header, flags)
        };
        if sent < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Whether the other end hangs up, sooner or later; what it says before is passed over.
    pub fn is_hung_up_on(&self) -> bool {
        readable(self.0.as_fd(), PATIENCE) && {
            let mut byte = 0u8;
            let (to, fd) = (ptr::from_mut(&mut byte).cast(), self.0.as_raw_fd());
            // SAFETY: the kernel writes at most the one byte that it is told of.
            let len = unsafe { libc::recv(fd, to, 1, 0) };
            len <= 0 || self.is_hung_up_on()
        }
    }

    pub fn hears(&self) -> bool {
        readable(self.0.as_fd(), Duration::ZERO)
    }

    pub fn hear(&self) -> (Vec<u8>, Option<OwnedFd>) {
        let mut bytes = vec![0; 200];
        let mut iov = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let mut control = [0u64; 3];
        // SAFETY: zero is a value for msghdr; the kernel writes to live memory, and what it writes
        // as a descriptor is new and nobody else's.
        unsafe {
            let mut header: libc::msghdr = std::mem::zeroed();
            (header.msg_iov, header.msg_iovlen) = (&mut iov, 1);
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = 24;
            let mut len = libc::recvmsg(self.0.as_raw_fd(), &mut header, 0);
            // The other end has not read everything, and was closed: so much is told first.
            let reset =
                len < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ECONNRESET);
            if reset {
                len = libc::recvmsg(self.0.as_raw_fd(), &mut header, 0);
            }
            let len = ok(len as i32);
            bytes.truncate(len as usize);
            let first = libc::CMSG_FIRSTHDR(&header);
            let fd = (!first.is_null()).then(|| {
                let fd = libc::CMSG_DATA(first).cast::<i32>().read_unaligned();
                OwnedFd::from_raw_fd(fd)
            });
            (bytes, fd)
        }
    }
}

/// The memory of a link, as whoever else maps it can write it.
pub struct Segment {
    pub fd: OwnedFd,
    pub words: &'static [AtomicU64],
    /// The bytes of a ring.
    ring: usize,
}

impl Segment {
    fn map(fd: OwnedFd, ring: usize) -> Self {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let (null, raw) = (ptr::null_mut(), fd.as_raw_fd());
        // SAFETY: the kernel chooses the place; it is unmapped when this is dropped.
        let words = unsafe {
            let at = libc::mmap(null, 2 * ring, protection, libc::MAP_SHARED, raw, 0);
            assert_ne!(at, libc::MAP_FAILED);
            std::slice::from_raw_parts(at.cast(), 2 * ring / 8)
        };
        Self { fd, words, ring }
    }

    /// What the device reads: its progress, whether it sleeps, and the ring, by words.
    pub fn outgoing(&self) -> &[AtomicU64] {
        &self.words[..self.ring / 8]
    }

    /// What the device writes.
    pub fn incoming(&self) -> &[AtomicU64] {
        &self.words[self.ring / 8..]
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: nobody keeps the words any longer.
        unsafe { libc::munmap(self.words.as_ptr().cast_mut().cast(), 2 * self.ring) };
    }
}

/// Someone who has taken a name and answers what it likes.
pub struct Impostor {
    pub listener: OwnedFd,
    pub address: Address,
}

impl Impostor {
    pub fn new() -> Self {
        Self::by_name(&name("impostor"))
    }

    pub fn by_name(name: &str) -> Self {
        let impostor = Self::deaf(name);
        // SAFETY: the call touches no memory.
        ok(unsafe { libc::listen(impostor.listener.as_raw_fd(), 1) });
        impostor
    }

    /// Takes a name, by which nobody can connect.
    pub fn deaf(name: &str) -> Self {
        let (listener, (address, len)) = (socket(), address(name));
        // SAFETY: the kernel reads the length that it is told.
        ok(unsafe { libc::bind(listener.as_raw_fd(), ptr::from_ref(&address).cast(), len) });
        Self { listener, address: Address::Shm(name.into()) }
    }

    /// Calls the impostor itself, until nobody else can call.
    pub fn fill(&self) -> Vec<OwnedFd> {
        let Address::Shm(name) = &self.address else { panic!("{}", self.address) };
        let (address, len) = address(name);
        let another = || {
            let socket = socket();
            // SAFETY: the calls touch no memory but what the kernel reads, of the length that it is
            // told.
            let connected = unsafe {
                let fd = socket.as_raw_fd();
                ok(libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK));
                libc::connect(fd, ptr::from_ref(&address).cast(), len)
            };
            (connected == 0).then_some(socket)
        };
        std::iter::from_fn(another).collect()
    }

    pub fn accept(&self) -> Liar {
        // SAFETY: the descriptor is new and nobody else's.
        unsafe {
            let fd = libc::accept(self.listener.as_raw_fd(), ptr::null_mut(), ptr::null_mut());
            Liar(OwnedFd::from_raw_fd(ok(fd)))
        }
    }
}

/// A file in memory of some size and with some seals.
pub fn memory(len: i64, seals: i32) -> OwnedFd {
    // SAFETY: the descriptor is new and nobody else's.
    unsafe {
        let fd = ok(libc::memfd_create(c"liar".as_ptr(), libc::MFD_ALLOW_SEALING));
        ok(libc::ftruncate(fd, len));
        ok(libc::fcntl(fd, libc::F_ADD_SEALS, seals));
        OwnedFd::from_raw_fd(fd)
    }
}
