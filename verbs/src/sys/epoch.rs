//! Private epochs of memory that several processes share, by a contract between them.

use doorbell_core::memory::{AccessError, PrivatePart, Region};

/// Lends a part of a region that peers reach as plain bytes. Only `doorbell-splitc` calls this
/// function. Its processes keep the contract that nobody else touches the part until the returned
/// value is dropped.
///
/// The contract is kept by barriers. Every process of a Split-C world refuses accesses to an
/// allocation, its own process's among them, from before it enters the barrier that opens a private
/// epoch of the allocation until it has left the barrier that closes the epoch. It enters the first
/// barrier when all that it had begun is done, and the second when it has dropped the returned
/// value. So between these two barriers only the owner accesses the part, by loads and stores, by
/// its NIC, or by messages. Allocations begin and end at multiples of 64 bytes, so no word lies
/// partly in one. Only processes that know the world's key have the key to its memory, or a mapping
/// of it.
///
/// # Errors
/// Returns an error when the part is not within the region.
pub fn assume_private_part(
    region: &Region,
    offset: usize,
    len: usize,
) -> Result<PrivatePart, AccessError> {
    // SAFETY: by the contract above, which `doorbell-splitc` keeps, nobody else accesses the part.
    // No other crate calls this function, which is no part of the public interface.
    unsafe { region.assume_private_part(offset, len) }
}
