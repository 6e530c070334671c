//! The collective allocations of a world, by their numbers.

use std::cell::{Cell, RefCell};

use crate::error::AccessError;
use crate::global_ptr::{BEYOND, Raw};

/// The access to a collective allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stand {
    /// Every process may use pointers to the allocation.
    Shared,
    /// Each process has only its own part, as a slice, and no process uses pointers.
    Private,
    Freed,
}

/// A collective allocation of the symmetric heap: the same range of every process's heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub from: u64,
    /// How many bytes of each process's heap the allocation takes.
    pub len: u64,
    pub stand: Stand,
}

/// A table of all collective allocations of a world, freed ones included: 24 bytes each.
#[derive(Default)]
pub(crate) struct Blocks {
    /// The allocations by their numbers, the first of which is one.
    all: RefCell<Vec<Cell<Block>>>,
}

impl Blocks {
    /// Adds an allocation, and returns its number.
    pub fn add(&self, from: u64, len: u64) -> u32 {
        let mut all = self.all.borrow_mut();
        all.push(Cell::new(Block { from, len, stand: Stand::Shared }));
        all.len() as u32
    }

    /// The allocation of a number, if there ever was one of that number.
    pub fn get(&self, number: u32) -> Option<Block> {
        let all = self.all.borrow();
        (number as usize).checked_sub(1).and_then(|at| all.get(at)).map(Cell::get)
    }

    /// Changes the access to an allocation.
    pub fn set(&self, number: u32, stand: Stand) {
        let all = self.all.borrow();
        if let Some(block) = (number as usize).checked_sub(1).and_then(|at| all.get(at)) {
            block.set(Block { stand, ..block.get() });
        }
    }

    /// Checks that `len` bytes at a pointer may be accessed; the error says why not.
    #[inline]
    pub fn check(&self, raw: Raw, len: u64) -> Result<(), AccessError> {
        let all = self.all.borrow();
        // The number of a null pointer is zero, and wraps around to an index that no allocation
        // has.
        let Some(block) = all.get((raw.block as usize).wrapping_sub(1)).map(Cell::get) else {
            return Err(unknown(raw));
        };
        let (past, left) = (raw.offset.wrapping_sub(block.from), block.len);
        if block.stand != Stand::Shared || past > left || len > left - past {
            return Err(refused(raw, len, block));
        }
        Ok(())
    }
}

#[cold]
fn unknown(raw: Raw) -> AccessError {
    match raw.block {
        0 => AccessError::Null,
        BEYOND => AccessError::Index { index: raw.offset as usize, len: raw.rank as usize },
        block => AccessError::Freed { block },
    }
}

#[cold]
fn refused(raw: Raw, len: u64, block: Block) -> AccessError {
    match block.stand {
        Stand::Freed => AccessError::Freed { block: raw.block },
        Stand::Private => AccessError::Private { block: raw.block },
        Stand::Shared => AccessError::Bounds {
            offset: raw.offset,
            len,
            block: raw.block,
            from: block.from,
            to: block.from + block.len,
        },
    }
}
