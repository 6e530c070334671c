//! How operations are written into messages.
//!
//! A message is a row of entries. An entry is a word that says what is done, to how many bytes, at
//! which place of the heap; and what goes with it, filled up to whole words. What the target
//! answers is a row of values in the order of the entries, each filled up to whole words.
//!
//! ```text
//! bits 0–7    the operation
//! bits 8–19   how many bytes
//! bits 20–63  where, in bytes from the heap's beginning
//! ```

use crate::atomics::Change;

/// The longest range of one entry.
pub(crate) const LONGEST: usize = (1 << 12) - 8;
/// The longest heap: places have 44 bits.
pub(crate) const LONGEST_HEAP: u64 = 1 << 44;

const PUT: u8 = 1;
const GET: u8 = 2;
const CALL: u8 = 3;
const ATOMIC: u8 = 0x40;
const FETCHES: u8 = 0x80;

/// What is done at the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    /// The bytes that follow are written.
    Put,
    /// Bytes are read, and answered.
    Get,
    /// The value is changed by the operand that follows; what it was is answered, if asked.
    Atomic(Change, bool),
    /// A function is run on the value, with the argument that follows, behind a word with the
    /// function's number. Its result is answered.
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

/// The first word of an entry.
#[inline]
pub(crate) fn head(operation: Operation, len: usize, offset: u64) -> u64 {
    debug_assert!(len <= LONGEST && offset < LONGEST_HEAP);
    u64::from(operation.code()) | (len as u64) << 8 | offset << 20
}

/// What the first word of an entry says, if it says anything that is known: the operation, how many
/// bytes, and where.
#[inline]
pub(crate) fn read_head(word: u64) -> Option<(Operation, usize, usize)> {
    let operation = Operation::of(word as u8)?;
    Some((operation, (word >> 8) as usize & 0xfff, (word >> 20) as usize))
}

/// How many bytes `len` bytes take, filled up to whole words.
#[inline]
pub(crate) const fn whole(len: usize) -> usize {
    len.next_multiple_of(8)
}
