//! The collective allocations of a world, by their numbers.

use std::cell::{Cell, RefCell};

use super::BEYOND;
use crate::error::AccessError;
use crate::global_ptr::Raw;

/// What may be done with an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stand {
    /// All processes access it by pointers.
    Shared,
    /// Each process has its own part for itself.
    Private,
    Freed,
}

/// A collective allocation: the same range of every process's heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub from: u64,
    /// How many bytes each process has of it.
    pub len: u64,
    pub stand: Stand,
}

/// All collective allocations that there ever were: 24 bytes each.
#[derive(Default)]
pub(crate) struct Blocks {
    /// By numbers, which begin at one.
    all: RefCell<Vec<Cell<Block>>>,
}

impl Blocks {
    /// Adds an allocation, and gives its number.
    pub fn add(&self, from: u64, len: u64) -> u32 {
        let mut all = self.all.borrow_mut();
        all.push(Cell::new(Block { from, len, stand: Stand::Shared }));
        all.len() as u32
    }

    /// The allocation of a number.
    pub fn get(&self, number: u32) -> Option<Block> {
        let all = self.all.borrow();
        (number as usize).checked_sub(1).and_then(|at| all.get(at)).map(Cell::get)
    }

    /// Changes what may be done with an allocation.
    pub fn set(&self, number: u32, stand: Stand) {
        let all = self.all.borrow();
        if let Some(block) = (number as usize).checked_sub(1).and_then(|at| all.get(at)) {
            block.set(Block { stand, ..block.get() });
        }
    }

    /// Whether `len` bytes at a pointer may be accessed.
    #[inline]
    pub fn check(&self, raw: Raw, len: u64) -> Result<(), AccessError> {
        let all = self.all.borrow();
        // Null wraps around to a number that nothing has.
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
