//! Errors of groups and of collectives.

use std::sync::Arc;
use std::time::Duration;

use crate::links::Failure;
use crate::operation::Operation;
use crate::tag::MOST_MEMBERS;

/// The reason why a group was not joined, or why a collective has failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The rank of the member that joins is not a place in the list of members.
    #[error(
        "joining a group as member {rank}: the list has {size} members; a rank is a place in the \
         list, which has at most {MOST_MEMBERS}"
    )]
    Rank {
        /// The rank that was given.
        rank: usize,
        /// The length of the list.
        size: usize,
    },
    /// The name at the place of the member that joins is that of another endpoint. Nobody was
    /// asked.
    #[error(
        "joining a group as member {rank}: the list has {name} at that place, and the endpoint \
         that joins is {endpoint}; a member's rank is the place of its own name"
    )]
    NotNamed {
        /// The rank that was given.
        rank: usize,
        /// The name at that place in the list.
        name: String,
        /// The name of the endpoint that was to join.
        endpoint: String,
    },
    /// Two places of the list of members have the same name. Nobody was asked.
    #[error(
        "joining a group: members {first} and {second} have the same name in the list, {name}; \
         each member has an endpoint of its own"
    )]
    NamedTwice {
        /// The first place of the name.
        first: usize,
        /// The next place of the name.
        second: usize,
        /// The name that both places have.
        name: String,
    },
    /// A member was not there, or not ready, for as long as members wait for each other.
    #[error("joining a group: member {rank}, {name}, was not met within {patience:?}: {why}")]
    Absent {
        /// The rank of the member.
        rank: usize,
        /// The name of the member's endpoint.
        name: String,
        /// How long the member was waited for.
        patience: Duration,
        /// The outcome of the last attempt.
        why: Arc<str>,
    },
    /// A member has another list of members.
    #[error(
        "joining a group: member {rank}, {name}, is in another group: all members must be given \
         the same list, and each its own place there"
    )]
    OtherGroup {
        /// The rank of the member.
        rank: usize,
        /// The name of the member's endpoint.
        name: String,
    },
    /// A message could not be sent to a member, or received from it.
    #[error("{operation}, with member {rank}, {name}: {why}")]
    Link {
        /// The collective that has failed.
        operation: Operation,
        /// The rank of the other member.
        rank: usize,
        /// The name of the other member.
        name: String,
        /// The error of the message.
        #[source]
        why: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The group has failed, here or at another member.
    #[error("{operation}: the group has failed because of member {rank}, {name}: {why}")]
    Failed {
        /// The collective that can't be done.
        operation: Operation,
        /// The rank of the member that the failure is about.
        rank: usize,
        /// The name of that member.
        name: String,
        /// The event that has made the group fail.
        why: Arc<str>,
    },
    /// Members called different collectives at the same place of their programs.
    #[error(
        "{here}: member {rank}, {name}, is in {there}; all members must call the same collectives \
         in the same order"
    )]
    Mismatch {
        /// The collective of this member.
        here: Operation,
        /// The collective of the other member.
        there: Operation,
        /// The rank of the other member.
        rank: usize,
        /// The name of the other member.
        name: String,
    },
    /// Members named different roots in the same collective.
    #[error(
        "{operation}: member {rank}, {name}, names {there} as the root, and this member names \
         {here}: all members must name the same root"
    )]
    Roots {
        /// The collective that has failed.
        operation: Operation,
        /// The root that this member names.
        here: usize,
        /// The root that the other member names.
        there: usize,
        /// The rank of the other member.
        rank: usize,
        /// The name of the other member.
        name: String,
    },
    /// Members gave elements of different lengths to the same collective.
    #[error(
        "{operation}: member {rank}, {name}, gives elements of {there} bytes, and this member of \
         {here} bytes: all members must give elements of the same type"
    )]
    Elements {
        /// The collective that has failed.
        operation: Operation,
        /// The length of an element of this member in bytes; 255 stands for longer ones, too.
        here: usize,
        /// The length of an element of the other member in bytes; 255 stands for longer ones, too.
        there: usize,
        /// The rank of the other member.
        rank: usize,
        /// The name of the other member.
        name: String,
    },
    /// Members gave elements of different types to the same collective, which have the same length.
    #[error(
        "{operation}: member {rank}, {name}, gives elements of another type, which are as long as \
         the {here} of this member: all members must give elements of the same type"
    )]
    Types {
        /// The collective that has failed.
        operation: Operation,
        /// The type of the elements of this member.
        here: &'static str,
        /// The rank of the other member.
        rank: usize,
        /// The name of the other member.
        name: String,
    },
    /// Members combine elements by different [operators](crate::operators).
    #[error(
        "{operation}: member {rank}, {name}, combines elements by `{there}`, or has met a member \
         that does, and this member by `{here}`: all members must pass the same operator"
    )]
    Operators {
        /// The collective that has failed.
        operation: Operation,
        /// The name of the operator of this member, or of one whose elements it has combined.
        here: &'static str,
        /// The name of the operator of the other member.
        there: &'static str,
        /// The rank of the other member.
        rank: usize,
        /// The name of the other member.
        name: String,
    },
    /// Members called different collectives before this one, or the same with different arguments.
    #[error(
        "{operation}: member {rank}, {name}, has called another collective than this member \
         before, or has named another root or given other elements; all members must call the same \
         collectives in the same order, and all members must name the same root"
    )]
    Diverged {
        /// The collective that has failed.
        operation: Operation,
        /// The rank of the other member.
        rank: usize,
        /// The name of the other member.
        name: String,
    },
    /// A member has given more or less than this one to a collective in which all give as much.
    #[error(
        "{operation}: member {rank}, {name}, has sent {found} bytes, and this member expects \
         {expected}; all members must give as many elements"
    )]
    Lengths {
        /// The collective that has failed.
        operation: Operation,
        /// The rank of the other member.
        rank: usize,
        /// The name of the other member.
        name: String,
        /// How many bytes have come from the other member.
        found: usize,
        /// How many bytes should have come.
        expected: usize,
    },
    /// A member has sent a message that does not belong where it came.
    #[error(
        "{operation}: member {rank}, {name}, has sent a message that belongs to another round: the \
         lengths differ between members, or they are different versions of the program"
    )]
    Malformed {
        /// The collective that has failed.
        operation: Operation,
        /// The rank of the other member.
        rank: usize,
        /// The name of the other member.
        name: String,
    },
    /// No member has the rank that was given as the root or as a partner. Nothing was sent.
    #[error("{operation}, with member {rank}: the group has the members below {size}")]
    NoMember {
        /// The operation that was asked for.
        operation: Operation,
        /// The rank that was given.
        rank: usize,
        /// How many members the group has.
        size: usize,
    },
    /// A member was to send a message to itself, or to receive one from itself.
    #[error("a message from member {rank} to itself: members send to others alone")]
    Itself {
        /// The rank of this member.
        rank: usize,
    },
    /// The number of parts to send is not the number of members. Nothing was sent.
    #[error(
        "{operation}: {found} parts for {size} members; one is for each, in the order of ranks"
    )]
    Parts {
        /// The operation that was asked for.
        operation: Operation,
        /// How many parts were given.
        found: usize,
        /// How many members the group has.
        size: usize,
    },
}

impl GroupError {
    /// Returns the rank of the member that the error is about, if it is about one.
    pub fn rank(&self) -> Option<usize> {
        match *self {
            Self::Absent { rank, .. }
            | Self::OtherGroup { rank, .. }
            | Self::Link { rank, .. }
            | Self::Failed { rank, .. }
            | Self::Mismatch { rank, .. }
            | Self::Roots { rank, .. }
            | Self::Elements { rank, .. }
            | Self::Types { rank, .. }
            | Self::Operators { rank, .. }
            | Self::Diverged { rank, .. }
            | Self::Lengths { rank, .. }
            | Self::Malformed { rank, .. } => Some(rank),
            Self::Rank { .. }
            | Self::NotNamed { .. }
            | Self::NamedTwice { .. }
            | Self::NoMember { .. }
            | Self::Itself { .. }
            | Self::Parts { .. } => None,
        }
    }

    /// Returns whether the error says how the calls of two members differ, which is a cause of
    /// failures and never a consequence of one.
    pub(crate) fn tells_difference(&self) -> bool {
        matches!(
            self,
            Self::Mismatch { .. }
                | Self::Roots { .. }
                | Self::Elements { .. }
                | Self::Types { .. }
                | Self::Operators { .. }
        )
    }

    /// Returns what other members are told, if the error is about more than a wrong argument.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let why = match self {
            Self::Link { why, .. } => why.to_string(),
            Self::Failed { rank, why, .. } => {
                return Some(Failure { rank: *rank, why: why.clone() });
            }
            why => why.to_string(),
        };
        Some(Failure { rank: self.rank()?, why: why.into() })
    }
}
