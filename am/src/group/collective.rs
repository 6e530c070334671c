//! What a collective is called, for messages and for errors.

use std::fmt;

/// A collective operation, as errors name it: what it is, and its root if it has one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Collective {
    pub(super) operation: Operation,
    /// The root's rank in the team; 0 if the operation has none.
    pub(super) root: u32,
}

/// What a collective does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Operation {
    /// [`Group::barrier`](super::Group::barrier), [`Group::arrive`](super::Group::arrive), and the
    /// barriers that hold up members which are far ahead.
    Barrier,
    /// [`Group::broadcast`](super::Group::broadcast).
    Broadcast,
    /// [`Group::gather`](super::Group::gather).
    Gather,
    /// [`Group::scatter`](super::Group::scatter).
    Scatter,
    /// [`Group::all_gather`](super::Group::all_gather).
    AllGather,
    /// [`Group::all_to_all`](super::Group::all_to_all).
    AllToAll,
    /// [`Group::reduce`](super::Group::reduce).
    Reduce,
    /// [`Group::all_reduce`](super::Group::all_reduce).
    AllReduce,
    /// [`Group::scan`](super::Group::scan).
    Scan,
    /// [`Group::exclusive_scan`](super::Group::exclusive_scan).
    ExclusiveScan,
    /// [`Group::split`](super::Group::split).
    Split,
}

impl Operation {
    const ALL: [Self; 11] = [
        Self::Barrier,
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
    ];

    pub(super) fn from_code(code: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }

    /// Returns whether no member is done with the operation before all members have begun it.
    pub(super) fn synchronises(self) -> bool {
        use Operation::{AllGather, AllReduce, AllToAll, Barrier, Split};
        matches!(self, Barrier | AllGather | AllToAll | AllReduce | Split)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Barrier => "a barrier",
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
        }
    }
}

impl Collective {
    /// A collective without a root.
    pub(super) const fn of(operation: Operation) -> Self {
        Self { operation, root: 0 }
    }

    /// What it does.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// The rank of the member from which it distributes, or at which it collects, if there is such
    /// a member.
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
