//! The symmetric heap: the memory of each process that all processes of its world reach.
//!
//! Every process's heap has the same length. Collective allocations lie at the same place in all
//! heaps, and grow from the bottom up. What a process allocates for itself lies at the top, and
//! grows from the end down. In front of both is a page of words that the library needs for itself.

mod blocks;
mod guards;
mod ranges;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use doorbell_verbs::floor::Sleepers;
use doorbell_verbs::{Region, SharedMemory};

pub(crate) use blocks::{Blocks, Stand};
pub(crate) use guards::{Guarded, Guards};
use ranges::Ranges;

use crate::error::{AccessError, HeapError};
use crate::global_ptr::{ALONE, Raw};

/// How many bytes at the beginning of the heap are the library's own.
pub(crate) const CONTROL: u64 = 4096;
/// The offset of the two words, used in turns, that count the bytes stored into this heap.
const STORED: usize = 0;

/// The offset in a heap of the counter for the bytes that are stored in a turn.
#[inline]
pub(crate) const fn counter(turn: u64) -> usize {
    STORED + 8 * (turn & 1) as usize
}

/// The offset of the word in which a process announces that it sleeps until its memory changes.
const SLEEPS: usize = 64;

/// The word of a heap in which the heap's owner announces that it sleeps until the heap changes.
#[inline]
pub(crate) fn sleepers(heap: &Region) -> Sleepers<'_> {
    Sleepers::new(heap, SLEEPS).expect("the library's own words are in every heap")
}

/// The alignment in bytes of every allocation.
pub(crate) const ALIGN: u64 = 64;

/// The heap of this process.
pub(crate) struct Heap {
    pub memory: Arc<SharedMemory>,
    pub blocks: Blocks,
    pub guards: Arc<Guards>,
    /// The ranges of the heap that are not allocated.
    free: RefCell<Ranges>,
    /// The offset at which the highest collective allocation ends.
    top: Cell<u64>,
    /// The lengths of what this process has allocated for itself, by offset. All lie above the
    /// collective allocations.
    alone: RefCell<BTreeMap<u64, u64>>,
}

impl Heap {
    /// Reserves a heap of zeros, with `len` bytes for the program beside the library's own.
    pub fn new(len: usize) -> Result<Self, HeapError> {
        let memory = SharedMemory::reserve(whole(len));
        Self::over(Arc::new(memory.map_err(|why| refused(len, &why))?), len)
    }

    /// A heap in memory of zeros, with `len` bytes for the program.
    pub fn over(memory: Arc<SharedMemory>, len: usize) -> Result<Self, HeapError> {
        memory.provide(0..CONTROL as usize).map_err(|why| refused(len, &why))?;
        let ranges = Ranges::new(CONTROL, memory.len() as u64);
        Ok(Self {
            memory,
            blocks: Blocks::default(),
            guards: Arc::default(),
            free: RefCell::new(ranges),
            top: Cell::new(CONTROL),
            alone: RefCell::default(),
        })
    }

    /// How many bytes the heap has, the library's own included.
    pub fn len(&self) -> u64 {
        self.memory.len() as u64
    }

    pub fn region(&self) -> &Region {
        self.memory.region()
    }

    /// Takes a free range for a collective allocation, and returns its offset.
    fn take(&self, len: u64) -> Result<u64, HeapError> {
        let below = self.alone.borrow().keys().next().copied().unwrap_or(self.len());
        let mut ranges = self.free.borrow_mut();
        let taken = ranges.take_low(padded(len), below);
        let full = || HeapError::Full { asked: len, heap: self.len(), free: ranges.longest() };
        let from = taken.ok_or_else(full)?;
        self.top.set(self.top.get().max(from + padded(len)));
        Ok(from)
    }

    /// Takes a free range for a collective allocation, fills it with zeros, and returns its offset.
    pub fn take_zeros(&self, len: u64) -> Result<u64, HeapError> {
        let from = self.take(len)?;
        self.clear(from, padded(len)).inspect_err(|_| self.give(from, len))?;
        Ok(from)
    }

    /// Frees the range of a collective allocation.
    pub fn give(&self, from: u64, len: u64) {
        let to = from + padded(len);
        let mut free = self.free.borrow_mut();
        free.give(from, to);
        if self.top.get() == to {
            self.top.set(free.end_below(to));
        }
    }

    /// Allocates memory for this process alone, filled with zeros, and returns its offset.
    pub fn allocate_alone(&self, len: u64) -> Result<u64, HeapError> {
        let mut ranges = self.free.borrow_mut();
        let taken = ranges.take_high(padded(len), self.top.get());
        let full = || HeapError::Full { asked: len, heap: self.len(), free: ranges.longest() };
        let at = taken.ok_or_else(full)?;
        self.clear(at, padded(len))?;
        self.alone.borrow_mut().insert(at, padded(len));
        Ok(at)
    }

    /// Frees what this process has allocated for itself.
    pub fn free_alone(&self, at: u64) -> Result<(), HeapError> {
        let len = self.alone.borrow_mut().remove(&at);
        let len = len.ok_or(HeapError::NotAllocated { offset: at })?;
        self.free.borrow_mut().give(at, at + len);
        Ok(())
    }

    /// Fills a range with zeros, and has the system provide its memory, so that no later access can
    /// fail for want of memory.
    fn clear(&self, from: u64, len: u64) -> Result<(), HeapError> {
        let provided = self.memory.provide(from as usize..(from + len) as usize);
        provided
            .map_err(|why| HeapError::System { len: len as usize, why: why.to_string().into() })?;
        let words = &self.region().words()[from as usize / 8..][..len as usize / 8];
        words.iter().for_each(|word| word.store(0, std::sync::atomic::Ordering::Relaxed));
        Ok(())
    }

    /// Checks that `len` bytes at a pointer may be accessed; the error says why not.
    #[inline]
    pub fn check(&self, raw: Raw, len: u64) -> Result<(), AccessError> {
        match raw.block {
            ALONE => self.check_alone(raw, len),
            _ => self.blocks.check(raw, len),
        }
    }

    fn check_alone(&self, raw: Raw, len: u64) -> Result<(), AccessError> {
        let end = raw.offset.checked_add(len);
        // Collective allocations may be private, so they are reached only by pointers that have
        // their number.
        match raw.offset >= self.top.get() && end.is_some_and(|end| end <= self.len()) {
            true => Ok(()),
            false => Err(AccessError::Heap { offset: raw.offset, len, heap: self.len() }),
        }
    }
}

/// How many bytes a heap has in all, with `len` of them for the program.
const fn whole(len: usize) -> usize {
    len.next_multiple_of(CONTROL as usize) + CONTROL as usize
}

fn refused(len: usize, why: &std::io::Error) -> HeapError {
    HeapError::System { len, why: why.to_string().into() }
}

/// The heaps of the processes of a world that are threads of one process: one piece of memory, all
/// of which every thread reaches, so that none maps the heap of another.
pub(crate) struct Heaps(Vec<Arc<SharedMemory>>);

impl Heaps {
    /// Reserves the heaps of so many processes, each with `len` bytes for the program.
    pub fn new(len: usize, count: usize) -> Result<Self, HeapError> {
        let pieces = SharedMemory::reserve_pieces(whole(len), count);
        let pieces = pieces.map_err(|why| refused(len.saturating_mul(count), &why))?;
        Ok(Self(pieces.into_iter().map(Arc::new).collect()))
    }

    /// The memory of the heap of a process.
    pub fn of(&self, rank: usize) -> Arc<SharedMemory> {
        self.0[rank].clone()
    }
}

/// How many bytes of the heap an allocation of `len` bytes takes.
const fn padded(len: u64) -> u64 {
    let len = if len == 0 { 1 } else { len };
    len.next_multiple_of(ALIGN)
}
