//! What peers pass, also on kernels that let everybody pass it, as all did before Linux 6.16.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

use super::*;
use crate::sys::deferred_close;

/// How long a test waits before it takes something to hang.
const HANGS: Duration = Duration::from_secs(60);

thread_local! {
    /// True if this thread's sockets act as on a kernel that lets everybody pass descriptors.
    pub(super) static KERNEL_LETS_ALL_IN: Cell<bool> = const { Cell::new(false) };
}

/// Makes the sockets of this thread act as on a kernel before Linux 6.16.
pub(crate) fn let_all_in() {
    KERNEL_LETS_ALL_IN.set(true);
}

/// Locks the closing thread, which all tests of this process share, for one test.
pub(crate) fn closing_thread_alone() -> MutexGuard<'static, ()> {
    static TESTS: Mutex<()> = Mutex::new(());
    TESTS.lock().unwrap_or_else(PoisonError::into_inner)
}

static BUSY: Mutex<()> = Mutex::new(());

/// Keeps the closing thread at work until the guard is dropped, with as many descriptors waiting as
/// may wait.
pub(crate) fn keep_closing_thread_busy() -> MutexGuard<'static, ()> {
    let busy = BUSY.lock().unwrap_or_else(PoisonError::into_inner);
    let waits = |fd| {
        drop(BUSY.lock().unwrap_or_else(PoisonError::into_inner));
        drop(fd);
    };
    while deferred_close::has_room() {
        deferred_close::discard(File::open("/dev/null").expect("a descriptor").into(), waits);
    }
    busy
}

fn name() -> Vec<u8> {
    static NAMES: AtomicU32 = AtomicU32::new(0);
    let number = NAMES.fetch_add(1, Ordering::Relaxed);
    format!("doorbell-test/unix/{}/{number}", std::process::id()).into_bytes()
}

/// A socket whose close waits for an hour, unless the other end, which comes second, reads.
fn lingering() -> (OwnedFd, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut sender = TcpStream::connect(listener.local_addr().expect("a port")).expect("there");
    let (receiver, _) = listener.accept().expect("it has connected");
    set_socket_linger(&sender, Some(Duration::from_secs(3600))).expect("a socket");
    sender.set_nonblocking(true).expect("a socket");
    while sender.write(&[0; 64 << 10]).is_ok() {}
    (sender.into(), receiver)
}

/// Runs a function, and fails if it has not returned soon.
#[track_caller]
fn at_once(does: impl FnOnce() + Send) {
    let (tell, told) = channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            does();
            tell.send(()).expect("the test is there");
        });
        if told.recv_timeout(HANGS).is_err() {
            eprintln!("it hangs, and so would the end of this test");
            std::process::abort();
        }
    });
}

#[test]
fn a_kernel_that_can_refuse_descriptors_lets_in_none_before_a_peer_is_trusted() {
    let name = name();
    let listener = Listener::by_name(&name).expect("a free name");
    if listener.open {
        return eprintln!(
            "PASSED OVER: this kernel, older than Linux 6.16, lets everybody pass them"
        );
    }
    let null = File::open("/dev/null").expect("a file");
    let mut caller = Socket::connect(&name).expect("it listens");
    let refused = |from: &Socket| {
        let refused = from.send(b"a", Some(null.as_fd())).map_err(|why| why.kind());
        assert_eq!(refused, Err(io::ErrorKind::PermissionDenied));
    };
    refused(&caller);
    let mut called = listener.accept().expect("somebody has connected");
    refused(&caller);
    refused(&called);
    caller.let_descriptors_in();
    called.send(b"a", Some(null.as_fd())).expect("it may now");
    refused(&caller);
    called.let_descriptors_in();
    caller.send(b"a", Some(null.as_fd())).expect("it may now");
}

#[test]
fn a_descriptor_that_is_received_is_not_inherited_by_programs_that_are_started() {
    let [here, there] = Socket::pair().expect("a pair");
    let null = File::open("/dev/null").expect("a file");
    there.send(b"a", Some(null.as_fd())).expect("room");
    let received = here.receive(&mut [0; 2]).expect("a message");
    let ReceivedMessage::Message(1, Some(passed)) = received else { panic!("it has a descriptor") };
    let flags = rustix::io::fcntl_getfd(passed.look()).expect("a descriptor");
    assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
}

/// A stranger's connection was closed by the thread of the device, with what had been passed there,
/// and so was the listening socket with those who had not been accepted.
#[test]
fn sockets_in_which_what_lingers_was_passed_are_closed_at_once_by_whoever_drops_them() {
    let _alone = closing_thread_alone();
    let name = name();
    let mut unread = Vec::new();
    let mut call = || {
        let ((sender, receiver), caller) =
            (lingering(), Socket::connect(&name).expect("it listens"));
        caller.send(b"a", Some(sender.as_fd())).expect("room");
        // An empty message looks like the end of the connection.
        caller.send(b"", None).expect("room");
        caller.send(b"a", Some(sender.as_fd())).expect("room");
        unread.push(receiver);
        caller
    };
    let mut callers = Vec::new();
    let listener = {
        let (listens, by) = (channel(), name.clone());
        thread::scope(|scope| {
            scope.spawn(move || {
                let_all_in();
                listens.0.send(Listener::by_name(&by).expect("a free name")).expect("it waits");
            });
            listens.1.recv().expect("a socket")
        })
    };
    callers.extend((0..3).map(|_| call()));
    let accepted = listener.accept().expect("somebody has connected");
    assert!(accepted.open);
    at_once(move || drop(accepted));
    at_once(move || drop(listener));
    Listener::by_name(&name).expect("the name is free again");
}

#[test]
fn what_waits_to_be_closed_is_bounded_and_nobody_is_let_in_beyond_that() {
    let _alone = closing_thread_alone();
    let_all_in();
    let name = name();
    let listener = Listener::by_name(&name).expect("a free name");
    let _caller = Socket::connect(&name).expect("it listens");
    let busy = keep_closing_thread_busy();
    let refused = listener.accept().map(drop).map_err(|why| why.kind());
    assert_eq!(refused, Err(io::ErrorKind::ResourceBusy));
    // A descriptor for which there is no room is closed by this thread.
    static HERE: Mutex<Option<thread::ThreadId>> = Mutex::new(None);
    let null = File::open("/dev/null").expect("a descriptor");
    deferred_close::discard(null.into(), |_| {
        *HERE.lock().expect("no panic") = Some(thread::current().id());
    });
    assert_eq!(*HERE.lock().expect("no panic"), Some(thread::current().id()));
    drop(busy);
    while !deferred_close::has_room() {
        thread::yield_now();
    }
    listener.accept().expect("there is room again");
}
