//! The identity of a collective, in messages and in errors.

use std::fmt;

/// A collective operation, as errors name it: its kind, and its root if it has one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Collective {
    pub(super) operation: Operation,
    /// The root's rank in the team; 0 if the operation has none.
    pub(super) root: u32,
}

/// The kind of a collective operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Operation {
    /// The barrier of [`Group::barrier`](super::Group::barrier) and
    /// [`Group::arrive`](super::Group::arrive), or one that a team runs by itself to hold up
    /// members which are far ahead.
    Barrier,
    /// The barrier of [`Group::fence`](super::Group::fence).
    Fence,
    /// The barrier of [`Group::finish`](super::Group::finish).
    Finish,
    /// The collective of [`Group::broadcast`](super::Group::broadcast).
    Broadcast,
    /// The collective of [`Group::gather`](super::Group::gather).
    Gather,
    /// The collective of [`Group::scatter`](super::Group::scatter).
    Scatter,
    /// The collective of [`Group::all_gather`](super::Group::all_gather).
    AllGather,
    /// The collective of [`Group::all_to_all`](super::Group::all_to_all).
    AllToAll,
    /// The collective of [`Group::reduce`](super::Group::reduce).
    Reduce,
    /// The collective of [`Group::all_reduce`](super::Group::all_reduce).
    AllReduce,
    /// The collective of [`Group::scan`](super::Group::scan).
    Scan,
    /// The collective of [`Group::exclusive_scan`](super::Group::exclusive_scan).
    ExclusiveScan,
    /// The collective of [`Group::split`](super::Group::split).
    Split,
    /// The collective of [`Group::agree`](super::Group::agree).
    Agree,
}

impl Operation {
    const ALL: [Self; 14] = [
        Self::Barrier,
        Self::Fence,
        Self::Finish,
        Self::Broadcast,
        Self::Gather,
        Self::Scatter,
        Self::AllGather,
        Self::AllToAll,
        Self::Reduce,
        Self::AllReduce,
        Self::Scan,
        Self::ExclusiveScan,
        Self::Split,
        Self::Agree,
    ];

    pub(super) fn from_code(code: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }

    /// Returns whether no member is done with the operation before all members have begun it.
    pub(super) fn synchronises(self) -> bool {
        use Operation::{Agree, AllGather, AllReduce, AllToAll, Barrier, Fence, Finish, Split};
        matches!(self, Agree | Barrier | Fence | Finish | AllGather | AllToAll | AllReduce | Split)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Barrier => "a barrier",
            Self::Fence => "a fence",
            Self::Finish => "the end of its program",
            Self::Broadcast => "a broadcast",
            Self::Gather => "a gather",
            Self::Scatter => "a scatter",
            Self::AllGather => "an all-gather",
            Self::AllToAll => "an all-to-all",
            Self::Reduce => "a reduce",
            Self::AllReduce => "an all-reduce",
            Self::Scan => "a scan",
            Self::ExclusiveScan => "an exclusive scan",
            Self::Split => "a split",
            Self::Agree => "an agreement",
        }
    }
}

impl Collective {
    /// The collective that a barrier is.
    pub(super) const BARRIER: Self = Self::of(Operation::Barrier);

    /// A collective without a root.
    pub(super) const fn of(operation: Operation) -> Self {
        Self { operation, root: 0 }
    }

    /// The kind of the operation, without its root.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// The rank of the root, the member from which the operation distributes or at which it
    /// collects; `None` for operations without a root.
    pub fn root(&self) -> Option<usize> {
        use Operation::{Broadcast, Gather, Reduce, Scatter};
        let rooted = matches!(self.operation, Broadcast | Gather | Scatter | Reduce);
        rooted.then_some(self.root as usize)
    }

    pub(super) fn word(self) -> u64 {
        (self.operation as u64) << 32 | u64::from(self.root)
    }

    pub(super) fn from_word(word: u64) -> Option<Self> {
        Some(Self { operation: Operation::from_code(word >> 32)?, root: word as u32 })
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.operation.name())?;
        match self.root() {
            Some(root) => write!(f, " with root {root}"),
            None => Ok(()),
        }
    }
}
