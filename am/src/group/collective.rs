//! The identity of a collective, in messages and in errors.

use std::fmt;

use doorbell_collectives::{Call, Operation};

/// A collective operation, as errors name it: its kind, and its root if it has one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Collective {
    pub(super) operation: Operation,
    /// The root's rank in the team; 0 if the operation has none.
    pub(super) root: u32,
}

impl Collective {
    /// The collective that a barrier is.
    pub(super) const BARRIER: Self = Self::of(Operation::Barrier);

    /// A collective without a root.
    pub(super) const fn of(operation: Operation) -> Self {
        Self { operation, root: 0 }
    }

    /// The collective that a member calls.
    pub(super) fn of_call(call: Call) -> Self {
        Self { operation: call.operation, root: call.root.unwrap_or(0) as u32 }
    }

    /// The operation of a code; `None` if no collective has the code.
    pub(super) fn operation_of(code: u64) -> Option<Operation> {
        Operation::from_code(code).filter(|operation| *operation != Operation::Direct)
    }

    /// The kind of the operation, without its root.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// The rank of the root, the member from which the operation distributes or at which it
    /// collects; `None` for operations without a root.
    pub fn root(&self) -> Option<usize> {
        self.operation.has_root().then_some(self.root as usize)
    }

    pub(super) fn word(self) -> u64 {
        self.operation.code() << 32 | u64::from(self.root)
    }

    pub(super) fn from_word(word: u64) -> Option<Self> {
        Some(Self { operation: Self::operation_of(word >> 32)?, root: word as u32 })
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operation.fmt(f)?;
        match self.root() {
            Some(root) => write!(f, " with root {root}"),
            None => Ok(()),
        }
    }
}
