//! Private parts of arrays: while a process has its part as a slice, nothing else changes that
//! part, and nothing is lost that was written before.

mod awaited;
mod forged;
mod nested;
mod quiet;
mod random;

use doorbell_splitc::{AccessError, Element, Error, ErrorKind, Private, Spread};

/// Whether an operation was refused because the array is private.
fn is_private<T>(result: &Result<T, Error>) -> bool {
    let kind = result.as_ref().err().map(Error::kind);
    matches!(kind, Some(ErrorKind::Access(AccessError::Private { .. })))
}

/// Opens a private epoch with a slice of the shared memory itself, so that the test sees whatever
/// else changes that memory.
async fn in_place<T: Element>(array: &Spread<T>) -> Result<Private<'_, T>, Error> {
    // SAFETY: the processes are threads of this test, which use the array by the library alone.
    unsafe { array.private_in_place() }.await
}
