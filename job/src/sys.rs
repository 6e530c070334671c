//! What takes unsafe code: a descriptor that was inherited.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// A socket of which a launcher says that this process has inherited it, as another descriptor.
///
/// # Errors
/// When there is no such descriptor, or it can't be made another one.
pub fn inherited(fd: RawFd) -> io::Result<UnixStream> {
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the number is not that of no descriptor, and is only borrowed for this call. If no
    // descriptor has it, duplicating it fails and does nothing else.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    let owned: OwnedFd = borrowed.try_clone_to_owned()?;
    Ok(UnixStream::from(owned))
}
