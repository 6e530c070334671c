//! Bytes that peers may read for a while.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use doorbell_core::nic::Rights;

use super::registered::Registered;
use crate::error::RegisterError;
use crate::nic::Domain;
use crate::sys::lending::region_to_read;
use crate::work::RemoteMemory;

/// Immutable bytes of this program that peers may read, without a copy of them. They can be read
/// until this is dropped.
///
/// Peers read memory word by word, so only the whole words of the bytes are lent: those that begin
/// at a multiple of eight in memory. At most seven bytes before them and seven behind them are
/// left, which a program sends by itself.
///
/// ```
/// # use bytes::Bytes;
/// # use doorbell::verbs::{Config, Nic};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let nic = Nic::open(&format!("shm:lent/{}", std::process::id()), Config::default())?;
/// let bytes = Bytes::from(vec![7; 1000]);
/// let lent = nic.domain().lend(bytes.clone())?;
/// let (before, behind) = (&bytes[..lent.range().start], &bytes[lent.range().end..]);
/// assert_eq!(before.len() as u64 + lent.remote().len() + behind.len() as u64, 1000);
/// # Ok(())
/// # }
/// ```
pub struct Lent {
    registered: Registered,
    range: Range<usize>,
}

impl Lent {
    /// Returns the memory that peers may read.
    pub fn remote(&self) -> RemoteMemory {
        self.registered.remote()
    }

    /// Returns which of the bytes peers may read. The range is empty if the bytes contain no whole
    /// word.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").field("remote", &self.remote()).finish_non_exhaustive()
    }
}

impl Domain {
    /// Lends bytes to peers, which may read them until what this returns is dropped.
    ///
    /// # Errors
    /// Returns an error when there are as many registrations as configured.
    pub fn lend(&self, bytes: Bytes) -> Result<Lent, RegisterError> {
        let (region, range) = region_to_read(bytes);
        let registered = self.register(region, Rights::REMOTE_READ)?;
        Ok(Lent { registered, range })
    }
}
