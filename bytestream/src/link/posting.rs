//! The state of a stream's sending direction, and what it posts to the send queue.

use std::io;
use std::task::Waker;

use doorbell_verbs::work::Send;
use doorbell_verbs::{Data, Inline, SendQueue, WorkRequest};

use super::common::Common;
use super::message::{Gathered, message};
use super::slices::Slices;
use crate::error::{Over, shut_down};
use crate::wire::{SHORT_AT_ONCE, Signal};

/// The number that marks sends of whole segments among all completions.
pub(super) const DATA: u64 = 0;
/// The number that marks sends without bytes that say what was read.
const SIGNAL: u64 = 1;
/// The number that marks the send of the end of the stream.
pub(super) const END: u64 = 2;
/// The number that marks sends of messages with bytes that are shorter than a segment.
pub(super) const SHORT: u64 = 3;

/// How many places of the send queue are kept free of bytes: for word of what was read, and for the
/// end of the stream.
pub(crate) const RESERVE: usize = 2;

/// The longest message that tells what was read, in an immediate. An immediate makes the last
/// packet of a message longer, and a frame holds several packets only if they have one length.
const MOST_WITH_WORD: usize = 1024;

/// The state of the sending direction of a link.
#[derive(Default)]
pub(super) struct State {
    /// The send queue, from the opening of the link until its queue pair is dropped.
    pub queue: Option<SendQueue>,
    /// How many bytes the peer has room for, beside those that it was sent and those gathered.
    pub may_send: usize,
    /// How many bytes the peer has room for when it has read everything.
    pub window: usize,
    /// The most bytes of a message: the shorter of both ends' segments.
    pub segment: usize,
    /// For how many bytes the queue must have places before a long write goes on that has waited
    /// for places.
    pub worth: usize,
    /// What was written and waits to be sent with the next message.
    pub gathered: Gathered,
    /// How many sends are under way.
    pub under_way: u32,
    /// How many of these carry bytes, and fewer than a segment.
    pub short: usize,
    /// Whether a send of bytes has failed.
    pub failed: bool,
    /// How many bytes were posted without ringing the doorbell.
    pub unrung: usize,
    /// Whether somebody has been asked to ring the doorbell later.
    pub held: bool,
    pub finish: Finish,
    pub over: Option<Over>,
    pub writer: Option<Waker>,
    /// The waker of the task that closes the endpoint.
    pub closer: Option<Waker>,
    /// For how many bytes the writer waits to have room; 0 if it does not wait.
    pub wants: usize,
}

/// How far the sending of the stream's end has come.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Finish {
    /// The stream has not ended, and more bytes may be written.
    #[default]
    Open,
    /// The end is to be sent as soon as there is room.
    Wanted,
    /// The end was posted, and is not acknowledged yet.
    Sent,
    /// The peer's NIC has acknowledged the end, and with it all bytes before.
    Arrived,
}

impl State {
    /// Returns how many messages with bytes the queue has places for.
    pub fn places(&self) -> usize {
        self.queue.as_ref().map_or(0, SendQueue::room).saturating_sub(RESERVE)
    }

    /// Returns how many bytes can be taken now, to be sent or gathered.
    pub fn room(&self) -> usize {
        let free = self.segment - self.gathered.len();
        self.may_send.min(self.places().saturating_mul(self.segment).saturating_add(free))
    }

    /// Takes the waker of the writer if the writer has something to do.
    pub fn woken(&mut self) -> Option<Waker> {
        if self.is_settled() || (self.wants > 0 && self.room() >= self.wants) {
            return self.writer.take();
        }
        None
    }

    /// Returns whether nothing more is sent: the connection is over, or the peer has the end of the
    /// stream.
    pub fn is_settled(&self) -> bool {
        self.over.is_some() || self.finish == Finish::Arrived
    }

    /// Returns the error of a write, if nothing can be written any more.
    pub fn refusal(&self, peer: &str) -> Option<io::Error> {
        match &self.over {
            _ if self.finish != Finish::Open => Some(shut_down(peer)),
            Some(over) => Some(over.error(peer, true)),
            None => None,
        }
    }
}

/// Posting to the send queue.
impl State {
    /// Rings the doorbell, if bytes were posted since it was rung last.
    pub fn ring(&mut self) {
        if std::mem::take(&mut self.unrung) > 0
            && let Some(queue) = &mut self.queue
        {
            queue.ring();
        }
    }

    /// Takes as many bytes as there is room for. Returns how many bytes were posted, among them
    /// those that were gathered before.
    pub fn take(&mut self, common: &Common, slices: &mut Slices<'_, '_>) -> usize {
        let (buffers, before) = (&common.shared.buffers, self.unrung);
        if self.gathered.len() == self.segment && self.places() > 0 {
            self.put_gathered(common);
        }
        loop {
            let gathered = self.gathered.len();
            let len = slices.len().min(self.may_send).min(self.segment - gathered);
            if len == 0 {
                return self.unrung - before;
            }
            let goes = self.goes(gathered + len);
            if goes && gathered == 0 {
                if !self.put(common, message(buffers, slices, len), len) {
                    return self.unrung - before;
                }
                slices.advance(len);
            } else {
                self.gathered.append(buffers, slices, len);
                if goes {
                    self.put_gathered(common);
                }
            }
            self.may_send -= len;
        }
    }

    /// Returns whether a message of so many bytes is to be posted now.
    fn goes(&self, len: usize) -> bool {
        self.places() > 0 && (len == self.segment || self.short < SHORT_AT_ONCE)
    }

    /// Posts what was gathered as a message, if there is any.
    fn put_gathered(&mut self, common: &Common) {
        let len = self.gathered.len();
        if let Some(message) = self.gathered.take() {
            self.failed |= !self.put(common, message, len);
        }
    }

    /// Posts a message of `len` bytes without ringing the doorbell. Returns whether the queue took
    /// the message, which it refuses only when the connection is over.
    fn put(&mut self, common: &Common, message: Data, len: usize) -> bool {
        let Some(queue) = &mut self.queue else { return false };
        let short = len < self.segment;
        let mut send = Send::new(message).id(if short { SHORT } else { DATA });
        if len <= MOST_WITH_WORD {
            let read = common.window.give_back(1);
            if read > 0 {
                send = send.imm(Signal { read, end: false }.to_imm());
            }
        }
        if short && self.short + 1 >= SHORT_AT_ONCE {
            // What is written next waits for the acknowledgement.
            send = send.awaited();
        }
        if queue.put(send).is_err() {
            return false;
        }
        self.short += usize::from(short);
        self.under_way += 1;
        self.unrung += len;
        true
    }

    /// Returns whether all bytes that were written have been sent and none of the sends failed.
    pub fn has_sent_all(&self) -> bool {
        !self.failed && self.gathered.len() == 0
    }

    /// Posts what was gathered, if it may go; word of what was read, if that is much; and the end
    /// of the stream, if wanted.
    pub fn pump(&mut self, common: &Common) {
        if self.over.is_some() {
            return;
        }
        let end = self.finish == Finish::Wanted;
        let gathered = self.gathered.len();
        if gathered > 0 && (self.goes(gathered) || end && self.has_place()) {
            self.put_gathered(common);
            self.ring();
        }
        let end = end && self.gathered.len() == 0;
        let least = if end { 1 } else { common.window.worth_a_message() };
        self.signal(common, least, end);
    }

    /// Posts word of what was read, however little that is. Returns false if the queue has no place
    /// now.
    pub fn tell(&mut self, common: &Common) -> bool {
        if self.over.is_some() || self.queue.is_none() {
            return true;
        }
        let has_place = self.has_place();
        self.signal(common, 1, false);
        has_place
    }

    /// Returns whether the queue has a place, for whatever it is.
    fn has_place(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.room() > 0)
    }

    /// Posts word of what was read, if that is at least `least` bytes, and the end of the stream,
    /// if that is due.
    fn signal(&mut self, common: &Common, least: u32, end: bool) {
        // The completion of a send under way makes room, and then `pump` is called again.
        let Some(queue) = self.queue.as_mut().filter(|queue| queue.room() > 0) else { return };
        let read = common.window.give_back(least);
        if read == 0 && !end {
            return;
        }
        let imm = Signal { read, end }.to_imm();
        let nothing = Inline::new(&[]).expect("nothing has room in a request");
        let send = Send::new(nothing).imm(imm).id(if end { END } else { SIGNAL });
        // The program usually waits for the end to be acknowledged.
        let send: WorkRequest = if end { send.awaited().into() } else { send.into() };
        if queue.post(send).is_ok() {
            self.under_way += 1;
            if end {
                self.finish = Finish::Sent;
            }
        }
    }
}
