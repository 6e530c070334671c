//! Limits that the system sets to a process, and errors that name them.

use std::error::Error;
use std::fmt;
use std::io;

/// A limit that stands in the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Limit {
    /// This process has as many open files as it may have.
    Descriptors,
    /// The whole system has.
    SystemDescriptors,
    /// A file, or memory that is shared by a descriptor, would be longer than this process may make
    /// one.
    FileSize,
}

impl Limit {
    /// The limit that an error is about, if it was made by [`refused`](Self::refused).
    pub fn behind(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref::<Refused>().map(|refused| refused.limit)
    }

    /// The limit that an error of a system call means.
    pub fn of(error: &io::Error) -> Option<Self> {
        match error.raw_os_error()? {
            libc::EMFILE => Some(Self::Descriptors),
            libc::ENFILE => Some(Self::SystemDescriptors),
            libc::EFBIG => Some(Self::FileSize),
            _ => None,
        }
    }

    /// The error of something that the limit did not allow.
    pub fn refused(self, what: &str) -> io::Error {
        let kind = match self {
            Self::Descriptors | Self::SystemDescriptors => io::ErrorKind::QuotaExceeded,
            Self::FileSize => io::ErrorKind::FileTooLarge,
        };
        io::Error::new(kind, Refused { what: what.to_owned(), limit: self })
    }
}

/// The same error, which names the limit of this process's that it means, if it means one: of
/// descriptors, say. An error of the system says only that there are too many.
pub fn naming_limits(error: io::Error) -> io::Error {
    match Limit::of(&error) {
        Some(limit) => limit.refused(&error.to_string()),
        None => error,
    }
}

/// That something was not allowed by a limit.
#[derive(Debug)]
struct Refused {
    what: String,
    limit: Limit,
}

impl Error for Refused {}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.what)?;
        match self.limit {
            Limit::Descriptors => write!(
                f,
                "this process has all of the {} file descriptors that it may have (RLIMIT_NOFILE); \
                 close some, or allow more with `ulimit -n`",
                value(libc::RLIMIT_NOFILE)
            ),
            Limit::SystemDescriptors => {
                f.write_str("the system has no file descriptor left (`sysctl fs.file-max`)")
            }
            Limit::FileSize => write!(
                f,
                "this process may make no file, nor memory that is shared by a descriptor, of more \
                 than {} bytes (RLIMIT_FSIZE); allow more with `ulimit -f`",
                value(libc::RLIMIT_FSIZE)
            ),
        }
    }
}

/// The value of a limit.
pub(crate) fn value(which: libc::__rlimit_resource_t) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the kernel writes a live structure; if it does not, that says that there is no limit.
    unsafe { libc::getrlimit(which, &mut limit) };
    limit.rlim_cur
}
