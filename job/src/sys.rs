//! What takes unsafe code: descriptors that go from one process to the next, and variables that
//! must not.
//!
//! A descriptor that a process has inherited is known by a number in an environment variable. That
//! the number may be used is vouched for by whoever has started the process: the descriptor was
//! open when the program began, and the variable gives it to whoever reads the variable. So the
//! number is read here, from the environment of this process and from nowhere else:
//! [`Environment`](crate::Environment), which a program can fill with anything, is only a copy.
//!
//! All this rests on the program leaving these variables as they were when it began. In a crate of
//! edition 2024 no safe code can change them, since `std::env::set_var` is unsafe there. In a crate
//! of an earlier edition `set_var` is safe, and safe code can have this module take a descriptor
//! of any number that another part of the program owns.
//!
//! A variable may also be out of date, and then the number may be of nothing, or of a descriptor
//! that another part of the program has opened since. For both reasons the descriptor is duplicated
//! before anything else: the system does that for whatever has the number at that moment, or
//! refuses. What is looked at and used after that is the duplicate, which nobody else closes. A
//! duplicate that is no connected Unix stream socket is closed again without having been read or
//! written.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
#[cfg(target_env = "gnu")]
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use socket2::{Domain, SockRef, Type};

use crate::error::JobError;
use crate::report::report;

/// The socket that a variable of this process's environment names, as a descriptor of its own that
/// is closed where a program is executed. `None` if the variable is not set. The named descriptor
/// stays as it is.
///
/// # Errors
/// When the variable is no number, or that of a standard descriptor, of none that is open, or of
/// one that is no connected Unix stream socket.
pub fn inherited(variable: &'static str) -> Result<Option<UnixStream>, JobError> {
    let Some(number) = number(variable)? else { return Ok(None) };
    let refused = |found: String| JobError::Descriptor { variable, number, found };
    if (0..=2).contains(&number) {
        return Err(refused("a standard descriptor, which is somebody else's".to_owned()));
    }
    let first_free = 3;
    // SAFETY: a plain system call, with a number for which the environment vouches: see above.
    let duplicate = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, first_free) };
    if duplicate < 0 {
        let why = io::Error::last_os_error();
        return Err(refused(match why.raw_os_error() {
            Some(libc::EBADF) => "not open".to_owned(),
            _ => why.to_string(),
        }));
    }
    // SAFETY: the system has just made the descriptor, for nobody else.
    let duplicate = unsafe { OwnedFd::from_raw_fd(duplicate) };
    match strange(&duplicate) {
        Some(found) => Err(refused(found)),
        None => Ok(Some(UnixStream::from(duplicate))),
    }
}

/// Takes the socket that a variable of this process's environment names for this process alone: as
/// [`inherited`], and the named descriptor is closed, too, where a program is executed.
///
/// # Errors
/// As [`inherited`].
pub fn taken(variable: &'static str) -> Result<Option<UnixStream>, JobError> {
    let socket = inherited(variable)?;
    if socket.is_some()
        && let Some(number) = number(variable)?
    {
        // SAFETY: a plain system call, with a number for which the environment vouches: see above.
        // It changes nothing for this program.
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(socket)
}

fn number(variable: &'static str) -> Result<Option<RawFd>, JobError> {
    let found = std::env::var_os(variable).filter(|found| !found.is_empty());
    let Some(found) = found else { return Ok(None) };
    let number = found.to_str().and_then(|text| text.parse().ok());
    let wrong = || JobError::Environment {
        variable,
        found: found.to_string_lossy().into_owned(),
        expected: "the number of a descriptor",
    };
    number.filter(|&number| number >= 0).map(Some).ok_or_else(wrong)
}

/// A description of a descriptor that is no connected Unix stream socket; `None` if it is one.
fn strange(descriptor: &OwnedFd) -> Option<String> {
    let socket = SockRef::from(descriptor);
    let Ok(domain) = socket.domain() else {
        let path = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
        let path = std::fs::read_link(path).unwrap_or_default();
        return Some(format!("no socket, but {}", path.display()));
    };
    match (domain, socket.r#type()) {
        (Domain::UNIX, Ok(Type::STREAM)) if socket.peer_addr().is_ok() => None,
        (Domain::UNIX, Ok(Type::STREAM)) => Some("a Unix socket that is not connected".to_owned()),
        (domain, kind) => {
            let kind = kind.map_or(-1, i32::from);
            Some(format!("a socket of family {} and type {kind}", i32::from(domain)))
        }
    }
}

/// Has the process that a command starts inherit a descriptor, under the number that it has here.
/// No other process inherits it.
pub fn pass_on(command: &mut Command, descriptor: OwnedFd) {
    let keeps = move || {
        // SAFETY: a plain system call on a live descriptor.
        match unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, 0) } {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: `keeps` makes a system call and nothing else, and allocates nothing.
    unsafe { command.pre_exec(keeps) };
}

/// Removes variables from the environment of this process, if that is possible: if no other thread
/// is there that may be reading the environment. Returns whether it was.
pub fn forget(variables: &[&str]) -> bool {
    let threads = std::fs::read_dir("/proc/self/task");
    if threads.is_ok_and(|threads| threads.count() == 1) {
        for variable in variables {
            // SAFETY: this thread is the only one, so nobody reads or changes the environment
            // meanwhile.
            unsafe { std::env::remove_var(variable) };
        }
        return true;
    }
    false
}

/// The rank of this process plus one, while it must not end with status 0.
static ENDS_BADLY: AtomicUsize = AtomicUsize::new(0);
#[cfg(target_env = "gnu")]
static REGISTERED: Once = Once::new();

/// While it lives, this process can't end by `exit` with status 0: its status is 1 then. For a
/// process of a job that is not over, which others need: launchers of MPI programs take status 0
/// for success. Does nothing where the C library is not glibc, for others do not tell the status.
#[derive(Debug)]
pub struct NoSuccess(());

impl NoSuccess {
    /// The guard of the process of a rank; a process has one at a time.
    pub fn of(rank: usize) -> Self {
        ENDS_BADLY.store(rank + 1, Ordering::Relaxed);
        #[cfg(target_env = "gnu")]
        REGISTERED.call_once(|| {
            // SAFETY: the function is of the type that the C library asks for, lives as long as the
            // program, and does not unwind.
            unsafe { on_exit(exits, std::ptr::null_mut()) };
        });
        Self(())
    }
}

impl Drop for NoSuccess {
    fn drop(&mut self) {
        ENDS_BADLY.store(0, Ordering::Relaxed);
    }
}

#[cfg(target_env = "gnu")]
unsafe extern "C" {
    /// Has a function called when the program ends by `exit` or from `main`, with the status.
    fn on_exit(
        function: extern "C" fn(libc::c_int, *mut libc::c_void),
        argument: *mut libc::c_void,
    ) -> libc::c_int;
}

#[cfg(target_env = "gnu")]
extern "C" fn exits(status: libc::c_int, _: *mut libc::c_void) {
    let Some(rank) = ENDS_BADLY.load(Ordering::Relaxed).checked_sub(1) else { return };
    if status & 0xFF != 0 {
        return;
    }
    report(&format!(
        "doorbell: process {rank} has ended with status 0 before the job was over, and so gets \
         status 1\n"
    ));
    // SAFETY: the call writes what C code has printed and not written yet.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    // SAFETY: the call ends the process.
    unsafe { libc::_exit(1) };
}
