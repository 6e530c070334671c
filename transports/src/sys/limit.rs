//! Limits that the system sets to a process, and errors that name them.

use std::error::Error;
use std::fmt;
use std::io;

use rustix::io::Errno;
use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};

/// A limit of the system that a call ran into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Limit {
    /// The process has as many open files as it may have.
    Descriptors,
    /// The whole system has as many open files as it may have.
    SystemDescriptors,
    /// A file, or memory that is shared by a descriptor, would be longer than this process may make
    /// one.
    FileSize,
    /// The process has as many addresses in use as it may have.
    Addresses,
    /// The machine, or the control group of this process, has no memory left.
    Memory,
}

impl Limit {
    /// Returns the limit that an error is about, if [`refused`](Self::refused) has made the error.
    pub fn behind(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref::<Refused>().map(|refused| refused.limit)
    }

    /// Returns the limit that an error of a system call means.
    pub fn of(error: &io::Error) -> Option<Self> {
        match Errno::from_io_error(error)? {
            Errno::MFILE => Some(Self::Descriptors),
            Errno::NFILE => Some(Self::SystemDescriptors),
            Errno::FBIG => Some(Self::FileSize),
            _ => None,
        }
    }

    /// Returns the limit that an error of mapping memory means. The system says no more than that
    /// there is no memory.
    pub fn of_mapping(error: &io::Error) -> Option<Self> {
        let limited = getrlimit(Resource::As).current.is_some();
        (Errno::from_io_error(error) == Some(Errno::NOMEM) && limited).then_some(Self::Addresses)
    }

    /// Returns the limit that an error of providing shared memory means.
    pub fn of_memory(error: &io::Error) -> Option<Self> {
        matches!(Errno::from_io_error(error)?, Errno::NOMEM | Errno::NOSPC).then_some(Self::Memory)
    }

    /// Makes the error of something that the limit did not allow.
    pub fn refused(self, what: &str) -> io::Error {
        let kind = match self {
            Self::Descriptors | Self::SystemDescriptors => io::ErrorKind::QuotaExceeded,
            Self::FileSize => io::ErrorKind::FileTooLarge,
            Self::Addresses | Self::Memory => io::ErrorKind::OutOfMemory,
        };
        io::Error::new(kind, Refused { what: what.to_owned(), limit: self })
    }
}

/// Turns an error of the system, which says only that there are too many descriptors, say, into one
/// that names the limit of this process. Other errors stay as they are.
pub fn naming_limits(error: io::Error) -> io::Error {
    match Limit::of(&error) {
        Some(limit) => limit.refused(&error.to_string()),
        None => error,
    }
}

/// Returns whether an error, or a cause of the error, says that a limit of this process or of the
/// system did not allow something, so that trying again is of no use.
pub fn is_limit(error: &(dyn Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error| (*error).source());
    let named = |error: &io::Error| Limit::behind(error).is_some();
    causes.any(|error| error.downcast_ref::<io::Error>().is_some_and(named))
}

/// The error of something that a limit did not allow.
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
                value(Resource::Nofile)
            ),
            Limit::SystemDescriptors => {
                f.write_str("the system has no file descriptor left (`sysctl fs.file-max`)")
            }
            Limit::FileSize => write!(
                f,
                "this process may make no file, nor memory that is shared by a descriptor, of more \
                 than {} bytes (RLIMIT_FSIZE); allow more with `ulimit -f`",
                value(Resource::Fsize)
            ),
            Limit::Addresses => {
                let Room { allowed, used } = addresses();
                write!(
                    f,
                    "this process has {used} bytes of addresses in use, of the {allowed} that it may \
                     have (RLIMIT_AS); allow more with `ulimit -v`"
                )
            }
            Limit::Memory => write!(
                f,
                "the machine has no memory left for that ({} bytes are available), or the control \
                 group of this process may have no more (`memory.max`)",
                available()
            ),
        }
    }
}

/// How much a process may have of something, and how much of that it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// How much the limit allows.
    pub allowed: u64,
    /// How much of what the limit allows is in use.
    pub used: u64,
}

impl Room {
    /// Returns how much more the process may have.
    pub fn left(self) -> u64 {
        self.allowed.saturating_sub(self.used)
    }
}

/// Returns how many bytes of addresses this process may have (`ulimit -v`), and has.
pub fn addresses() -> Room {
    let pages = || {
        let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
        statm.split_whitespace().next()?.parse::<u64>().ok()
    };
    let used = pages().unwrap_or(0).saturating_mul(page_size() as u64);
    Room { allowed: value(Resource::As), used }
}

/// Returns how many file descriptors this process may have (`ulimit -n`), and has.
pub fn descriptors() -> Room {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    // The folder itself has a descriptor while it is read.
    Room { allowed: value(Resource::Nofile), used: (open as u64).saturating_sub(1) }
}

/// Returns how many bytes of memory the system could give to programs.
fn available() -> u64 {
    let told = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}

/// Returns the value of a limit; the greatest number, if there is no limit.
pub(crate) fn value(which: Resource) -> u64 {
    getrlimit(which).current.unwrap_or(u64::MAX)
}
