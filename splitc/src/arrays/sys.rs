//! Private slices of the shared memory itself, by a contract between the processes: the only unsafe
//! code of this crate.

use doorbell_verbs::Region;

use super::private::Memory;
use super::{Matrix, Private, Spread};
use crate::element::Element;
use crate::error::Error;

impl<T: Element> Spread<T> {
    /// Opens a private epoch as [`private`](Self::private) does, with a slice of the shared memory
    /// itself in place of a copy: nothing is copied, and the epoch takes no memory.
    ///
    /// ```
    /// # doorbell_splitc::Job::threads(2).run(async |world| {
    /// let array = world.blocked::<f64>(1000).await?;
    /// // SAFETY: this program starts all processes of the world itself, and they use the memory of
    /// // others by this library alone.
    /// let mut part = unsafe { array.private_in_place() }.await?;
    /// part.fill(0.5);
    /// drop(part);
    /// array.share().await?;
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), doorbell_splitc::RunError>(())
    /// ```
    ///
    /// # Errors
    /// As [`private`](Self::private).
    ///
    /// # Safety
    /// The other processes of the world have the memory mapped, or have a key to it, and this
    /// process can't take that back for an epoch. So until the returned value is dropped, none of
    /// them may access the part, by loads, stores, messages or RDMA. This library keeps to that: in
    /// every process it refuses pointers to the array from before the epoch until all have ended
    /// it. So the caller must know that every process which has the world's [key](crate::Config::key)
    /// runs this library, of the same version, unaltered; and that no unsafe code of any of them
    /// reaches the memory of a world in another way.
    pub async unsafe fn private_in_place(&self) -> Result<Private<'_, T>, Error> {
        // SAFETY: the caller promises for the other processes what `part` needs, and calls it so.
        let part = |region: &Region, from, bytes, ()| unsafe { part(region, from, bytes) };
        Private::open_with(self.allocation(), self.own_len(), || Ok(()), part).await
    }
}

impl<T: Element> Matrix<T> {
    /// Opens a private epoch as [`private`](Self::private) does, with a slice of the shared memory
    /// itself in place of a copy: nothing is copied, and the epoch takes no memory.
    ///
    /// # Errors
    /// As [`private`](Self::private).
    ///
    /// # Safety
    /// As for [`Spread::private_in_place`].
    pub async unsafe fn private_in_place(&self) -> Result<Private<'_, T>, Error> {
        // SAFETY: the caller promises for the other processes what `part` needs, and calls it so.
        let part = |region: &Region, from, bytes, ()| unsafe { part(region, from, bytes) };
        Private::open_with(self.allocation(), self.own_elements(), || Ok(()), part).await
    }
}

/// Takes a part of the heap as memory of this process alone.
///
/// # Safety
/// Nobody else may access the part until the returned value is dropped. `Private::open_with` calls
/// this when a private epoch is open, and then this process does not access the part by pointers:
///
/// - The allocation was marked private before the processes agreed, and whoever accesses a range
///   checks the mark after the last `await` before the access.
/// - What any future of this process had begun before was done by then (`Core::all_done`), and what
///   other processes had begun, too: each agrees only when its own accesses are done.
/// - Handlers of messages refuse the range while the returned value lives (`Guards`).
/// - There is one slice at a time (`Allocation::lent`), and the epoch is over, for any process, only
///   when this one has dropped it and agreed.
/// - Allocations begin and end at multiples of 64 bytes, so no word lies partly in one.
///
/// What other processes do is the caller's promise.
unsafe fn part(region: &Region, from: usize, bytes: usize) -> Memory {
    // SAFETY: as above.
    let part = unsafe { region.assume_private_part(from, bytes) };
    Memory::Part(part.expect("the part is within the heap"))
}
