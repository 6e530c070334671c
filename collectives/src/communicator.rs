//! What a group needs of whatever carries its messages.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::call::Call;
use crate::operation::Operation;
use crate::operators::Operator;
use crate::schedule::Exchange;

/// A member's place in a group, from which the member begins collectives.
///
/// [`Linked`](crate::Linked) is a communicator over any [`Links`](crate::Links). A library whose
/// messages have an order, credits and failures of their own implements the trait itself, as the
/// groups of Active Messages do.
pub trait Communicator: Send + Sync + 'static {
    /// The error that a program gets when a collective has failed.
    type Error: std::error::Error + Send + Sync + 'static;
    /// A collective that this member has begun.
    type Rounds: Rounds<Error = Self::Error>;

    /// Returns the rank of this member: from 0, and below [`size`](Self::size).
    fn rank(&self) -> usize;

    /// Returns the number of members.
    fn size(&self) -> usize;

    /// Begins a collective, which takes its place in the program's order.
    ///
    /// # Errors
    /// When the group has failed before, or this member has left.
    fn begin(self: &Arc<Self>, call: Call) -> Result<Self::Rounds, Self::Error>;

    /// Makes the error of a call with wrong arguments, of which nothing was sent.
    fn refusal(&self, operation: Operation, wrong: Wrong) -> Self::Error;
}

/// A collective under way at one member: the rounds in which the algorithms send and receive.
///
/// The group fails if the collective is dropped before it is [done](Self::done).
pub trait Rounds: Send + Sync + Sized + 'static {
    /// Whether long data may go in several messages from one member to another, or straight from
    /// the member that has the data to the member that gets it.
    ///
    /// If not, a member sends at most two messages to another in a collective, and only to partners
    /// of the schedules. Links that keep messages which nobody has asked for yet bound their memory
    /// by that.
    const DIVIDES: bool;

    /// The failure of a message, by which the collective ends.
    type Failure: Send;
    /// The error that the program gets for a failure.
    type Error;

    /// Returns the rank of this member.
    fn rank(&self) -> usize;

    /// Returns the number of members.
    fn size(&self) -> usize;

    /// Sends a message of a round to a member.
    fn send(
        &self,
        to: usize,
        round: u32,
        body: Bytes,
    ) -> impl Future<Output = Result<(), Self::Failure>> + Send;

    /// Receives the message of a round from a member.
    fn receive(
        &self,
        from: usize,
        round: u32,
    ) -> impl Future<Output = Result<Bytes, Self::Failure>> + Send;

    /// Receives the next message from a member, and returns the message's round, too. Algorithms
    /// call this only where long data may be [divided](Self::DIVIDES).
    fn receive_next(
        &self,
        from: usize,
    ) -> impl Future<Output = Result<(u32, Bytes), Self::Failure>> + Send;

    /// Sends a message to a member, and receives a message from another at the same time.
    fn exchange(
        &self,
        exchange: Exchange,
        body: Bytes,
    ) -> impl Future<Output = Result<Bytes, Self::Failure>> + Send;

    /// Exchanges messages without a body, as a barrier does.
    fn meet(&self, exchange: Exchange) -> impl Future<Output = Result<(), Self::Failure>> + Send {
        async move { self.exchange(exchange, Bytes::new()).await.map(drop) }
    }

    /// Sends messages of a round to several members. A member that is not ready does not delay the
    /// others.
    fn send_all(
        &self,
        messages: impl Iterator<Item = (usize, Bytes)> + Send,
        round: u32,
    ) -> impl Future<Output = Result<(), Self::Failure>> + Send {
        let sends = try_join_all(messages.map(|(to, body)| self.send(to, round, body)));
        async move { sends.await.map(drop) }
    }

    /// Runs an algorithm to its end, or until the group fails. By default the algorithm learns of
    /// failures by its own messages.
    fn watched<T: Send>(
        &self,
        algorithm: impl Future<Output = Result<T, Self::Failure>> + Send,
    ) -> impl Future<Output = Result<T, Self::Failure>> + Send {
        algorithm
    }

    /// Ends the collective with its result. Of a failure, the other members are told.
    fn done<T: Send>(
        self,
        result: Result<T, Self::Failure>,
    ) -> impl Future<Output = Result<T, Self::Error>> + Send;

    /// Makes the failure of a member that has sent something wrong.
    fn failure(&self, rank: usize, fault: Fault) -> Self::Failure;
}

/// The reason why a message of another member can't be what a collective expects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// The message belongs to no round of the schedule, or its bytes mean nothing.
    Malformed,
    /// The message is longer or shorter than what this member gave.
    Lengths {
        /// How many bytes have come.
        found: usize,
        /// How many bytes should have come.
        expected: usize,
    },
    /// The elements are of another type than those of this member, which have the type `here`.
    Types {
        /// The type of the elements of this member.
        here: &'static str,
    },
    /// The elements are combined by another operator.
    Operators {
        /// The operator of this member, or of one whose elements it has combined.
        here: Operator,
        /// The operator of the other member.
        there: Operator,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Malformed => f.write_str(
                "has sent a message that belongs to another round: the lengths differ between \
                 members, or they are different versions of the program",
            ),
            Self::Lengths { found, expected } => write!(
                f,
                "has sent {found} bytes, and this member expects {expected}; all members must give \
                 as many elements"
            ),
            Self::Types { here } => write!(
                f,
                "gives elements of another type, which are as long as the {here} of this member: \
                 all members must give elements of the same type"
            ),
            Self::Operators { here, there } => write!(
                f,
                "combines elements by `{}`, or has met a member that does, and this member by \
                 `{}`: all members must pass the same operator",
                there.name(),
                here.name()
            ),
        }
    }
}

/// Wrong arguments of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// No member has the rank that was given as the root.
    NoMember {
        /// The rank that was given.
        rank: usize,
        /// How many members the group has.
        size: usize,
    },
    /// The number of parts to send is not the number of members.
    Parts {
        /// How many parts were given.
        found: usize,
        /// How many members the group has.
        size: usize,
    },
}
