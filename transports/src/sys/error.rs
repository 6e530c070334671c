//! Errors of system calls, with what was tried and, where that is the cause, the limit of the
//! process.

use std::io;

use rustix::io::Errno;

use super::limit::Limit;

/// Results of system calls, whose errors can say what was tried.
pub(crate) trait Context<T> {
    /// Puts what was tried in front of the error's text. If a limit of this process is behind the
    /// error, the new error names the limit; if a device does not exist, the error is of the kind
    /// `NotFound`.
    fn context(self, tried: &str) -> io::Result<T>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn context(self, tried: &str) -> io::Result<T> {
        self.map_err(|why| describe(why.into(), tried))
    }
}

fn describe(found: io::Error, tried: &str) -> io::Error {
    if let Some(limit) = Limit::of(&found) {
        return limit.refused(tried);
    }
    let gone = matches!(Errno::from_io_error(&found), Some(Errno::NODEV | Errno::NXIO));
    let kind = if gone { io::ErrorKind::NotFound } else { found.kind() };
    io::Error::new(kind, format!("{tried}: {found}"))
}
