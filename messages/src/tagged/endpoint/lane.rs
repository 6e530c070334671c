//! The way to one peer: frames that wait for credits, in the order in which they are sent.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

use doorbell_am::{self as am, Credit};

use super::departures::{Departures, NeverLeaves, Ticket, Waiting};
use super::due::Due;
use super::frame::{Frame, Outbound, Rest, Waits};
use super::rails::Rails;
use crate::tagged::error::{SendError, Unsent, peer_text, why_gone};
use crate::tagged::wire::{OVERHEAD, Packet, SHORT, short_words};
use doorbell_verbs::floor::locked;

/// The way to one peer.
#[derive(Debug)]
pub struct Lane {
    /// The first connection to the peer.
    first: am::Peer,
    /// The peer's name, for errors.
    name: Box<str>,
    /// The most answers that may wait for credits.
    most_answers: usize,
    /// Whether something waits in the queue, or there are several connections. Written under the
    /// queue's lock once what was taken out of the queue is sent.
    is_busy: AtomicBool,
    queue: Mutex<Queue>,
    departures: Departures,
    /// The lanes of the endpoint whose frames handlers have put there.
    due: Arc<Due<Self>>,
}

/// The outcome of an attempt to send a short message at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShortSend {
    Sent,
    /// The message was not sent for want of a credit alone.
    NoCredit,
    /// The message is too long, or others must be sent before it.
    HeldUp,
}

/// The most answers that wait for a peer's credits, unless the window is so wide that there may be
/// more of a peer that keeps the rules. A peer that is owed more gives no credits, and is cut off.
const MOST_ANSWERS: usize = 1 << 14;

#[derive(Debug, Default)]
struct Queue {
    frames: Frames,
    departing: Waiting,
    is_cut_off: bool,
    /// Whether a task sends what is in the queue as credits come.
    is_pumped: bool,
    /// The tasks that wait until that task has sent everything.
    waiting: Vec<Waker>,
    /// The connections to a peer that has several.
    rails: Option<Rails>,
}

impl Lane {
    /// The way to a peer whose messages have a window of so many bytes here.
    pub fn new(
        first: am::Peer,
        name: Option<&str>,
        window: usize,
        due: &Arc<Due<Self>>,
    ) -> Arc<Self> {
        let most_answers = MOST_ANSWERS.max((window / OVERHEAD).saturating_mul(2));
        let (name, is_busy) = (peer_text(name), AtomicBool::new(false));
        let (queue, departures, due) = (Mutex::default(), Departures::default(), due.clone());
        Arc::new(Self { first, name, most_answers, is_busy, queue, departures, due })
    }

    /// Returns the first connection to the peer.
    pub fn link(&self) -> &am::Peer {
        &self.first
    }

    /// Uses a connection to the peer, the one at `place` of `count`, beside others. Without this,
    /// the first connection is the only one.
    pub fn add_rail(&self, place: usize, count: usize, link: &am::Peer) {
        let mut queue = self.lock();
        queue.rails.get_or_insert_with(|| Rails::new(count)).add(place, link);
    }

    /// Notes that a connection has ended. Returns whether there is another.
    pub fn lose_rail(&self, link: &am::Peer) -> bool {
        self.lock().rails.as_mut().is_some_and(|rails| rails.lose(link))
    }

    /// Takes in how many packets the peer has got by several connections. Returns whether that many
    /// were sent.
    pub fn acknowledged(&self, next: u64) -> bool {
        self.lock().rails.as_mut().is_some_and(|rails| rails.acknowledged(next))
    }

    /// Has the peer told how many of its packets have come by several connections.
    pub fn acknowledge(&self, next: u64) {
        self.lock().rails.iter_mut().for_each(|rails| rails.acknowledge(next));
    }

    /// Puts frames behind the others. They are sent by [`flush`](Self::flush).
    pub fn put(&self, frames: impl IntoIterator<Item = Frame>) {
        let mut queue = self.lock();
        frames.into_iter().for_each(|frame| queue.frames.push(frame));
    }

    /// Puts a message behind the others, whose sender waits by the ticket until the message has
    /// left. It is sent by [`flush`](Self::flush).
    pub fn put_message(&self, bits: u64, outbound: Outbound) -> Ticket {
        let mut queue = self.lock();
        queue.frames.push(Frame::Eager { bits, last: false, outbound });
        queue.departing.ticket()
    }

    /// Returns the outcome of a message of `len` bytes that waits by a ticket, if it is known.
    #[inline]
    pub fn has_left(&self, ticket: Ticket, len: usize) -> Option<Result<(), SendError>> {
        let outcome = self.departures.of(ticket)?;
        Some(outcome.map_err(|NeverLeaves| self.gone(len)))
    }

    /// Has a task woken when the message has left that waits by a ticket.
    pub fn wake_when_left(&self, ticket: Ticket, waker: &Waker) {
        let waker = waker.clone();
        let mut queue = self.lock();
        if self.departures.of(ticket).is_some() {
            drop(queue);
            return waker.wake();
        }
        let before = queue.departing.wake_later(ticket, waker);
        drop(queue);
        drop(before);
    }

    /// Returns whether something waits for credits.
    pub fn holds_any(&self) -> bool {
        self.lock().has_more()
    }

    /// Has a task woken when everything has left, if the task that sends as credits come sends it.
    pub fn wake_when_sent(&self, waker: &Waker) {
        let mut queue = self.lock();
        if queue.is_pumped && !queue.waiting.iter().any(|there| there.will_wake(waker)) {
            queue.waiting.push(waker.clone());
        }
    }

    /// Drops searches that were not sent, because the peer holds no messages any more.
    pub fn drop_searches(&self) {
        let is_search =
            |frame: &Frame| matches!(frame, Frame::Search { .. } | Frame::Browse { .. });
        self.lock().frames.waiting.retain(|frame| !is_search(frame));
    }

    /// Ends all connections to the peer, because it breaks the rules.
    pub fn cut_off(&self) {
        let mut queue = self.lock();
        if !std::mem::replace(&mut queue.is_cut_off, true) {
            let links = queue.rails.as_ref().map_or_else(|| vec![self.first.clone()], Rails::links);
            drop(queue);
            links.iter().for_each(am::Peer::cut_off);
        }
    }

    /// Sends a short message with these match bits at once, if nothing is before it and there is a
    /// credit. Called while nobody puts frames here.
    #[inline]
    pub fn try_send_short(&self, bits: u64, body: &[u8]) -> ShortSend {
        // Whoever has emptied the queue has sent all that was there.
        if self.is_busy.load(Ordering::Acquire) {
            return ShortSend::HeldUp;
        }
        let Some((words, count)) = short_words(bits, body) else { return ShortSend::HeldUp };
        match self.first.try_request_words(SHORT, &words[..count]) {
            Ok(true) => ShortSend::Sent,
            Ok(false) => ShortSend::NoCredit,
            Err(_) => ShortSend::HeldUp,
        }
    }

    /// Sends what there are credits for, and has a task send the rest as credits come. A handler of
    /// Active Messages may not send, and leaves everything to whichever task is next to wait for
    /// something of the endpoint. Returns whether a task was begun.
    pub fn flush(self: &Arc<Self>) -> bool {
        let mut queue = self.lock();
        let is_ignored = queue.rails.as_ref().is_some_and(Rails::is_ignored);
        if queue.frames.answers > self.most_answers || is_ignored {
            drop(queue);
            self.cut_off();
            return true;
        }
        if !queue.is_pumped && queue.has_more() && am::in_handler() {
            drop(queue);
            self.due.put(self);
            return false;
        }
        while !queue.is_pumped && queue.has_more() {
            if !self.try_send(&mut queue) {
                queue.is_pumped = true;
                let lane = self.clone();
                self.first.runtime().spawn(async move { lane.pump().await });
                return true;
            }
        }
        false
    }

    /// Sends what there are credits for, while a task waits here for the outcome of a send. The
    /// task that sends as credits come finds the less to do.
    pub fn send_more(&self) {
        let mut queue = self.lock();
        while queue.has_more() && self.try_send(&mut queue) {}
    }

    /// Sends more, as [`send_more`](Self::send_more) does, if credits may have come since this was
    /// called before with `seen`.
    #[inline]
    pub fn send_more_by_new_credits(&self, seen: &mut u32) {
        let changes = self.first.changes();
        if std::mem::replace(seen, changes) != changes {
            self.send_more();
        }
    }

    /// Sends as credits come, until nothing is left.
    async fn pump(&self) {
        loop {
            // A credit is awaited without the lock, and taken when it is there.
            let links = self.lock().rails.as_ref().map(Rails::links);
            let is_up = match links {
                Some(links) => Rails::wait_for_credit(links).await,
                None => self.first.credit().await.is_ok(),
            };
            let mut queue = self.lock();
            if !is_up {
                queue.is_pumped = false;
                drop(queue);
                return self.close();
            }
            while queue.has_more() && self.try_send(&mut queue) {}
            if !queue.has_more() {
                queue.is_pumped = false;
                let waiting = std::mem::take(&mut queue.waiting);
                drop(queue);
                return waiting.into_iter().for_each(Waker::wake);
            }
        }
    }

    /// Sends the first frame of the queue, or as much of it as one packet has room for. Returns
    /// `false` if there is no credit.
    fn try_send(&self, queue: &mut Queue) -> bool {
        if let Some(rails) = &mut queue.rails {
            let part_of = rails.part_of();
            let sent = rails.try_send(|| {
                let frame = queue.frames.pop()?;
                Some(frame.into_packet(part_of))
            });
            return sent.is_some_and(|sent| {
                self.left(queue, sent.rest, true);
                true
            });
        }
        // Fast path: a short message takes its credit as it is sent.
        if let Some((bits, body)) = queue.frames.first_short()
            && let Some((words, count)) = short_words(bits, body)
        {
            let is_sent = match self.first.try_request_words(SHORT, &words[..count]) {
                Ok(true) => true,
                Ok(false) | Err(am::SendError::InHandler) => return false,
                Err(_) => false,
            };
            let sent = queue.frames.pop().and_then(Frame::into_rest);
            self.left(queue, sent.map(Rest::sent), is_sent);
            return true;
        }
        let Ok(Some(credit)) = self.first.try_credit() else { return false };
        if let Some(frame) = queue.frames.pop() {
            let (packet, rest) = frame.into_packet(|len| self.first.part_of(len, 3));
            let is_sent = send(credit, &packet);
            self.left(queue, rest, is_sent);
        }
        true
    }

    /// Puts the rest of a message of which a part was sent before all others. If there is none,
    /// tells who waits that the message has left.
    fn left(&self, queue: &mut Queue, rest: Option<Rest>, is_sent: bool) {
        let Some(rest) = rest else { return };
        if is_sent && !rest.payload.is_empty() {
            return queue.frames.waiting.push_front(Frame::More(rest));
        }
        match rest.waits {
            Waits::Nobody => {}
            Waits::Slot(slot) => {
                slot.fill(if is_sent { Ok(()) } else { Err(self.gone(rest.len)) });
            }
            Waits::Ticket if is_sent => self.departures.leaves(&mut queue.departing),
            Waits::Ticket => self.departures.end(&mut queue.departing),
        }
    }

    /// Drops everything, because the peer has gone.
    pub fn close(&self) {
        let mut queue = self.lock();
        let Frames { waiting: lost, .. } = std::mem::take(&mut queue.frames);
        self.departures.end(&mut queue.departing);
        drop(queue);
        for Rest { waits, len, .. } in lost.into_iter().filter_map(Frame::into_rest) {
            if let Waits::Slot(slot) = waits {
                slot.fill(Err(self.gone(len)));
            }
        }
    }

    /// Returns the error of a message to a peer that has gone.
    #[cold]
    pub fn gone(&self, len: usize) -> SendError {
        let why = why_gone(self.first.ending());
        SendError::Gone { peer: self.name.clone(), what: Unsent::Bytes(len), why }
    }

    fn lock(&self) -> Locked<'_> {
        Locked { queue: Some(locked(&self.queue)), is_busy: &self.is_busy }
    }
}

/// The lock of a lane's queue. When it is released, it tells whether the queue is empty, and wakes
/// the tasks whose messages have left.
struct Locked<'l> {
    /// The lock, until this is dropped.
    queue: Option<MutexGuard<'l, Queue>>,
    is_busy: &'l AtomicBool,
}

impl Deref for Locked<'_> {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        self.queue.as_ref().expect("it is locked until it is dropped")
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Queue {
        self.queue.as_mut().expect("it is locked until it is dropped")
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let Some(mut queue) = self.queue.take() else { return };
        let is_busy = queue.rails.is_some() || !queue.frames.waiting.is_empty();
        self.is_busy.store(is_busy, Ordering::Release);
        let due = queue.departing.take_due();
        drop(queue);
        due.into_iter().for_each(Waker::wake);
    }
}

/// Frames that wait, in the order in which they are sent.
#[derive(Debug, Default)]
struct Frames {
    waiting: VecDeque<Frame>,
    /// How many of the frames are answers.
    answers: usize,
}

impl Frames {
    /// Puts a frame behind the others. A search that is given up before it was sent goes with the
    /// frame that says so: of a peer that gives no credits, no more searches wait than receives.
    fn push(&mut self, frame: Frame) {
        if let Frame::GivenUp(given_up) = frame {
            let is_its = |frame: &Frame| match frame {
                Frame::Search { search, .. } | Frame::Browse { search, .. } => *search == given_up,
                _ => false,
            };
            if let Some(at) = self.waiting.iter().position(is_its) {
                self.waiting.remove(at);
                return;
            }
        }
        // What receives have taken of a window one after the other is given back at once.
        if let (Some(Frame::Freed(before)), &Frame::Freed(cost)) = (self.waiting.back_mut(), &frame)
        {
            *before += cost;
            return;
        }
        self.answers += usize::from(frame.is_answer());
        self.waiting.push_back(frame);
    }

    /// Returns the match bits and the body of the first frame, if that is a message in one piece of
    /// which nothing else is said.
    fn first_short(&self) -> Option<(u64, &[u8])> {
        match self.waiting.front()? {
            Frame::Eager { bits, last: false, outbound } if outbound.is_plain() => {
                Some((*bits, &outbound.payload))
            }
            _ => None,
        }
    }

    fn pop(&mut self) -> Option<Frame> {
        let frame = self.waiting.pop_front()?;
        self.answers -= usize::from(frame.is_answer());
        Some(frame)
    }
}

impl Queue {
    fn has_more(&self) -> bool {
        !self.frames.waiting.is_empty() || self.rails.as_ref().is_some_and(Rails::has_more)
    }
}

/// Sends a packet by a credit. A packet that can't be sent is to a peer that has gone, of which the
/// endpoint hears by an event.
fn send(credit: Credit<'_>, packet: &Packet) -> bool {
    let Packet { kind, words, payload } = packet;
    let sent = match payload.is_empty() {
        true => credit.request(kind.id(), *words),
        false => credit.request_with(kind.id(), *words, payload),
    };
    if let Err(why) = &sent {
        tracing::debug!(%why, "a packet was not sent");
    }
    sent.is_ok()
}
