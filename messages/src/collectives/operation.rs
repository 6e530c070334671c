//! The kinds of collectives, as match bits and errors tell them apart.

use std::fmt;

/// The kind of an operation of a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Operation {
    /// A message from one member to another, by [`Group::send`](super::Group::send) and the like.
    Direct,
    /// The collective of [`Group::barrier`](super::Group::barrier).
    Barrier,
    /// The collective of [`Group::broadcast`](super::Group::broadcast).
    Broadcast,
    /// The collective of [`Group::reduce`](super::Group::reduce).
    Reduce,
    /// The collective of [`Group::all_reduce`](super::Group::all_reduce).
    AllReduce,
    /// The collective of [`Group::gather`](super::Group::gather).
    Gather,
    /// The collective of [`Group::scatter`](super::Group::scatter).
    Scatter,
    /// The collective of [`Group::all_gather`](super::Group::all_gather).
    AllGather,
    /// The collective of [`Group::all_to_all`](super::Group::all_to_all).
    AllToAll,
}

impl Operation {
    const ALL: [Self; 9] = [
        Self::Direct,
        Self::Barrier,
        Self::Broadcast,
        Self::Reduce,
        Self::AllReduce,
        Self::Gather,
        Self::Scatter,
        Self::AllGather,
        Self::AllToAll,
    ];

    /// Returns whether the members name a root.
    pub(super) fn has_root(self) -> bool {
        matches!(self, Self::Broadcast | Self::Reduce | Self::Gather | Self::Scatter)
    }

    /// Returns whether the members give elements that are combined.
    pub(super) fn has_elements(self) -> bool {
        matches!(self, Self::Reduce | Self::AllReduce)
    }

    /// Returns the operation of a code, if there is one.
    pub(super) fn from_code(code: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }

    pub(super) fn code(self) -> u64 {
        self as u64
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Direct => "a message between two members",
            Self::Barrier => "a barrier",
            Self::Broadcast => "a broadcast",
            Self::Reduce => "a reduce",
            Self::AllReduce => "an all-reduce",
            Self::Gather => "a gather",
            Self::Scatter => "a scatter",
            Self::AllGather => "an all-gather",
            Self::AllToAll => "an all-to-all",
        })
    }
}
