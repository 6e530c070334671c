//! A communicator over any links: collectives whose messages are matched by tags.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;

use crate::call::{Call, Calls, Common, Numbered};
use crate::communicator::{Communicator, Fault, Rounds, Wrong};
use crate::error::GroupError;
use crate::links::{Failure, Links};
use crate::operation::Operation;
use crate::schedule::Exchange;
use crate::tag::Tag;

/// A member's place in a group over [`Links`], which all collectives that the member has begun
/// share. See [`Group::over`](crate::Group::over).
pub struct Linked<L> {
    pub(crate) links: L,
    calls: Calls,
}

impl<L: Links> Linked<L> {
    pub(crate) fn new(links: L) -> Self {
        Self { links, calls: Calls::default() }
    }

    /// Begins to send or receive by a tag of the program.
    pub(crate) fn direct(self: &Arc<Self>, tag: u32) -> LinkedRounds<L> {
        let (operation, common) = (Operation::Direct, Common::of_bits(0));
        LinkedRounds { place: self.clone(), operation, number: tag, common, is_done: false }
    }
}

impl<L: Links> fmt::Debug for Linked<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rank, size) = (self.links.rank(), self.links.size());
        f.debug_struct("Linked").field("rank", &rank).field("size", &size).finish()
    }
}

impl<L: Links> Communicator for Linked<L> {
    type Error = GroupError;
    type Rounds = LinkedRounds<L>;

    fn rank(&self) -> usize {
        self.links.rank()
    }

    fn size(&self) -> usize {
        self.links.size()
    }

    fn begin(self: &Arc<Self>, call: Call) -> Result<LinkedRounds<L>, GroupError> {
        let Numbered { operation, number, common } = self.calls.add(call);
        Ok(LinkedRounds { place: self.clone(), operation, number, common, is_done: false })
    }

    fn refusal(&self, operation: Operation, wrong: Wrong) -> GroupError {
        match wrong {
            Wrong::NoMember { rank, size } => GroupError::NoMember { operation, rank, size },
            Wrong::Parts { found, size } => GroupError::Parts { operation, found, size },
        }
    }
}

/// A collective over [`Links`] that a member has begun.
pub struct LinkedRounds<L: Links> {
    place: Arc<Linked<L>>,
    operation: Operation,
    number: u32,
    common: Common,
    is_done: bool,
}

impl<L: Links> fmt::Debug for LinkedRounds<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, number, .. } = self;
        let mut rounds = f.debug_struct("LinkedRounds");
        rounds.field("operation", operation).field("number", number).finish_non_exhaustive()
    }
}

impl<L: Links> Rounds for LinkedRounds<L> {
    const DIVIDES: bool = true;

    type Failure = GroupError;
    type Error = GroupError;

    fn rank(&self) -> usize {
        self.links().rank()
    }

    fn size(&self) -> usize {
        self.links().size()
    }

    /// Sends a message to a member. The links have the message when this returns, as long as they
    /// take it at once: nothing else has to be waited for first.
    fn send(
        &self,
        to: usize,
        round: u32,
        body: Bytes,
    ) -> impl Future<Output = Result<(), GroupError>> + Send {
        let sending = self.links().send(to, self.tag(round).bits(), body);
        async move { sending.await.map_err(|why| self.link(to, why)) }
    }

    /// Receives the message of a round from a member. The links know of the receive when this
    /// returns, as with [`send`](Self::send).
    fn receive(
        &self,
        from: usize,
        round: u32,
    ) -> impl Future<Output = Result<Bytes, GroupError>> + Send {
        let tag = self.tag(round);
        let expected = tag.bits();
        let receiving = self.links().receive(from, expected, tag.mask());
        async move {
            let (bits, body) = receiving.await.map_err(|why| self.link(from, why))?;
            match bits == expected {
                true => Ok(body),
                false => Err(self.unexpected(from, bits)),
            }
        }
    }

    async fn receive_next(&self, from: usize) -> Result<(u32, Bytes), GroupError> {
        let tag = self.tag(0);
        let received = self.links().receive(from, tag.bits(), tag.mask()).await;
        let (bits, body) = received.map_err(|why| self.link(from, why))?;
        let round = tag.round_of(bits).ok_or_else(|| self.unexpected(from, bits))?;
        Ok((round, body))
    }

    async fn exchange(&self, exchange: Exchange, body: Bytes) -> Result<Bytes, GroupError> {
        let Exchange { round, to, from } = exchange;
        // A wait for the one may take turns of the NIC for a while: both are begun before that.
        let (receiving, sending) = (self.receive(from, round), self.send(to, round, body));
        let ((), received) = tokio::try_join!(sending, receiving)?;
        Ok(received)
    }

    async fn watched<T: Send>(
        &self,
        algorithm: impl Future<Output = Result<T, GroupError>> + Send,
    ) -> Result<T, GroupError> {
        tokio::select! {
            biased;
            outcome = algorithm => outcome,
            failure = self.links().failed() => {
                Err(self.stray().unwrap_or_else(|| self.failed(failure)))
            }
        }
    }

    async fn done<T: Send>(mut self, result: Result<T, GroupError>) -> Result<T, GroupError> {
        self.is_done = true;
        match result {
            Ok(value) => Ok(value),
            Err(why) => Err(self.failing(why).await),
        }
    }

    fn failure(&self, rank: usize, fault: Fault) -> GroupError {
        let (operation, name) = (self.operation, self.links().name(rank));
        match fault {
            Fault::Malformed => GroupError::Malformed { operation, rank, name },
            Fault::Lengths { found, expected } => {
                GroupError::Lengths { operation, rank, name, found, expected }
            }
            Fault::Types { here } => GroupError::Types { operation, here, rank, name },
            Fault::Operators { here, there } => {
                let (here, there) = (here.name(), there.name());
                GroupError::Operators { operation, here, there, rank, name }
            }
        }
    }
}

impl<L: Links> LinkedRounds<L> {
    fn links(&self) -> &L {
        &self.place.links
    }

    /// Has the group fail because of an error, unless that is about wrong arguments. If the group
    /// has failed before, the error here is a consequence of that, and the first one counts; unless
    /// the error itself, or a message that nobody has received, tells that another member has called
    /// something else.
    #[cold]
    async fn failing(&self, why: GroupError) -> GroupError {
        let Some(failure) = why.failure() else { return why };
        let before = self.links().failed().now_or_never();
        self.links().fail(failure).await;
        match before {
            Some(failure) if !why.tells_difference() => {
                self.stray().unwrap_or_else(|| self.failed(failure))
            }
            _ => why,
        }
    }

    fn tag(&self, round: u32) -> Tag {
        let Self { operation, number, common, .. } = *self;
        Tag { operation, round, common, number }
    }

    /// The error of a message that another collective has sent than the one of this member, or
    /// another round.
    #[cold]
    fn unexpected(&self, rank: usize, bits: u64) -> GroupError {
        let here = Numbered { operation: self.operation, number: self.number, common: self.common };
        let differs = self.difference(here, rank, bits);
        let differs = differs.or_else(|| match Tag::call_of(bits) {
            Some((_, common)) if common != self.common => Some(self.diverged(rank)),
            _ => None,
        });
        differs.unwrap_or_else(|| self.failure(rank, Fault::Malformed))
    }

    /// The error of a call that another member has made otherwise, as the bits of one of its
    /// messages tell.
    fn difference(&self, call: Numbered, rank: usize, bits: u64) -> Option<GroupError> {
        let (there, common) = Tag::call_of(bits)?;
        let (operation, name) = (call.operation, self.links().name(rank));
        if there != operation {
            return Some(GroupError::Mismatch { here: operation, there, rank, name });
        }
        let roots = (call.common.root(), common.root());
        if operation.has_root() && roots.0 != roots.1 {
            let (here, there) = roots;
            return Some(GroupError::Roots { operation, here, there, rank, name });
        }
        let (here, there) = (call.common.element(), common.element());
        let is_other = operation.has_elements() && here != there;
        is_other.then_some(GroupError::Elements { operation, here, there, rank, name })
    }

    /// The error of a member that has called other collectives before.
    fn diverged(&self, rank: usize) -> GroupError {
        self.stray().unwrap_or_else(|| {
            let (operation, name) = (self.operation, self.links().name(rank));
            GroupError::Diverged { operation, rank, name }
        })
    }

    /// Looks for a message of a collective before this one that nobody has received, since this
    /// member has called the collective otherwise. Returns the error of the first such collective.
    #[cold]
    fn stray(&self) -> Option<GroupError> {
        let others = (0..self.size()).filter(|other| *other != self.rank());
        let calls = self.place.calls.before(self.number).into_iter().rev();
        let mut pairs = calls.flat_map(|call| others.clone().map(move |from| (call, from)));
        pairs.find_map(|(call, from)| {
            let Numbered { operation, number, common } = call;
            let tag = Tag { operation, round: 0, common, number };
            let bits = self.links().seen(from, tag.bits(), tag.mask())?;
            self.difference(call, from, bits)
        })
    }

    #[cold]
    fn link(&self, rank: usize, why: L::Error) -> GroupError {
        let (operation, name) = (self.operation, self.links().name(rank));
        GroupError::Link { operation, rank, name, why: Arc::new(why) }
    }

    #[cold]
    fn failed(&self, failure: Failure) -> GroupError {
        let Failure { rank, why } = failure;
        GroupError::Failed { operation: self.operation, rank, name: self.links().name(rank), why }
    }
}

impl<L: Links> Drop for LinkedRounds<L> {
    fn drop(&mut self) {
        // Only a message is lost if a member gives up a send or a receive of its own.
        if !self.is_done && self.operation != Operation::Direct {
            let why = format!(
                "{} was given up: what is begun must be awaited to its end by all members",
                self.operation
            );
            // The others are told although nobody waits for that.
            drop(self.links().fail(Failure { rank: self.rank(), why: why.into() }));
        }
    }
}
