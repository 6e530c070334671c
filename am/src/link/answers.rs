//! Answers to the peer's requests, which wait for nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use doorbell_verbs::Registered;
use doorbell_verbs::floor::HeldNic;
use tokio::task::AbortHandle;

use super::{Link, Out, To, kept};
use crate::arrival::Arrival;
use crate::buffers::locked;
use crate::carried::Carried;
use crate::content::Content;
use crate::error::Undeliverable;
use crate::event::Event;
use crate::handling::{handles, handles_several};
use crate::kept::{KeptId, Later, Owes, Release};
use crate::links::{left, room};
use crate::pack;
use crate::peer::Peer;
use crate::sizes::Size;
use crate::wire::{Header, Kind};

impl Link {
    /// A request has come. Whether its peer had the credit.
    #[inline]
    pub fn comes(&self) -> bool {
        let came = self.came.load(Ordering::Relaxed).wrapping_add(1);
        self.came.store(came, Ordering::Relaxed);
        let open = came.wrapping_sub(self.answered.load(Ordering::Relaxed));
        let grants = self.grants();
        // There are none when it is over; what had come before is handled.
        open as usize <= grants || grants == 0
    }

    /// The peer does not keep to the rules, and would use up what others need.
    #[cold]
    pub fn overrun(self: &Arc<Self>) {
        tracing::warn!(qpn = %self.qpn(), "a peer sends more requests than it may: its link is ended");
        self.endpoint.tell(Event::Overrun(Peer::of(self.clone())));
        self.endpoint.ends(self, left());
        self.cut_off();
    }

    /// Takes what the peer carries here, if it shows the tag.
    pub fn carried(&self, arrival: &mut Arrival) -> Carried {
        let core = &self.endpoint;
        let admitted = self.is_admitted();
        let segment = core.segment().map(Registered::region);
        locked(self.carrying.get_or_init(Box::default)).take(arrival, admitted, segment)
    }

    /// Answers a request; if the peer does not take so much, with that.
    #[inline]
    pub fn reply(self: &Arc<Self>, to: To, content: Content<'_>, nic: HeldNic<'_>) {
        let words = content.words.len();
        let header = Header { kind: Kind::Reply, words, handler: to.handler, call: to.call };
        if self.takes(content).is_err() {
            return self.give_back(header, Undeliverable::LongReply, &[]);
        }
        self.answer(&mut self.out(), header, content, nic);
    }

    /// Sends a request back, of which this is the data.
    #[cold]
    pub fn give_back(self: &Arc<Self>, request: Header, why: Undeliverable, data: &[u8]) {
        let carried = if data.is_empty() { 0 } else { request.words };
        let header = Header { kind: Kind::Returned, words: 1 + carried, ..request };
        let content = Content { words: &[why.code()], payload: data };
        self.answer(&mut self.out(), header, content, HeldNic::none());
    }

    /// A request is done, and nothing was replied.
    #[inline]
    pub fn done(self: &Arc<Self>, call: u16) {
        let mut out = self.out();
        if call == 0 {
            out.owed += 1;
            return self.tells(&mut out);
        }
        let header = Header { kind: Kind::Unanswered, words: 0, handler: 0, call };
        self.answer(&mut out, header, Content::encoded(&[]), HeldNic::none());
    }

    /// Tells of requests that are done, if they are a quarter of all that the peer may have under
    /// way.
    #[inline]
    pub(super) fn tells(self: &Arc<Self>, out: &mut Out) {
        let limit = self.peer().map_or(1, |peer| peer.limit.into());
        if usize::from(out.owed) >= (self.grants().min(limit) / 4).max(1) {
            let count = std::mem::take(&mut out.owed);
            let header = Header { kind: Kind::Done, words: 0, handler: 0, call: count };
            self.answer(out, header, Content::encoded(&[]), HeldNic::none());
        }
    }

    /// Answers a request. A peer that uses most of its credits, and may have more, gets one more
    /// with each answer, as long as there are receives: so idle peers hold few, and busy ones many.
    #[inline]
    fn answer(
        self: &Arc<Self>,
        out: &mut Out,
        header: Header,
        content: Content<'_>,
        nic: HeldNic<'_>,
    ) {
        if out.outbox.is_none() {
            return;
        }
        let answers = if header.kind == Kind::Done { header.call.into() } else { 1 };
        let before = self.answered.load(Ordering::Relaxed);
        self.answered.store(before.wrapping_add(answers), Ordering::Relaxed);
        // More credits share a send with an answer, or there would be no receive for them.
        if !self.wants_credits(before) || pack::size(header, content) + pack::HEAD > self.shared() {
            return self.send(out, header, content, self.answers_at_once().then_some(nic));
        }
        self.answer_and_grant(out, header, content, answers as usize);
    }

    /// Whether an answer leaves at once. The answers to messages that are handled together leave
    /// together. So do the answers of tasks while more requests of the peer are open: other tasks
    /// may answer those before the runtime comes back to the endpoint.
    #[inline]
    fn answers_at_once(&self) -> bool {
        if handles() {
            return !handles_several();
        }
        self.came.load(Ordering::Relaxed) == self.answered.load(Ordering::Relaxed)
    }

    /// Whether the peer may have more credits, and uses those that it has: more than half of them
    /// are under way when so many of its requests were answered, or several requests came together.
    #[inline]
    fn wants_credits(&self, answered: u32) -> bool {
        let grants = self.grants();
        let open = self.came.load(Ordering::Relaxed).wrapping_sub(answered);
        grants < self.credits() && (2 * open as usize > grants || handles_several())
    }

    /// Asks about calls that are kept. A peer whose handlers all wait for something would get no
    /// credit with an answer: it gets as many as it has with the question, so that what they wait
    /// for can come.
    pub(super) fn ask_and_grant(
        self: &Arc<Self>,
        out: &mut Out,
        header: Header,
        content: Content<'_>,
    ) {
        if out.outbox.is_some() && self.wants_credits(self.answered.load(Ordering::Relaxed)) {
            return self.answer_and_grant(out, header, content, self.grants());
        }
        self.send(out, header, content, (!handles_several()).then(HeldNic::none));
    }

    /// In one send, for which the peer has the receive that it has for the answer.
    #[cold]
    fn answer_and_grant(
        self: &Arc<Self>,
        out: &mut Out,
        header: Header,
        content: Content<'_>,
        answers: usize,
    ) {
        let room = self.credits().saturating_sub(self.grants());
        let more = self.buffers.promise_more(room.min(answers));
        if more == 0 {
            self.endpoint.wants_receives(&self.buffers);
            return self.send(out, header, content, (!handles_several()).then(HeldNic::none));
        }
        let Some(outbox) = self.outbox(out) else { return };
        self.grants.fetch_add(more as u16, Ordering::Relaxed);
        // What is held may be so much that the two would go apart.
        outbox.flush();
        let grant = Header { kind: Kind::Grant, words: 0, handler: 0, call: more as u16 };
        let all = (&*self.buffers, usize::MAX);
        outbox.hold(header, content, all);
        outbox.hold(grant, Content::encoded(&[]), all);
        if !self.goes_together() {
            return outbox.flush();
        }
        self.endpoint.shared.holds(self.clone());
    }

    /// How many bytes of messages may share a send.
    fn shared(&self) -> usize {
        match self.size {
            Size::Any => pack::LONGEST,
            _ => room(self.longest()),
        }
    }

    /// A handler keeps a request, for as long as its sender waits for the answer.
    pub fn keep(self: &Arc<Self>, header: Header, owes: Owes) -> KeptId {
        let patience = self.peer().map_or(0, |peer| peer.patience);
        let out = &mut *self.out();
        let kept = out.kept.get_or_insert_default();
        // Where it is over, nobody is answered any more.
        if out.ending.is_none() {
            let runtime = &self.endpoint.shared.runtime;
            let attend = |sooner| kept::attend(self.clone(), sooner);
            kept.time(|sooner| runtime.spawn(attend(sooner)).abort_handle());
        }
        kept.keep(header, Duration::from_millis(patience.into()), owes)
    }

    /// Whether somebody still waits for the answer to a kept request.
    pub fn awaits(&self, id: KeptId) -> bool {
        let out = &mut *self.out();
        out.stands() && out.kept.as_mut().is_some_and(|kept| kept.is_awaited(id))
    }

    /// A kept request is answered. Whether that may be now.
    pub fn released(&self, id: KeptId, answer: impl FnOnce() -> Later) -> Release {
        let mut out = self.out();
        out.kept.as_mut().map_or(Release::Never, |kept| kept.release(id, answer))
    }

    /// A kept request gets no answer from its holder, or from the task. Whether its sender is to be
    /// told now, since nobody else answers it.
    pub fn nothing_from(&self, id: KeptId, who: Owes, answer: impl FnOnce() -> Later) -> Release {
        let mut out = self.out();
        out.kept.as_mut().map_or(Release::Never, |kept| kept.ends(id, who, answer))
    }

    /// Notes the task of an asynchronous handler that was started for a kept request.
    pub fn runs(&self, id: KeptId, task: AbortHandle) {
        self.out().kept.iter_mut().for_each(|kept| kept.runs(id, task.clone()));
    }
}
