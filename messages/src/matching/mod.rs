//! Matching messages with receives, as MPI demands it.
//!
//! A receive takes the message that came first of those that match it, and a message goes to the
//! receive that was posted first of those that match it. Whoever uses this puts the messages of one
//! sender here in the order in which they were sent, so that none overtakes another.
//!
//! The folder is bookkeeping alone: it is told of receives and of messages, in whatever form the
//! user of it has them, and tells which belong together. How many messages wait here is the user's
//! to bound.

mod lists;
pub mod map;
mod pattern;
mod posted;
mod scanned;
mod sources;
#[cfg(test)]
mod tests;
mod unexpected;

pub use pattern::{Envelope, Pattern, Source};
pub use posted::{Met, PostedId};
pub use sources::Sources;
pub use unexpected::{MessageId, Taken, Turn};

use posted::Posted;
use unexpected::Unexpected;

/// Receives of the type `R` that wait for messages, and messages of the type `M` that wait for
/// receives.
#[derive(Debug)]
pub struct Matcher<R, M> {
    posted: Posted<R>,
    unexpected: Unexpected<M>,
}

impl<R, M> Default for Matcher<R, M> {
    fn default() -> Self {
        Self { posted: Posted::default(), unexpected: Unexpected::default() }
    }
}

/// The outcome of posting a receive.
#[derive(Debug)]
pub enum Post<R, M> {
    /// The receive has met a message that waited.
    Met(R, Taken<M>),
    /// The receive has met no message, and waits for one.
    Waits(PostedId),
}

impl<R, M> Matcher<R, M> {
    /// Posts a receive, which meets the first waiting message that matches, or waits itself.
    pub fn post(&mut self, pattern: Pattern, receive: R) -> Post<R, M> {
        match self.unexpected.take(pattern) {
            Some(taken) => Post::Met(receive, taken),
            None => Post::Waits(self.posted.post(pattern, receive)),
        }
    }

    /// Takes the receive that a message which has come belongs to. If there is none, the message
    /// is to be [put](Self::put) here.
    pub fn receive_for(&mut self, envelope: Envelope) -> Option<R> {
        self.posted.take_for(envelope).map(|met| met.receive)
    }

    /// Takes the receive that a message belongs to which is on its way, so that the receive can be
    /// [posted again](Self::post_again) if the message does not come.
    pub fn promise_for(&mut self, envelope: Envelope) -> Option<Met<R>> {
        self.posted.take_for(envelope)
    }

    /// Posts a receive again whose message does not come, where the receive was in the order of
    /// posting.
    pub fn post_again(&mut self, met: Met<R>) -> Post<R, M> {
        match self.unexpected.take(met.pattern) {
            Some(taken) => Post::Met(met.receive, taken),
            None => Post::Waits(self.posted.post_again(met)),
        }
    }

    /// Returns the receive that a message would belong to, and leaves it waiting.
    pub fn first_receive_for(&self, envelope: Envelope) -> Option<&R> {
        self.posted.first_for(envelope)
    }

    /// Returns the turn of a message that a receive takes as it comes, and that is the one with the
    /// number `sent` of its sender.
    pub fn next_turn(&mut self, sent: u64) -> Turn {
        self.unexpected.next_turn(sent)
    }

    /// Has a message wait again that a receive has taken, in its turn: behind those that its sender
    /// has sent before, and before those sent after it. No receive that waits may match it.
    pub fn put_back(&mut self, taken: Taken<M>) -> MessageId {
        self.unexpected.put_back(taken)
    }

    /// Has a message wait exactly in its turn, which the user chooses. No receive that waits may
    /// match it.
    pub fn insert(&mut self, taken: Taken<M>) -> MessageId {
        self.unexpected.insert(taken)
    }

    /// Has a message wait that [no receive](Self::receive_for) waits for. The message is the one
    /// with the number `sent` of its sender, of which all others that wait have lesser numbers.
    pub fn put(&mut self, envelope: Envelope, sent: u64, message: M) -> MessageId {
        self.unexpected.put(envelope, sent, message)
    }

    /// Takes a message out that waits. Returns `None` if a receive has taken it before.
    pub fn remove(&mut self, id: MessageId) -> Option<M> {
        self.unexpected.remove(id)
    }

    /// Takes back a receive that waits. Returns `None` if it has met a message before.
    pub fn cancel(&mut self, id: PostedId) -> Option<R> {
        self.posted.cancel(id)
    }

    /// Takes back all receives of some patterns, in the order in which they were posted.
    pub fn cancel_all(&mut self, of: impl Fn(&Pattern) -> bool) -> Vec<R> {
        self.posted.cancel_all(of)
    }

    /// Returns the patterns of the receives that wait.
    pub fn patterns(&self) -> impl Iterator<Item = Pattern> {
        self.posted.patterns()
    }

    /// Returns the receives that wait, in the order in which they were posted.
    pub fn receives_in_order(&self) -> Vec<(Pattern, &R)> {
        self.posted.in_order()
    }

    /// Returns the message that a receive of a pattern would meet, and leaves it here.
    pub fn probe(&mut self, pattern: Pattern) -> Option<(Envelope, &M)> {
        self.unexpected.probe(pattern)
    }

    /// Returns how many receives wait for messages.
    #[cfg(test)]
    pub fn receives(&self) -> usize {
        self.posted.len()
    }

    /// Returns how many messages wait for receives.
    #[cfg(test)]
    pub fn messages(&self) -> usize {
        self.unexpected.len()
    }
}
