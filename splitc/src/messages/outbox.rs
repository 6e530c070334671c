//! What is to go to a process by messages: entries that wait until they fill one.

use std::cell::RefCell;
use std::rc::Rc;

use super::entry::{Operation, head, whole};
use crate::landing::Land;

/// Where the answer to an operation goes.
#[derive(Debug)]
pub(crate) enum Target {
    /// Nowhere: that there is an answer says that the operation is done.
    Nothing,
    /// Into a slot, for the holder of a handle.
    Slot { slot: u32, len: u16 },
    /// Into a row of values, so many bytes behind its beginning.
    Row { row: u16, len: u16, at: u64 },
    /// Into this process's heap.
    Heap { offset: u64, len: u16 },
}

impl Target {
    /// How many bytes of answer there are.
    pub fn len(&self) -> u16 {
        match *self {
            Self::Nothing => 0,
            Self::Slot { len, .. } | Self::Row { len, .. } | Self::Heap { len, .. } => len,
        }
    }
}

/// A row of values that answers are put into, shared by those who wait for it.
pub(crate) type Row = Rc<RefCell<dyn Land>>;

/// A message of operations, or what will be one: where its answers go.
#[derive(Default)]
pub(crate) struct Batch {
    pub targets: Vec<Target>,
    pub rows: Vec<Row>,
}

impl Batch {
    /// The number of a row among those of this batch.
    fn row(&mut self, row: &Row) -> u16 {
        // Operations on one row come one after the other, as a rule.
        let known = self.rows.iter().rposition(|there| Rc::ptr_eq(there, row));
        let at = known.unwrap_or_else(|| {
            self.rows.push(row.clone());
            self.rows.len() - 1
        });
        at as u16
    }
}

/// What is to go to a process by messages: at most one message of each kind, which goes before
/// there is more.
#[derive(Default)]
pub(crate) struct Outbox {
    /// The longest message.
    longest: usize,
    /// Entries of operations that are answered.
    pub operations: Vec<u8>,
    /// How many bytes their answers have.
    answers: usize,
    pub batch: Batch,
    /// Entries of stores, and how many bytes they store.
    pub stores: Vec<u8>,
    pub stored: u64,
}

impl Outbox {
    pub fn new(longest: usize) -> Self {
        Self { longest, ..Self::default() }
    }

    /// The most bytes that go with one entry.
    pub fn longest_entry(&self) -> usize {
        (self.longest - 16).min(super::LONGEST)
    }

    /// Whether there is room for an operation with so many bytes beside its first word, and so many
    /// of answer.
    #[inline]
    pub fn has_room(&self, data: usize, answer: usize) -> bool {
        self.operations.len() + 8 + whole(data) <= self.longest
            && self.answers + whole(answer) <= self.longest
    }

    /// Whether there is room for a store with so many bytes beside its first word.
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

    /// Takes the operations: their entries, which are to be handed back when they were sent, and
    /// the batch.
    pub fn take_operations(&mut self) -> (Vec<u8>, Batch) {
        self.answers = 0;
        (std::mem::take(&mut self.operations), std::mem::take(&mut self.batch))
    }
}

/// An operation to be written into a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'e> {
    pub operation: Operation,
    /// How many bytes of the heap, or of a function's argument.
    pub len: usize,
    pub offset: u64,
    /// What goes with it, in words and bytes, one after the other.
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
