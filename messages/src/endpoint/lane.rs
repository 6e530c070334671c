//! The messages to one peer that wait for credits, in the order in which they are sent.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use doorbell_am::{self as am, Credit};

use super::slots::SendSlot;
use crate::error::SendError;
use crate::matching::Pattern;
use crate::pacing::{Held, Offer, Order, Release, SearchId};
use crate::wire::{
    DONE, EAGER, FREED, GIVEN_UP, HOLDS, Heading, LEAVE, MORE, OFFER, SEARCH, TAKE, TAKEN,
};

/// A message to a peer.
#[derive(Debug)]
pub enum Frame {
    Eager { bits: u64, last: bool, outbound: Outbound },
    Taken { order: Order, last: bool, outbound: Outbound },
    More(Rest),
    Holds,
    Offer(Offer),
    Freed(usize),
    Search { search: SearchId, pattern: Pattern },
    GivenUp(SearchId),
    Take(Order),
    Leave(Order),
    Done { number: u64, received: bool },
}

/// A message that is sent, and who waits for that.
#[derive(Debug)]
pub struct Outbound {
    /// The length of the whole body.
    pub len: usize,
    /// Whether the receiver pulls the body.
    pub long: bool,
    /// The body, or where the receiver pulls it from.
    pub payload: Bytes,
    /// The number by which the receiver says that the message is done; zero if nobody waits for
    /// that.
    pub number: u64,
    /// The slot for the outcome, if it is known as soon as the message has left.
    pub slot: Option<Arc<SendSlot>>,
}

/// The part of a message that has not been sent yet.
#[derive(Debug)]
pub struct Rest {
    payload: Bytes,
    len: usize,
    slot: Option<Arc<SendSlot>>,
}

impl Frame {
    /// A held message that is sent because its offer was taken.
    pub fn taken(order: Order, Release { held, last }: Release<Outbound>) -> Self {
        Self::Taken { order, last, outbound: held.message }
    }

    /// A held message that is sent because the window has room.
    pub fn released(Release { held, last }: Release<Outbound>) -> Self {
        let Held { envelope, message: outbound, .. } = held;
        Self::Eager { bits: envelope.bits, last, outbound }
    }
}

/// The queue of messages to one peer.
#[derive(Debug)]
pub struct Lane {
    peer: am::Peer,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<Frame>,
    /// Whether a task sends what is in the queue as credits come.
    is_pumped: bool,
}

impl Lane {
    pub fn new(peer: am::Peer) -> Arc<Self> {
        Arc::new(Self { peer, queue: Mutex::default() })
    }

    /// Puts messages behind the others. They are sent by [`flush`](Self::flush).
    pub fn put(&self, frames: impl IntoIterator<Item = Frame>) {
        self.lock().frames.extend(frames);
    }

    /// Sends what there are credits for, and has a task send the rest as credits come. A handler of
    /// Active Messages may not send, and leaves everything to the task.
    pub fn flush(self: &Arc<Self>) {
        let mut queue = self.lock();
        while !queue.is_pumped && !queue.frames.is_empty() {
            match self.peer.try_credit() {
                Ok(Some(credit)) => self.send_first(credit, &mut queue),
                _ => {
                    queue.is_pumped = true;
                    let lane = self.clone();
                    self.peer.runtime().spawn(async move { lane.pump().await });
                }
            }
        }
    }

    async fn pump(&self) {
        loop {
            let credit = self.peer.credit().await;
            let mut queue = self.lock();
            let Ok(credit) = credit else {
                queue.is_pumped = false;
                drop(queue);
                return self.close();
            };
            self.send_first(credit, &mut queue);
            if queue.frames.is_empty() {
                queue.is_pumped = false;
                return;
            }
        }
    }

    /// Sends the first message of the queue, or as much of it as one message of Active Messages
    /// has room for.
    fn send_first(&self, credit: Credit<'_>, queue: &mut Queue) {
        let Some(frame) = queue.frames.pop_front() else { return };
        if let Some(rest) = self.send(credit, frame) {
            queue.frames.push_front(Frame::More(rest));
        }
    }

    /// Sends a message by a credit, and returns the rest of it, if it is longer than a payload. A
    /// message that can't be sent is to a peer that has gone, of which the endpoint hears by an event.
    fn send(&self, credit: Credit<'_>, frame: Frame) -> Option<Rest> {
        let most = self.peer.longest_payload();
        let sent = match frame {
            Frame::Eager { bits, last, outbound } => {
                let Outbound { len, long, number, .. } = outbound;
                let words = [bits, Heading { len, last, long }.word(), number];
                let (first, rest) = outbound.split(most);
                let sent = credit.request_with(EAGER, words, &first);
                return self.left(rest, sent.is_ok());
            }
            Frame::Taken { order, last, outbound } => {
                let Outbound { len, long, number, .. } = outbound;
                let words = [order, Heading { len, last, long }.word(), number];
                let (first, rest) = outbound.split(most);
                let sent = credit.request_with(TAKEN, words, &first);
                return self.left(rest, sent.is_ok());
            }
            Frame::More(mut rest) => {
                let next = rest.payload.split_to(most.min(rest.payload.len()));
                let sent = credit.request_with(MORE, (), &next);
                return self.left(rest, sent.is_ok());
            }
            Frame::Holds => credit.request(HOLDS, ()),
            Frame::Offer(Offer { search, order, envelope }) => {
                credit.request(OFFER, [search, order, envelope.bits])
            }
            Frame::Freed(cost) => credit.request(FREED, cost as u64),
            Frame::Search { search, pattern } => {
                credit.request(SEARCH, [search, pattern.bits(), pattern.mask()])
            }
            Frame::GivenUp(search) => credit.request(GIVEN_UP, search),
            Frame::Take(order) => credit.request(TAKE, order),
            Frame::Leave(order) => credit.request(LEAVE, order),
            Frame::Done { number, received } => credit.request(DONE, [number, u64::from(received)]),
        };
        if let Err(why) = sent {
            tracing::debug!(%why, "a message was not sent");
        }
        None
    }

    /// Returns the rest of a message of which a part was sent, or was not. If there is none, tells
    /// who waits that the message has left.
    fn left(&self, rest: Rest, is_sent: bool) -> Option<Rest> {
        if is_sent && !rest.payload.is_empty() {
            return Some(rest);
        }
        let outcome = if is_sent { Ok(()) } else { Err(self.gone(rest.len)) };
        rest.slot.into_iter().for_each(|slot| slot.fill(outcome.clone()));
        None
    }

    /// Drops everything, because the peer has gone.
    pub fn close(&self) {
        let lost = std::mem::take(&mut self.lock().frames);
        lost.into_iter().for_each(|frame| self.lose(frame));
    }

    /// Tells who waits for a message that it was not sent.
    fn lose(&self, frame: Frame) {
        let (slot, len) = match frame {
            Frame::Eager { outbound, .. } | Frame::Taken { outbound, .. } => {
                (outbound.slot, outbound.len)
            }
            Frame::More(rest) => (rest.slot, rest.len),
            _ => return,
        };
        slot.into_iter().for_each(|slot| slot.fill(Err(self.gone(len))));
    }

    /// Returns the error of a message to a peer that has gone.
    pub fn gone(&self, len: usize) -> SendError {
        SendError::PeerGone { peer: crate::error::peer_text(self.peer.name()), len }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outbound {
    /// Splits off what one message of Active Messages takes of the payload.
    fn split(self, most: usize) -> (Bytes, Rest) {
        let Self { len, mut payload, slot, .. } = self;
        let first = payload.split_to(most.min(payload.len()));
        (first, Rest { payload, len, slot })
    }
}
