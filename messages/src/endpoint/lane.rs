//! The messages to one peer that wait for credits, in the order in which they are sent.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use doorbell_am::{self as am, Credit};

use super::send::SendSlot;
use crate::error::SendError;
use crate::matching::Pattern;
use crate::pacing::{Offer, Order, SearchId};
use crate::wire::{
    EAGER, FREED, Flags, GIVEN_UP, HOLDS, LEAVE, MATCHED, OFFER, SEARCH, TAKE, TAKEN,
};

/// A message to a peer.
#[derive(Debug)]
pub enum Frame {
    Eager { bits: u64, flags: Flags, outbound: Outbound },
    Taken { order: Order, flags: Flags, outbound: Outbound },
    Holds,
    Offer(Offer),
    Freed(usize),
    Search { search: SearchId, pattern: Pattern },
    GivenUp(SearchId),
    Take(Order),
    Leave(Order),
    Matched(u64),
}

/// The body of a message that is sent, and who waits for that.
#[derive(Debug)]
pub struct Outbound {
    pub body: Bytes,
    /// The number of a synchronous send; zero if it is not synchronous.
    pub synchronous: u64,
    /// The slot for the outcome, if somebody waits until the message has left.
    pub slot: Option<Arc<SendSlot>>,
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
                Ok(Some(credit)) => {
                    let frame = queue.frames.pop_front().expect("the queue is not empty");
                    send(credit, frame);
                }
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
                let lost = std::mem::take(&mut queue.frames);
                drop(queue);
                lost.into_iter().for_each(|frame| self.lose(frame));
                return;
            };
            let frame =
                queue.frames.pop_front().expect("only this task takes frames off the queue");
            send(credit, frame);
            if queue.frames.is_empty() {
                queue.is_pumped = false;
                return;
            }
        }
    }

    /// Drops everything, because the peer has gone.
    pub fn close(&self) {
        let lost = std::mem::take(&mut self.lock().frames);
        lost.into_iter().for_each(|frame| self.lose(frame));
    }

    /// Tells who waits for a message that it was not sent.
    fn lose(&self, frame: Frame) {
        if let Frame::Eager { outbound, .. } | Frame::Taken { outbound, .. } = frame {
            outbound.slot.iter().for_each(|slot| slot.fill(Err(self.gone(outbound.body.len()))));
        }
    }

    /// The error of a message to a peer that has gone.
    pub fn gone(&self, len: usize) -> SendError {
        SendError::PeerGone { peer: crate::error::peer_text(self.peer.name()), len }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends a message by a credit. One that can't be sent is to a peer that has gone, of which the
/// endpoint hears by an event.
fn send(credit: Credit<'_>, frame: Frame) {
    let sent = match frame {
        Frame::Eager { bits, flags, outbound } => {
            let words = [bits, flags.word(), outbound.synchronous];
            let sent = credit.request_with(EAGER, words, &outbound.body);
            return outbound.left(sent.is_ok());
        }
        Frame::Taken { order, flags, outbound } => {
            let words = [order, flags.word(), outbound.synchronous];
            let sent = credit.request_with(TAKEN, words, &outbound.body);
            return outbound.left(sent.is_ok());
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
        Frame::Matched(number) => credit.request(MATCHED, number),
    };
    if let Err(why) = sent {
        tracing::debug!(%why, "a message was not sent");
    }
}

impl Outbound {
    /// Tells who waits that the message has left. A synchronous send waits for more.
    fn left(self, is_sent: bool) {
        if is_sent && self.synchronous == 0 {
            self.slot.iter().for_each(|slot| slot.fill(Ok(())));
        }
    }
}
