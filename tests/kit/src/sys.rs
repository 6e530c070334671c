//! The kit's system calls, and all of its unsafe code but the allocator's.

use std::ffi::CString;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::time::Duration;

use libc::c_int;

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Stops a child process, and waits until it has stopped.
pub(crate) fn stop(child: u32) -> io::Result<()> {
    let (child, mut status) = (child as libc::pid_t, 0);
    // SAFETY: plain system calls; the status is written to a live variable.
    unsafe {
        check(libc::kill(child, libc::SIGSTOP))?;
        check(libc::waitpid(child, &raw mut status, libc::WUNTRACED))?;
    }
    Ok(())
}

/// Continues a child process that was stopped.
pub(crate) fn resume(child: u32) -> io::Result<()> {
    // SAFETY: a plain system call.
    check(unsafe { libc::kill(child as libc::pid_t, libc::SIGCONT) }).map(drop)
}

/// Moves this thread, and no other, into a new network namespace.
pub(crate) fn leave_network() -> io::Result<()> {
    // SAFETY: a plain system call.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
}

/// Moves this thread, and no other, into a network namespace.
pub(crate) fn enter_network(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: a plain system call on a live descriptor.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Has a command run in a network namespace.
pub(crate) fn run_in_network(command: &mut Command, namespace: OwnedFd) {
    let enter = move || enter_network(namespace.as_fd());
    // SAFETY: `enter` makes a system call and nothing else.
    unsafe { command.pre_exec(enter) };
}

/// Has a command run in a user namespace of its own, as root there, and in a new network namespace.
///
/// A process with several threads can't enter a user namespace, but between fork and exec the child
/// has a single thread.
pub(crate) fn run_in_user_namespace(command: &mut Command) {
    // SAFETY: plain system calls.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let text = |text: String| CString::new(text).expect("text without zeros");
    let files = [
        (c"/proc/self/setgroups", text("deny".to_owned())),
        (c"/proc/self/uid_map", text(format!("0 {user} 1"))),
        (c"/proc/self/gid_map", text(format!("0 {group} 1"))),
    ];
    let enter = move || {
        // SAFETY: a plain system call.
        check(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) })?;
        for (path, text) in &files {
            let text = text.as_bytes();
            // SAFETY: the path ends with a zero, and the kernel reads the bytes of a live slice.
            unsafe {
                let file = check(libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC))?;
                let written = libc::write(file, text.as_ptr().cast(), text.len());
                libc::close(file);
                check(written as c_int)?;
            }
        }
        Ok(())
    };
    // SAFETY: `enter` makes system calls and nothing else: what it needs was allocated before.
    unsafe { command.pre_exec(enter) };
}

/// Has a command killed when the thread that has spawned it ends.
pub fn die_with_parent(command: &mut Command) {
    let ask = || {
        // SAFETY: a plain system call.
        check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }).map(drop)
    };
    // SAFETY: `ask` makes a system call and nothing else.
    unsafe { command.pre_exec(ask) };
}

/// Has a command run in a user namespace that maps no user numbers, not even the command's own.
pub(crate) fn run_without_users(command: &mut Command) {
    let enter = || {
        // SAFETY: a plain system call.
        check(unsafe { libc::unshare(libc::CLONE_NEWUSER) }).map(drop)
    };
    // SAFETY: `enter` makes a system call and nothing else.
    unsafe { command.pre_exec(enter) };
}

/// The number of the user `bin`, or whatever name a system gives to its second user. That user owns
/// nothing, has only the rights that everybody has, and has a name, which launchers ask for. The
/// number 65534 is not used, since it stands for all users without a number in a user namespace.
const NOBODY: libc::uid_t = 2;

/// The number of an ordinary user, if this process is root and may [become](run_as) that user; in a
/// user namespace there may be no other user.
pub fn ordinary_user() -> Option<u32> {
    // SAFETY: a plain system call.
    let is_root = unsafe { libc::geteuid() } == 0;
    let users = std::fs::read_to_string("/proc/self/uid_map").ok()?;
    let is_there = users.lines().any(|line| {
        let mut numbers = line.split_whitespace().map_while(|number| number.parse().ok());
        let (first, _, many): (_, Option<u64>, _) =
            (numbers.next(), numbers.next(), numbers.next());
        let nobody = u64::from(NOBODY);
        first.zip(many).is_some_and(|(first, many)| (first..first + many).contains(&nobody))
    });
    (is_root && is_there).then_some(NOBODY)
}

/// Has a command run as a user and as the group of the same number, without other groups. Anything
/// that the command does as root must be set up before, and [its death with the
/// parent](die_with_parent) after, since a change of the user resets that.
pub fn run_as(command: &mut Command, user: u32) {
    let become_user = move || {
        // SAFETY: plain system calls, of which the first reads no list, for it has no entries.
        unsafe {
            check(libc::setgroups(0, ptr::null()))?;
            check(libc::setgid(user))?;
            check(libc::setuid(user)).map(drop)
        }
    };
    // SAFETY: `become_user` makes system calls and nothing else.
    unsafe { command.pre_exec(become_user) };
}

/// Keeps a descriptor open as long as a command exists, and in the command's process until that
/// runs the program.
pub(crate) fn hold(command: &mut Command, descriptor: OwnedFd) {
    let holds = move || {
        let _ = &descriptor;
        Ok(())
    };
    // SAFETY: `holds` does nothing.
    unsafe { command.pre_exec(holds) };
}

/// Returns whether the kernel runs a filter on packets to a socket.
///
/// # Errors
/// When there is no socket with that descriptor.
pub fn is_filtered(socket: RawFd) -> io::Result<bool> {
    let mut steps: libc::socklen_t = 0;
    // SAFETY: of room for nothing, the kernel writes only how many steps the filter has.
    let told = unsafe {
        let (level, name) = (libc::SOL_SOCKET, libc::SO_GET_FILTER);
        libc::getsockopt(socket, level, name, ptr::null_mut(), &mut steps)
    };
    check(told).map(|_| steps > 0)
}

/// Waits until a descriptor is readable, for at most the time given. Returns whether it is.
///
/// # Panics
/// When the system can't wait for the descriptor.
pub fn readable(fd: BorrowedFd<'_>, at_most: Duration) -> bool {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let millis = at_most.as_millis().try_into().unwrap_or(c_int::MAX);
    loop {
        // SAFETY: the kernel reads and writes one live entry.
        match check(unsafe { libc::poll(&mut poll, 1, millis) }) {
            Ok(ready) => return ready > 0,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => panic!("poll: {why}"),
        }
    }
}

/// Opens a terminal with a number of columns. Returns the side that reads what is written to the
/// terminal, and the side for programs. When no program has its side open any more, reading the
/// other side ends with an error.
///
/// # Errors
/// When the system has no more terminals.
pub fn terminal(columns: u16) -> io::Result<(OwnedFd, OwnedFd)> {
    let how = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    let size = libc::winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: plain system calls on live descriptors, of which each is new and nobody else's; the
    // kernel reads a live size.
    unsafe {
        let seen = OwnedFd::from_raw_fd(check(libc::posix_openpt(how))?);
        check(libc::unlockpt(seen.as_raw_fd()))?;
        let had = check(libc::ioctl(seen.as_raw_fd(), libc::TIOCGPTPEER, how))?;
        let had = OwnedFd::from_raw_fd(had);
        check(libc::ioctl(had.as_raw_fd(), libc::TIOCSWINSZ, &size))?;
        Ok((seen, had))
    }
}

/// Opens a raw socket, which sends IP packets with the headers that it is given.
pub(crate) fn raw_socket(v6: bool) -> io::Result<OwnedFd> {
    let family = if v6 { libc::AF_INET6 } else { libc::AF_INET };
    // SAFETY: the descriptor is new and nobody else's.
    unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        Ok(OwnedFd::from_raw_fd(check(libc::socket(family, kind, libc::IPPROTO_RAW))?))
    }
}

/// Sends an IP packet by a raw socket of the packet's family.
pub(crate) fn send_raw(socket: BorrowedFd<'_>, packet: &[u8], to: IpAddr) -> io::Result<()> {
    let (fd, bytes, len) = (socket.as_raw_fd(), packet.as_ptr().cast(), packet.len());
    let sent = match to {
        IpAddr::V4(ip) => {
            let to = libc::sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: 0,
                sin_addr: libc::in_addr { s_addr: u32::from(ip).to_be() },
                sin_zero: [0; 8],
            };
            let (name, size) = (ptr::from_ref(&to).cast(), size_of_val(&to) as libc::socklen_t);
            // SAFETY: the kernel reads a live slice and a live address, of the lengths that it is
            // told.
            unsafe { libc::sendto(fd, bytes, len, 0, name, size) }
        }
        IpAddr::V6(ip) => {
            let to = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as u16,
                sin6_port: 0,
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: ip.octets() },
                sin6_scope_id: 0,
            };
            let (name, size) = (ptr::from_ref(&to).cast(), size_of_val(&to) as libc::socklen_t);
            // SAFETY: as above.
            unsafe { libc::sendto(fd, bytes, len, 0, name, size) }
        }
    };
    check(sent as c_int).map(drop)
}

/// Limits the descriptors of this process to numbers below `most`; for tests in a process of their
/// own.
///
/// # Panics
/// When the hard limit of the process is lower.
pub fn limit_descriptors(most: u64) {
    limit(libc::RLIMIT_NOFILE, most);
}

/// Limits the size of files that this process makes, or ends the limit if no size is given; for
/// tests in a process of their own.
///
/// # Panics
/// When the hard limit of the process is lower.
pub fn limit_file_size(most: Option<u64>) {
    limit(libc::RLIMIT_FSIZE, most.unwrap_or(libc::RLIM_INFINITY));
}

/// Limits the address space of this process, or ends the limit if no size is given; for tests in a
/// process of their own.
///
/// # Panics
/// When the hard limit of the process is lower.
pub fn limit_addresses(most: Option<u64>) {
    limit(libc::RLIMIT_AS, most.unwrap_or(libc::RLIM_INFINITY));
}

fn limit(which: libc::__rlimit_resource_t, most: u64) {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes a live structure, and reads it.
    let done = unsafe {
        check(libc::getrlimit(which, &mut now)).and_then(|_| {
            now.rlim_cur = most;
            check(libc::setrlimit(which, &now))
        })
    };
    done.expect("a limit may be lowered, and raised to what it was");
}
