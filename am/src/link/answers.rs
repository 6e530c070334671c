//! Answers to the peer's requests. An answer needs no credit, and never waits.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use doorbell_verbs::Registered;
use doorbell_verbs::floor::{HeldNic, locked};

use super::{Link, SendSide, To};
use crate::error::Undeliverable;
use crate::receives::{Arrival, Reassembled};
use crate::shared::{handles, handles_several};
use crate::wire::{Content, Header, Kind, Size, buffer_len, pack};

impl Link {
    /// Counts a request that has come, or a late answer. Returns whether the peer had a credit for it.
    #[inline]
    pub fn count_request(&self) -> bool {
        let received = self.received.load(Ordering::Relaxed).wrapping_add(1);
        self.received.store(received, Ordering::Relaxed);
        let unanswered = received.wrapping_sub(self.answered.load(Ordering::Relaxed));
        let grants = self.grants();
        // A link that is over grants none, and what had come before is handled all the same.
        unanswered as usize <= grants || grants == 0
    }

    /// Ends the link, since its peer sends more requests than it has credits for, and would use up
    /// receives that others were promised; or since it breaks the rules of a layer above.
    #[cold]
    pub fn end_overrun(self: &Arc<Self>) {
        tracing::warn!(qpn = %self.qpn(), "a peer breaks the rules: its link is ended");
        if let Some(owner) = self.endpoint.owner.upgrade() {
            owner.end_overrun(self);
        }
        self.cut_off();
    }

    /// Copies a fragment of a payload that the peer places by messages into the segment, if the
    /// endpoint admits the peer.
    pub fn reassemble(&self, arrival: &mut Arrival) -> Reassembled {
        let segment = self.endpoint.segment.as_ref().map(Registered::region);
        let admitted = self.is_admitted();
        locked(&self.rare.get_or_init(Box::default).reassembly).take(arrival, admitted, segment)
    }

    /// Answers a request with a reply. If the reply is longer than the peer takes, the peer is told
    /// that instead.
    #[inline]
    pub fn reply(self: &Arc<Self>, to: To, content: Content<'_>, nic: HeldNic<'_>) {
        let header = reply_header(to, content);
        if self.check_takes(content).is_err() {
            return self.give_back(header, Undeliverable::LongReply, &[]);
        }
        self.answer(&mut self.send_side(), header, content, nic);
    }

    /// Answers a question of the peer's endpoint. The peer gets no further credit with that: it is
    /// not the peer's program that uses the credit.
    pub fn reply_to_question(self: &Arc<Self>, to: To, content: Content<'_>) {
        let header = reply_header(to, content);
        if self.check_takes(content).is_err() {
            return self.give_back(header, Undeliverable::LongReply, &[]);
        }
        let out = &mut *self.send_side();
        if out.outbox.is_some() {
            self.count_answers(1);
            self.send(out, header, content, self.answers_at_once().then(HeldNic::none));
        }
    }

    /// Sends a request back to the peer, with the reason, and with `data` of the request.
    #[cold]
    pub fn give_back(self: &Arc<Self>, request: Header, why: Undeliverable, data: &[u8]) {
        let carried = if data.is_empty() { 0 } else { request.words };
        let header = Header { kind: Kind::Returned, words: 1 + carried, ..request };
        let content = Content { words: &[why.code()], payload: data };
        self.answer(&mut self.send_side(), header, content, HeldNic::none());
    }

    /// Answers a request to which nothing was replied. Of requests that are no calls, the peer is
    /// told how many are done, from time to time.
    #[inline]
    pub fn done(self: &Arc<Self>, call: u16) {
        if call == 0 {
            // Fast path: most requests are counted alone, without the lock.
            let unreported = self.unreported.fetch_add(1, Ordering::Relaxed) + 1;
            if unreported >= self.done_to_report() {
                self.report_done(&mut self.send_side());
            }
            return;
        }
        let mut out = self.send_side();
        let header = Header { kind: Kind::Unanswered, words: 0, handler: 0, call };
        self.answer(&mut out, header, Content::encoded(&[]), HeldNic::none());
    }

    /// Returns how many requests that are done are worth a report: a quarter of all that the peer
    /// may have under way.
    #[inline]
    fn done_to_report(&self) -> u16 {
        let limit = self.peer().map_or(1, |peer| peer.limit.into());
        (self.grants().min(limit) / 4).max(1) as u16
    }

    /// Reports the requests that are done, if they are [enough](Self::done_to_report).
    pub(super) fn report_done(self: &Arc<Self>, out: &mut SendSide) {
        // Another thread may have reported them meanwhile.
        if self.unreported.load(Ordering::Relaxed) >= self.done_to_report() {
            let count = self.unreported.swap(0, Ordering::Relaxed);
            let header = Header { kind: Kind::Done, words: 0, handler: 0, call: count };
            self.answer(out, header, Content::encoded(&[]), HeldNic::none());
        }
    }

    /// Sends an answer, and perhaps a credit with it. A peer that uses most of its credits, and may
    /// have more, gets one more with each answer, as long as there are receives. So idle peers hold
    /// few, and busy peers many.
    #[inline]
    pub(super) fn answer(
        self: &Arc<Self>,
        out: &mut SendSide,
        header: Header,
        content: Content<'_>,
        nic: HeldNic<'_>,
    ) {
        if out.outbox.is_none() {
            return;
        }
        let answers = if header.kind == Kind::Done { header.call.into() } else { 1 };
        let before = self.count_answers(answers);
        // A grant shares a send with an answer, or the peer would have no receive for the grant.
        let room = self.longest_shared();
        if !self.wants_credits(before) || pack::size(header, content) + pack::HEAD > room {
            return self.send(out, header, content, self.answers_at_once().then_some(nic));
        }
        self.answer_and_grant(out, header, content, answers as usize);
    }

    /// Counts requests that are answered. Returns how many there were before. The caller has the lock
    /// of the sending side, under which alone the count changes.
    #[inline]
    fn count_answers(&self, answers: u32) -> u32 {
        let before = self.answered.load(Ordering::Relaxed);
        self.answered.store(before.wrapping_add(answers), Ordering::Relaxed);
        before
    }

    /// Returns whether an answer leaves at once. The answers to messages that are handled together
    /// leave together. So do the answers of tasks while more requests of the peer are unanswered,
    /// since other tasks may answer those before the runtime comes back to the endpoint.
    #[inline]
    fn answers_at_once(&self) -> bool {
        if handles() {
            return !handles_several();
        }
        self.received.load(Ordering::Relaxed) == self.answered.load(Ordering::Relaxed)
    }

    /// Returns whether the peer may have more credits, and uses those that it has: more than half
    /// of them were under way when `answered` requests were answered, or several requests came
    /// together.
    #[inline]
    fn wants_credits(&self, answered: u32) -> bool {
        let grants = self.grants();
        let unanswered = self.received.load(Ordering::Relaxed).wrapping_sub(answered);
        grants < self.most_credits() && (2 * unanswered as usize > grants || handles_several())
    }

    /// Sends a question about retained calls. A peer whose calls are all retained gets no credit
    /// with an answer. So it gets as many as it has with the question, and can send what the
    /// handlers of those calls wait for.
    pub(super) fn ask_and_grant(
        self: &Arc<Self>,
        out: &mut SendSide,
        header: Header,
        content: Content<'_>,
    ) {
        if out.outbox.is_some() && self.wants_credits(self.answered.load(Ordering::Relaxed)) {
            return self.answer_and_grant(out, header, content, self.grants());
        }
        self.send(out, header, content, (!handles_several()).then(HeldNic::none));
    }

    /// Sends a message and a grant of up to `answers` credits in one send, which takes the receive
    /// that the peer has for the message.
    #[cold]
    fn answer_and_grant(
        self: &Arc<Self>,
        out: &mut SendSide,
        header: Header,
        content: Content<'_>,
        answers: usize,
    ) {
        let room = self.most_credits().saturating_sub(self.grants());
        let more = self.buffers.promise_more(room.min(answers));
        if more == 0 {
            if let Some(owner) = self.endpoint.owner.upgrade() {
                owner.recall_receives(&self.buffers);
            }
            return self.send(out, header, content, (!handles_several()).then(HeldNic::none));
        }
        let Some(outbox) = self.outbox(out) else { return };
        self.grants.fetch_add(more as u16, Ordering::Relaxed);
        // Behind much that is held, the two might go in different sends.
        outbox.flush();
        let grant = Header { kind: Kind::Grant, words: 0, handler: 0, call: more as u16 };
        let all = (&*self.buffers, usize::MAX);
        outbox.hold(header, content, all);
        outbox.hold(grant, Content::encoded(&[]), all);
        if !self.packs() {
            return outbox.flush();
        }
        self.hold();
    }

    /// Returns how many bytes of messages may share a send.
    fn longest_shared(&self) -> usize {
        match self.size {
            Size::Any => pack::LONGEST,
            _ => buffer_len(self.longest()),
        }
    }
}

fn reply_header(to: To, content: Content<'_>) -> Header {
    let words = content.words.len();
    Header { kind: Kind::Reply, words, handler: to.handler, call: to.call }
}
