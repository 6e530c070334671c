//! The kinds of collectives, as messages and errors tell them apart.

use std::fmt;

/// The kind of an operation of a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Operation {
    /// The barrier of [`Group::barrier`](crate::Group::barrier), or one that a group runs by itself
    /// to hold up members which are far ahead.
    Barrier,
    /// The barrier of [`Group::fence`](crate::Group::fence).
    Fence,
    /// The barrier of [`Group::finish`](crate::Group::finish).
    Finish,
    /// The collective of [`Group::broadcast`](crate::Group::broadcast).
    Broadcast,
    /// The collective of [`Group::gather`](crate::Group::gather).
    Gather,
    /// The collective of [`Group::scatter`](crate::Group::scatter).
    Scatter,
    /// The collective of [`Group::all_gather`](crate::Group::all_gather).
    AllGather,
    /// The collective of [`Group::all_to_all`](crate::Group::all_to_all).
    AllToAll,
    /// The collective of [`Group::reduce`](crate::Group::reduce).
    Reduce,
    /// The collective of [`Group::all_reduce`](crate::Group::all_reduce).
    AllReduce,
    /// The collective of [`Group::scan`](crate::Group::scan).
    Scan,
    /// The collective of [`Group::exclusive_scan`](crate::Group::exclusive_scan).
    ExclusiveScan,
    /// The collective by which a group is split into teams.
    Split,
    /// The collective of [`Group::agree`](crate::Group::agree).
    Agree,
    /// A message from one member to another, by [`Group::send`](crate::Group::send) and the like.
    Direct,
}

impl Operation {
    const ALL: [Self; 15] = [
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
        Self::Direct,
    ];

    /// Returns whether the members name a root.
    pub fn has_root(self) -> bool {
        matches!(self, Self::Broadcast | Self::Reduce | Self::Gather | Self::Scatter)
    }

    /// Returns whether the members may give elements that are combined.
    pub fn has_elements(self) -> bool {
        use Operation::{AllReduce, ExclusiveScan, Reduce, Scan};
        matches!(self, Reduce | AllReduce | Scan | ExclusiveScan)
    }

    /// Returns whether no member is done with the operation before all members have begun it.
    pub fn synchronises(self) -> bool {
        use Operation::{Agree, AllGather, AllReduce, AllToAll, Barrier, Fence, Finish, Split};
        matches!(self, Agree | Barrier | Fence | Finish | AllGather | AllToAll | AllReduce | Split)
    }

    /// Returns the operation of a code, if there is one.
    pub fn from_code(code: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }

    /// Returns the code by which messages name the operation: below 16.
    pub fn code(self) -> u64 {
        self as u64
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
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
            Self::Direct => "a message between two members",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_a_code_of_its_own_and_other_codes_are_none() {
        for operation in Operation::ALL {
            assert_eq!(Operation::from_code(operation.code()), Some(operation));
        }
        assert_eq!(Operation::from_code(15), None);
        assert_eq!(Operation::from_code(u64::MAX), None);
    }
}
