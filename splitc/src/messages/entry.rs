//! The encoding of operations in messages.
//!
//! A message is a sequence of entries. An entry begins with a word that encodes the operation, the
//! number of bytes, and the place in the heap. The entry's data follow, padded to whole words. The
//! target's answer is a sequence of values in the order of the entries, each padded to whole words.
//!
//! ```text
//! bits 0–7    the operation
//! bits 8–19   how many bytes
//! bits 20–63  where, in bytes from the heap's beginning
//! ```

use crate::atomics::Change;

/// The most bytes of the heap that one entry concerns.
pub(crate) const LONGEST: usize = (1 << 12) - 8;
/// The upper bound of the length of a heap: places have 44 bits.
pub(crate) const LONGEST_HEAP: u64 = 1 << 44;

const PUT: u8 = 1;
const GET: u8 = 2;
const CALL: u8 = 3;
const ATOMIC: u8 = 0x40;
const FETCHES: u8 = 0x80;

/// An operation that a message asks its target for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    /// Writes the bytes that follow.
    Put,
    /// Reads bytes, which the answer contains.
    Get,
    /// Changes a value by the operands that follow. If the flag is set, the answer contains the
    /// value before.
    Atomic(Change, bool),
    /// Runs a function on a value. A word with the function's number follows, and behind it the
    /// argument; the answer contains the result.
    Call,
}

impl Operation {
    fn code(self) -> u8 {
        match self {
            Self::Put => PUT,
            Self::Get => GET,
            Self::Call => CALL,
            Self::Atomic(change, fetches) => {
                ATOMIC | change.code() | if fetches { FETCHES } else { 0 }
            }
        }
    }

    fn of(code: u8) -> Option<Self> {
        match code {
            PUT => Some(Self::Put),
            GET => Some(Self::Get),
            CALL => Some(Self::Call),
            _ if code & ATOMIC != 0 => {
                let change = Change::of(code & (ATOMIC - 1))?;
                Some(Self::Atomic(change, code & FETCHES != 0))
            }
            _ => None,
        }
    }
}

/// Encodes the first word of an entry, for an operation on `len` bytes at `offset` of the heap.
#[inline]
pub(crate) fn head(operation: Operation, len: usize, offset: u64) -> u64 {
    debug_assert!(len <= LONGEST && offset < LONGEST_HEAP);
    u64::from(operation.code()) | (len as u64) << 8 | offset << 20
}

/// Decodes the first word of an entry: the operation, the number of bytes, and the offset in the
/// heap. `None` if there is no such operation.
#[inline]
pub(crate) fn read_head(word: u64) -> Option<(Operation, usize, usize)> {
    let operation = Operation::of(word as u8)?;
    Some((operation, (word >> 8) as usize & 0xfff, (word >> 20) as usize))
}

/// The number of bytes that `len` bytes take up when they are padded to whole words.
#[inline]
pub(crate) const fn whole(len: usize) -> usize {
    len.next_multiple_of(8)
}
