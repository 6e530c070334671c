//! A collective under way at one member: its messages, and its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use doorbell_am::schedule::Exchange;
use futures_util::FutureExt;

use super::error::GroupError;
use super::links::{Failure, Links};
use super::operation::Operation;
use super::tag::{MASK, Tag};

/// A collective that a member has begun. The algorithms send and receive through it.
///
/// The group fails if the collective is dropped before its [end](Self::end).
pub struct Run<L: Links> {
    links: Arc<L>,
    pub operation: Operation,
    number: u32,
    is_done: AtomicBool,
}

impl<L: Links> Run<L> {
    pub fn new(links: &Arc<L>, operation: Operation, number: u32) -> Self {
        Self { links: links.clone(), operation, number, is_done: AtomicBool::new(false) }
    }

    pub fn rank(&self) -> usize {
        self.links.rank()
    }

    pub fn size(&self) -> usize {
        self.links.size()
    }

    /// Runs the collective's algorithm to its end, or until the group fails.
    pub async fn end<T>(
        &self,
        algorithm: impl Future<Output = Result<T, GroupError>>,
    ) -> Result<T, GroupError> {
        let outcome = tokio::select! {
            biased;
            outcome = algorithm => outcome,
            failure = self.links.failed() => Err(self.failed(failure)),
        };
        self.is_done.store(true, Ordering::Relaxed);
        match outcome {
            Ok(value) => Ok(value),
            Err(why) => Err(self.failing(why).await),
        }
    }

    /// Has the group fail because of an error, unless that is about wrong arguments. If the group
    /// has failed before, the error here is a consequence of that, and the first one counts.
    #[cold]
    async fn failing(&self, why: GroupError) -> GroupError {
        let Some(failure) = why.failure() else { return why };
        let before = self.links.failed().now_or_never();
        self.links.fail(failure).await;
        before.map_or(why, |failure| self.failed(failure))
    }

    /// Sends a message to a member. The links have the message when this returns, as long as they
    /// take it at once: nothing else has to be waited for first.
    pub fn send(
        &self,
        to: usize,
        round: u32,
        body: Bytes,
    ) -> impl Future<Output = Result<(), GroupError>> + Send {
        let sending = self.links.send(to, self.tag(round, self.rank()).bits(), body);
        async move { sending.await.map_err(|why| self.link(to, why)) }
    }

    /// Receives the message of a round from a member. The links know of the receive when this
    /// returns, as with [`send`](Self::send).
    pub fn receive(
        &self,
        from: usize,
        round: u32,
    ) -> impl Future<Output = Result<Bytes, GroupError>> + Send {
        let expected = self.tag(round, from).bits();
        let receiving = self.links.receive(from, expected, MASK);
        async move {
            let (bits, body) = receiving.await.map_err(|why| self.link(from, why))?;
            match bits == expected {
                true => Ok(body),
                false => Err(self.unexpected(from, bits)),
            }
        }
    }

    /// Receives the next message from a member, and returns the message's round, too.
    pub async fn receive_next(&self, from: usize) -> Result<(u32, Bytes), GroupError> {
        let tag = self.tag(0, from).bits();
        let received = self.links.receive(from, tag, MASK).await;
        let (bits, body) = received.map_err(|why| self.link(from, why))?;
        match Tag::of_bits(bits) {
            Some((operation, round)) if operation == self.operation => Ok((round, body)),
            _ => Err(self.unexpected(from, bits)),
        }
    }

    /// Sends a message to a member, and receives a message from another at the same time.
    pub async fn exchange(&self, exchange: Exchange, body: Bytes) -> Result<Bytes, GroupError> {
        let Exchange { round, to, from } = exchange;
        // A wait for the one may take turns of the NIC for a while: both are begun before that.
        let (receiving, sending) = (self.receive(from, round), self.send(to, round, body));
        let ((), received) = tokio::try_join!(sending, receiving)?;
        Ok(received)
    }

    /// The error of a message of a wrong length.
    pub fn lengths(&self, rank: usize, found: usize, expected: usize) -> GroupError {
        let (operation, name) = (self.operation, self.links.name(rank));
        GroupError::Lengths { operation, rank, name, found, expected }
    }

    /// The error of a message that does not belong where it came.
    pub fn malformed(&self, rank: usize) -> GroupError {
        GroupError::Malformed { operation: self.operation, rank, name: self.links.name(rank) }
    }

    fn tag(&self, round: u32, from: usize) -> Tag {
        Tag { operation: self.operation, round, from, number: self.number }
    }

    #[cold]
    fn unexpected(&self, rank: usize, bits: u64) -> GroupError {
        match Tag::of_bits(bits) {
            Some((there, _)) if there != self.operation => {
                let (here, name) = (self.operation, self.links.name(rank));
                GroupError::Mismatch { here, there, rank, name }
            }
            _ => self.malformed(rank),
        }
    }

    #[cold]
    fn link(&self, rank: usize, why: L::Error) -> GroupError {
        let (operation, name) = (self.operation, self.links.name(rank));
        GroupError::Link { operation, rank, name, why: Arc::new(why) }
    }

    #[cold]
    fn failed(&self, failure: Failure) -> GroupError {
        let Failure { rank, why } = failure;
        GroupError::Failed { operation: self.operation, rank, name: self.links.name(rank), why }
    }
}

impl<L: Links> Drop for Run<L> {
    fn drop(&mut self) {
        // Only a message is lost if a member gives up a send or a receive of its own.
        if !*self.is_done.get_mut() && self.operation != Operation::Direct {
            let why = format!(
                "{} was given up: what is begun must be awaited to its end by all members",
                self.operation
            );
            // The others are told although nobody waits for that.
            drop(self.links.fail(Failure { rank: self.rank(), why: why.into() }));
        }
    }
}
