//! Memory without a name that processes pass to each other by descriptor, and that nobody can take
//! away from those who have mapped it.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use doorbell_core::memory::Region;
use libc::c_int;

use super::limit::{self, Limit};
use super::mapping::Mapping;
use super::unix::Passed;
use super::{check, owned};

/// What nobody may do to it any more, be it to add a seal.
const SEALS: c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// An anonymous file in memory whose size is fixed for ever.
pub(crate) struct Sealed {
    fd: OwnedFd,
    len: usize,
}

impl Sealed {
    /// So many zeros, which are there from now on: no access can fail for want of memory.
    pub fn new(len: usize) -> io::Result<Self> {
        let sealed = Self::hollow(len)?;
        sealed.fill(0..len)?;
        Ok(sealed)
    }

    /// The same, of which no page is there yet: whoever goes anywhere has it filled before, for
    /// else an access may fail for want of a page.
    pub fn hollow(len: usize) -> io::Result<Self> {
        Self::hollow_parts(len, 1)
    }

    /// Hollow memory of so many parts of a length, each of which may be as long as the machine has
    /// memory.
    pub fn hollow_parts(part: usize, count: usize) -> io::Result<Self> {
        if part as u64 > machine() {
            let why = format!("{part} bytes are more than this machine has");
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, why));
        }
        let len = part.checked_mul(count).ok_or(io::ErrorKind::FileTooLarge)?;
        // The kernel would not only refuse to make the file longer, but send SIGXFSZ, which ends
        // the process.
        if len as u64 > limit::value(libc::RLIMIT_FSIZE) {
            return Err(Limit::FileSize.refused(&format!("{len} bytes of shared memory")));
        }
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is NUL-terminated.
        let result = unsafe { libc::memfd_create(c"doorbell".as_ptr(), flags) };
        // SAFETY: the descriptor is new and nobody else's.
        let fd = unsafe { owned(result, "memfd_create") }?;
        let size = i64::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        // SAFETY: the call touches no memory of this program's.
        check(unsafe { libc::ftruncate(fd.as_raw_fd(), size) }, "ftruncate")?;
        // SAFETY: as above.
        check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, SEALS) }, "F_ADD_SEALS")?;
        Ok(Self { fd, len })
    }

    /// What a peer sent, if it is so many bytes of ordinary memory, sealed. Anything else is closed
    /// elsewhere.
    pub fn received(passed: Passed, len: u64) -> io::Result<Self> {
        let fd = passed.look().as_raw_fd();
        // SAFETY: the call touches no memory.
        let seals = check(unsafe { libc::fcntl(fd, libc::F_GET_SEALS) }, "F_GET_SEALS")?;
        // It is memory then: of no other file would the kernel answer without asking its owner.
        // SAFETY: the structure is plain and zero is a value for it.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes no more than a live structure.
        check(unsafe { libc::fstat(fd, &mut stat) }, "fstat")?;
        // SAFETY: the structure is plain and zero is a value for it.
        let mut system: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes no more than a live structure.
        check(unsafe { libc::fstatfs(fd, &mut system) }, "fstatfs")?;
        let (size, kind) = (stat.st_size, system.f_type);
        let refuse = |why| Err(io::Error::new(io::ErrorKind::InvalidData, why));
        if seals & SEALS != SEALS {
            return refuse("it is not sealed against shrinking and growing");
        }
        // Of huge pages, an access may fail for want of one.
        if kind != libc::TMPFS_MAGIC {
            return refuse("it is not ordinary memory");
        }
        if u64::try_from(size) != Ok(len) {
            return refuse("its size is not what was said");
        }
        // Nobody who is honest makes it, and mapped it would use up what this process can address.
        if len > machine() {
            return refuse("it is longer than this machine's memory");
        }
        Ok(Self { fd: passed.keep(), len: len as usize })
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Has all pages of a range be there.
    pub fn fill(&self, range: Range<usize>) -> io::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let [start, len] = [range.start, range.len()].map(|bytes| bytes as i64);
        loop {
            // SAFETY: the call touches no memory of this program's.
            if unsafe { libc::fallocate(self.fd.as_raw_fd(), 0, start, len) } == 0 {
                return Ok(());
            }
            let found = io::Error::last_os_error();
            // By a signal: nothing was done.
            if found.kind() != io::ErrorKind::Interrupted {
                let what = format!("providing {len} bytes of shared memory");
                return Err(match Limit::of_memory(&found) {
                    Some(limit) => limit.refused(&what),
                    None => io::Error::new(found.kind(), format!("{what}: {found}")),
                });
            }
        }
    }

    /// Maps it. What all of it costs is paid at once, or as it is used.
    pub fn map(&self, at_once: bool) -> io::Result<Words> {
        if self.len == 0 {
            return Ok(Words { mapping: None, len: 0 });
        }
        let map = if at_once { Mapping::new } else { Mapping::lazily };
        Ok(Words { mapping: Some(Arc::new(map(self.as_fd(), self.len)?)), len: self.len })
    }
}

impl AsFd for Sealed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// How much memory the machine has.
fn machine() -> u64 {
    // SAFETY: the structure is plain and zero is a value for it.
    let mut info: libc::sysinfo = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes a live structure.
    unsafe { libc::sysinfo(&mut info) };
    info.totalram * u64::from(info.mem_unit)
}

/// Sealed memory that is mapped here.
pub(crate) struct Words {
    /// None of no bytes: that can't be mapped.
    mapping: Option<Arc<Mapping>>,
    len: usize,
}

impl Words {
    /// A part of it, from a multiple of 8 on. It stays mapped for as long as any part is held.
    pub fn region(&self, at: usize, len: usize) -> Region {
        let end = at.checked_add(len.next_multiple_of(8));
        let room = self.len.next_multiple_of(8);
        assert!(at.is_multiple_of(8) && end.is_some_and(|end| end <= room), "a part of the words");
        let Some(mapping) = &self.mapping else { return Region::new(0) };
        // SAFETY: the offset lies within the mapping.
        let first = unsafe { mapping.at().cast().byte_add(at) };
        // SAFETY: the range lies within the mapping, which ends with a page and thus a whole word,
        // begins with one, too, and is unmapped when the owner is dropped. The memory is sealed
        // against shrinking, so every access finds it, or has the kernel find a page. This process
        // reaches it by regions made here, which are of atomic words.
        unsafe { Region::foreign(first, len, Arc::clone(mapping)) }
    }
}
