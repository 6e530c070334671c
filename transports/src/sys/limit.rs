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
    /// This process has as many addresses in use as it may have.
    Addresses,
    /// The machine, or the control group of this process, has no memory left.
    Memory,
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

    /// The limit that an error of mapping memory means: the system says no more than that there is
    /// no memory.
    pub fn of_mapping(error: &io::Error) -> Option<Self> {
        let limited = value(libc::RLIMIT_AS) != libc::RLIM_INFINITY;
        (error.raw_os_error() == Some(libc::ENOMEM) && limited).then_some(Self::Addresses)
    }

    /// The limit that an error of providing shared memory means.
    pub fn of_memory(error: &io::Error) -> Option<Self> {
        matches!(error.raw_os_error()?, libc::ENOMEM | libc::ENOSPC).then_some(Self::Memory)
    }

    /// The error of something that the limit did not allow.
    pub fn refused(self, what: &str) -> io::Error {
        let kind = match self {
            Self::Descriptors | Self::SystemDescriptors => io::ErrorKind::QuotaExceeded,
            Self::FileSize => io::ErrorKind::FileTooLarge,
            Self::Addresses | Self::Memory => io::ErrorKind::OutOfMemory,
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

/// Whether an error, or one that it came from, says that a limit of this process or of the system
/// did not allow something: it is of no use to try again.
pub fn is_limit(error: &(dyn Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error| (*error).source());
    let named = |error: &io::Error| Limit::behind(error).is_some();
    causes.any(|error| error.downcast_ref::<io::Error>().is_some_and(named))
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
    /// How much of that is in use.
    pub used: u64,
}

impl Room {
    /// How much more of it the process may have.
    pub fn left(self) -> u64 {
        self.allowed.saturating_sub(self.used)
    }
}

/// How many bytes of addresses this process may have (`ulimit -v`), and has.
pub fn addresses() -> Room {
    let pages = || {
        let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
        statm.split_whitespace().next()?.parse::<u64>().ok()
    };
    // SAFETY: the call touches no memory of this program's.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    Room { allowed: value(libc::RLIMIT_AS), used: pages().unwrap_or(0).saturating_mul(page) }
}

/// How many file descriptors this process may have (`ulimit -n`), and has.
pub fn descriptors() -> Room {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    // The folder itself is one while it is read.
    Room { allowed: value(libc::RLIMIT_NOFILE), used: (open as u64).saturating_sub(1) }
}

/// How many bytes of memory the system could give to programs.
fn available() -> u64 {
    let told = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}

/// The value of a limit.
pub(crate) fn value(which: libc::__rlimit_resource_t) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the kernel writes a live structure; if it does not, that says that there is no limit.
    unsafe { libc::getrlimit(which, &mut limit) };
    limit.rlim_cur
}
