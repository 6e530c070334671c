//! Another user, who is a thread here: it takes root to become one.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr;

use doorbell_kit::lab::passed_over;
use doorbell_transports::sharing::{Membership, SharingError};

use crate::process::*;

/// Of the system calls that are made here: none is to fail.
#[track_caller]
fn ok(result: libc::c_int) -> libc::c_int {
    assert!(result >= 0, "{}", std::io::Error::last_os_error());
    result
}

/// Does something as another user; not at all, if that can't be.
fn as_another_user<R: Send>(does: impl FnOnce() -> R + Send) -> Option<R> {
    // SAFETY: the call touches no memory.
    if unsafe { libc::geteuid() } != 0 {
        passed_over("only root can become another user");
        return None;
    }
    let another = || {
        // By the system call itself, for the library's would change all threads.
        // SAFETY: the call touches no memory.
        ok(unsafe { libc::syscall(libc::SYS_setresuid, -1, 65534, -1) } as i32);
        does()
    };
    std::thread::scope(|scope| scope.spawn(another).join().ok())
}

/// A connection to whoever owns what a key stands for.
fn call(key: &str) -> File {
    let name = format!("doorbell-owner/{key}");
    // SAFETY: zero is a value for the address; the kernel reads the length that it is told; the
    // descriptor is new and nobody else's.
    unsafe {
        let socket = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0);
        let socket = File::from_raw_fd(ok(socket));
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        address.sun_family = libc::AF_UNIX as u16;
        for (to, from) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        let len = (2 + 1 + name.len()) as u32;
        ok(libc::connect(socket.as_raw_fd(), ptr::from_ref(&address).cast(), len));
        socket
    }
}

#[test]
fn another_user_is_told_that_it_cannot_share_and_is_hung_up_on_if_it_tries() {
    let key = key();
    let mut process = Process::start(&key);
    let tried = as_another_user(|| {
        let refused = Membership::join(&key).err();
        (refused, call(&key).read(&mut [0]).ok())
    });
    if let Some((refused, read)) = tried {
        assert!(matches!(refused, Some(SharingError::Stranger { .. })), "{refused:?}");
        assert_eq!(read, Some(0), "it was hung up on");
    }
    assert!(process.state().there.is_empty());
}

#[test]
fn where_another_user_is_the_owner_not_even_root_shares() {
    let key = key();
    if let Some(theirs) = as_another_user(|| Membership::join(&key)) {
        let _theirs = theirs.expect("a membership");
        let refused = Membership::join(&key).err();
        assert!(matches!(refused, Some(SharingError::Stranger { .. })), "{refused:?}");
    }
}
