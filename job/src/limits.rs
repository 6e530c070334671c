//! The limit of file descriptors, which errors of the system do not name.

use std::io;

use libc::{EMFILE, ENFILE};
use nix::sys::resource::{Resource, getrlimit};

/// Whether an error says that there is no file descriptor left.
pub fn is_of_descriptors(why: &io::Error) -> bool {
    matches!(why.raw_os_error(), Some(EMFILE | ENFILE))
}

/// Names the limit in an error that says that there is no file descriptor left; returns any other
/// error as it is.
pub fn named(why: io::Error) -> io::Error {
    if !is_of_descriptors(&why) {
        return why;
    }
    let most = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(most, _)| most);
    let text = format!(
        "{why}: this process may have {most} file descriptors (RLIMIT_NOFILE); allow more with \
         `ulimit -n`"
    );
    io::Error::new(why.kind(), text)
}

/// Checks that this process may open so many descriptors for something, beside those that it has.
///
/// # Errors
/// When the limit does not allow it: which one, and how many are needed.
pub fn check_descriptors(needed: usize, what: &str) -> io::Result<()> {
    let (most, _) = getrlimit(Resource::RLIMIT_NOFILE)?;
    // The folder itself is one while it is read.
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |all| all.count().saturating_sub(1));
    let all = (open + needed) as u64;
    if all <= most {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::QuotaExceeded,
        format!(
            "{what} takes {needed} file descriptors, and this process has {open} of the {most} that \
             it may have (RLIMIT_NOFILE); allow at least {all} with `ulimit -n`"
        ),
    ))
}
