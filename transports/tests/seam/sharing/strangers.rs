//! Another user of the machine, in the way of processes that share.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr;

use doorbell_kit::{child, stranger};
use doorbell_transports::sharing::{Membership, SharingError};

use crate::sharing::process::*;

/// Of the system calls that are made here: none is to fail.
#[track_caller]
fn ok(result: libc::c_int) -> libc::c_int {
    assert!(result >= 0, "{}", std::io::Error::last_os_error());
    result
}

/// A socket, and the abstract address of a name.
fn socket(name: &str) -> (File, libc::sockaddr_un, u32) {
    // SAFETY: zero is a value for the address; the descriptor is new and nobody else's.
    unsafe {
        let socket = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0);
        let socket = File::from_raw_fd(ok(socket));
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        address.sun_family = libc::AF_UNIX as u16;
        for (to, from) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        (socket, address, (2 + 1 + name.len()) as u32)
    }
}

/// A connection to whoever owns what a key stands for.
fn call(key: &str) -> File {
    let (socket, address, len) = socket(&format!("doorbell-owner/{key}"));
    // SAFETY: the kernel reads the length that it is told.
    ok(unsafe { libc::connect(socket.as_raw_fd(), ptr::from_ref(&address).cast(), len) });
    socket
}

/// Has a name, until what is returned is dropped, and nobody can connect to it.
fn take(name: &str) -> File {
    let (socket, address, len) = socket(name);
    // SAFETY: the kernel reads the length that it is told.
    ok(unsafe { libc::bind(socket.as_raw_fd(), ptr::from_ref(&address).cast(), len) });
    socket
}

/// The stranger's user, as errors name that user.
fn who() -> String {
    format!("user {}", stranger::user().expect("the stranger runs as one"))
}

#[test]
fn another_user_is_told_that_it_cannot_share_and_is_hung_up_on_if_it_tries() {
    const TEST: &str = "sharing::strangers::another_user_is_told_that_it_cannot_share_and_is_hung_up_on_if_it_tries";
    if child::part().is_some() {
        let key = child::listen().expect("the parent says which");
        let refused = Membership::join(&key).expect_err("it is another user's");
        assert!(matches!(refused, SharingError::Stranger { .. }), "{refused:?}");
        child::tell(refused);
        return child::tell(format!("{:?}", call(&key).read(&mut [0]).ok()));
    }
    let key = key();
    let Some(mut stranger) = stranger::start(TEST, "stranger") else { return };
    let mut process = Process::start(&key);
    stranger.say(&key);
    let refused = stranger.hear();
    assert!(refused.contains("of user 0, and this process runs as user"), "{refused}");
    assert_eq!(stranger.hear(), "Some(0)", "it was hung up on");
    stranger.end();
    assert!(process.state().there.is_empty());
}

#[test]
fn where_another_user_is_the_owner_not_even_root_shares_and_is_told_who_that_is() {
    const TEST: &str = "sharing::strangers::where_another_user_is_the_owner_not_even_root_shares_and_is_told_who_that_is";
    if child::part().is_some() {
        let key = child::listen().expect("the parent says which");
        let theirs = Membership::join(&key).expect("a membership");
        child::tell(std::process::id());
        child::listen();
        return drop(theirs);
    }
    let key = key();
    let Some(mut stranger) = stranger::start(TEST, "stranger") else { return };
    stranger.say(&key);
    let who = format!("process {} of {}", stranger.hear(), who());
    let refused = Membership::join(&key).expect_err("it is another user's");
    assert!(matches!(refused, SharingError::Stranger { .. }), "{refused:?}");
    assert!(refused.to_string().contains(&who), "{refused}");
}

/// A process that came where another user had the owner's name, and did not listen, waited for
/// ever, and no error named that user. Where all tags were another user's, the error said to end
/// processes.
#[test]
fn where_another_user_has_the_owners_name_or_all_tags_whoever_comes_is_told_who_that_is() {
    const TEST: &str = "sharing::strangers::\
        where_another_user_has_the_owners_name_or_all_tags_whoever_comes_is_told_who_that_is";
    // Other tests start processes, and each has all descriptors for a moment, and with them names
    // that were just given back.
    child::alone(|| {
        if child::part().as_deref() == Some("stranger") {
            let key = child::listen().expect("the parent says which");
            let owner = take(&format!("doorbell-owner/{key}"));
            child::tell("owner");
            child::listen();
            drop(owner);
            let tags: Vec<_> =
                (1..64).map(|tag| take(&format!("doorbell-tag/{tag}/{key}"))).collect();
            child::tell("tags");
            child::listen();
            return drop(tags);
        }
        let key = key();
        let Some(mut stranger) = stranger::start(TEST, "stranger") else { return };
        stranger.say(&key);
        for taken in ["owner", "tags"] {
            assert_eq!(stranger.hear(), taken);
            let refused = Membership::join(&key).expect_err("all of it is taken").to_string();
            assert!(refused.contains(&format!("a process of {}", who())), "{refused}");
            stranger.say("seen");
        }
        stranger.end();
    });
}

/// The owner's process ends, and before another of this user takes its name, a stranger does.
#[test]
fn a_member_whose_owner_ends_and_whose_name_a_stranger_takes_says_who_that_is() {
    const TEST: &str = "sharing::strangers::a_member_whose_owner_ends_and_whose_name_a_stranger_takes_says_who_that_is";
    // Other tests start processes, and each has all descriptors for a moment, and with them names
    // that were just given back.
    child::alone(|| {
        if child::part().as_deref() == Some("stranger") {
            let name =
                format!("doorbell-owner/{}", child::listen().expect("the parent says which"));
            let held = take(&name);
            child::tell("taken");
            child::listen();
            return drop(held);
        }
        let key = key();
        let Some(mut stranger) = stranger::start(TEST, "stranger") else { return };
        let owner = Membership::join(&key).expect("a membership");
        let mut member = Membership::join(&key).expect("a membership");
        // The member has yet to hear that the owner is gone.
        drop(owner);
        stranger.say(&key);
        assert_eq!(stranger.hear(), "taken");
        doorbell_kit::until("trouble that names the stranger", || {
            while member.turn().is_some() {}
            let trouble = member.trouble()?.to_string();
            trouble.contains(&format!("a process of {}", who())).then_some(())
        });
    });
}

/// Descriptors are nothing that those who share would send, and so the kernel takes none for them.
#[test]
fn descriptors_that_are_passed_to_an_owner_are_not_kept() {
    child::alone(|| {
        let descriptors = || std::fs::read_dir("/proc/self/fd").expect("proc").count();
        let key = key();
        let mut owner = Membership::join(&key).expect("a membership");
        while owner.turn().is_some() {}
        let before = descriptors();
        for _ in 0..100 {
            let caller = call(&key);
            pass(&caller, &caller);
            while owner.turn().is_some() {}
            drop(caller);
        }
        doorbell_kit::until("the end of all that was passed", || {
            while owner.turn().is_some() {}
            (descriptors() <= before).then_some(())
        });
    });
}

/// Passes a descriptor with a message that says nothing, if the kernel lets it.
fn pass(by: &File, descriptor: &File) {
    let mut byte = 0u8;
    let mut iov = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut control = [0u64; 3];
    // SAFETY: zero is a value for msghdr; the kernel reads live memory.
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        (header.msg_iov, header.msg_iovlen) = (&mut iov, 1);
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_LEN(4) as usize;
        let first = libc::CMSG_FIRSTHDR(&header);
        (*first).cmsg_level = libc::SOL_SOCKET;
        (*first).cmsg_type = libc::SCM_RIGHTS;
        (*first).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(first).cast::<i32>().write_unaligned(descriptor.as_raw_fd());
        libc::sendmsg(by.as_raw_fd(), &header, libc::MSG_NOSIGNAL);
    }
}
