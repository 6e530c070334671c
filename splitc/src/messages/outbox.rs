//! The outbox for a peer, in which operations and stores wait until they fill a message.

use std::cell::RefCell;
use std::rc::Rc;

use super::entry::{Operation, head, whole};
use crate::landing::Land;

/// The destination of the answer to an operation.
#[derive(Debug)]
pub(crate) enum Target {
    /// An operation without a destination. The arrival of its answer says that the operation is
    /// done.
    Nothing,
    /// A slot, for the holder of a handle.
    Slot { slot: u32, len: u16 },
    /// A row of values, `at` bytes behind the row's beginning. `row` is the row's number in the
    /// batch.
    Row { row: u16, len: u16, at: u64 },
    /// A range of this process's own heap.
    Heap { offset: u64, len: u16 },
}

impl Target {
    /// How many bytes the answer has.
    pub fn len(&self) -> u16 {
        match *self {
            Self::Nothing => 0,
            Self::Slot { len, .. } | Self::Row { len, .. } | Self::Heap { len, .. } => len,
        }
    }
}

/// A row of values that answers are put into, shared with the handles that wait for it.
pub(crate) type Row = Rc<RefCell<dyn Land>>;

/// The destinations of all answers to one message of operations, in the order of its entries.
#[derive(Default)]
pub(crate) struct Batch {
    pub targets: Vec<Target>,
    pub rows: Vec<Row>,
}

impl Batch {
    /// The number of a row in this batch, which gets the row if it does not have it yet.
    fn row(&mut self, row: &Row) -> u16 {
        // Operations on the same row usually follow each other, so the search begins at the end.
        let known = self.rows.iter().rposition(|there| Rc::ptr_eq(there, row));
        let at = known.unwrap_or_else(|| {
            self.rows.push(row.clone());
            self.rows.len() - 1
        });
        at as u16
    }
}

/// The operations and stores that wait to be sent to a peer: at most one message of operations and
/// one of stores. A full message must be sent before more is added.
#[derive(Default)]
pub(crate) struct Outbox {
    /// The most bytes of a message.
    longest: usize,
    /// The entries of the operations, which are answered.
    pub operations: Vec<u8>,
    /// How many bytes the answers to the operations will have.
    answers: usize,
    pub batch: Batch,
    /// The entries of the stores, which are not answered, and in `stored` how many bytes they
    /// store.
    pub stores: Vec<u8>,
    pub stored: u64,
}

impl Outbox {
    pub fn new(longest: usize) -> Self {
        Self { longest, ..Self::default() }
    }

    /// Whether neither an operation nor a store waits here.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty() && self.stores.is_empty()
    }

    /// The most bytes of data of one entry.
    pub fn longest_entry(&self) -> usize {
        (self.longest - 16).min(super::LONGEST)
    }

    /// Whether an operation still fits into the message: `data` bytes go with it beside its first
    /// word, and its answer has `answer` bytes.
    #[inline]
    pub fn has_room(&self, data: usize, answer: usize) -> bool {
        self.operations.len() + 8 + whole(data) <= self.longest
            && self.answers + whole(answer) <= self.longest
    }

    /// Whether a store still fits into the message, with `data` bytes beside its first word.
    #[inline]
    pub fn has_room_to_store(&self, data: usize) -> bool {
        self.stores.len() + 8 + whole(data) <= self.longest
    }

    /// Adds an operation, for which there is room.
    #[inline]
    pub fn push(&mut self, entry: Entry<'_>, answer: usize, target: Target) {
        entry.write(&mut self.operations);
        self.answers += whole(answer);
        self.batch.targets.push(target);
    }

    /// Adds an operation, for which there is room, whose answer goes into a row.
    #[inline]
    pub fn push_for_row(&mut self, entry: Entry<'_>, answer: usize, (row, at): (&Row, u64)) {
        let row = self.batch.row(row);
        self.push(entry, answer, Target::Row { row, len: answer as u16, at });
    }

    /// Adds a store of `bytes` bytes, for which there is room.
    #[inline]
    pub fn push_store(&mut self, entry: Entry<'_>, bytes: usize) {
        entry.write(&mut self.stores);
        self.stored += bytes as u64;
    }

    /// Drops the stores, which can't be sent any more. Returns whether there were any.
    pub fn drop_stores(&mut self) -> bool {
        self.stored = 0;
        let any = !self.stores.is_empty();
        self.stores.clear();
        any
    }

    /// Takes the operations out: their entries, whose buffer the caller hands back when they were
    /// sent, and their batch.
    pub fn take_operations(&mut self) -> (Vec<u8>, Batch) {
        self.answers = 0;
        (std::mem::take(&mut self.operations), std::mem::take(&mut self.batch))
    }
}

/// An operation to be written into a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'e> {
    pub operation: Operation,
    /// How many bytes of the heap are concerned or, for a function, how many its argument has.
    pub len: usize,
    pub offset: u64,
    /// The data of the entry: words first, then bytes.
    pub words: &'e [u64],
    pub bytes: &'e [u8],
}

impl Entry<'_> {
    #[inline]
    fn write(self, to: &mut Vec<u8>) {
        to.extend_from_slice(&head(self.operation, self.len, self.offset).to_le_bytes());
        for word in self.words {
            to.extend_from_slice(&word.to_le_bytes());
        }
        if !self.bytes.is_empty() {
            to.extend_from_slice(self.bytes);
            let end = whole(to.len());
            to.resize(end, 0);
        }
    }
}
