//! Requests that handlers have retained: answered later, overdue, or given up by their caller.
//!
//! A caller that gives up a call tells its peer as soon as it has a credit for that. It may have none
//! for long, if handlers keep all its requests. So the side that handles the call asks, too, once its
//! handler has taken long. The question takes
//! the receive that the caller has for the call's answer. What the caller says takes the receive of
//! the request, which is free, since the request was handled. So for each call no more than one
//! message is under way in either direction, as if nothing was ever asked.

use std::sync::Arc;
use std::time::Duration;

use doorbell_verbs::floor::HeldNic;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::{Link, SendSide, To};
use crate::credits::{DeferredAnswer, Owes, Release, RetainedId};
use crate::error::Undeliverable;
use crate::shared::{Reserved, handles_several};
use crate::wire::{Content, Header, Kind, awaits, packed, unpacked};

/// Attends to the retained requests of a link until there are none: at the times that they ask for,
/// and when a request comes that asks for an earlier time.
async fn attend(link: Arc<Link>, sooner: Arc<Notify>) {
    loop {
        let next = {
            let out = &mut *link.send_side();
            let retained = out.retained.as_mut().filter(|_| out.ending.is_none());
            retained.and_then(|retained| retained.next_look(Instant::now()))
        };
        let Some(next) = next else { return };
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            () = sooner.notified() => continue,
        }
        link.give_overdue_back();
        link.ask_what_is_awaited();
    }
}

impl Link {
    /// Retains a request for as long as its sender waits for the answer.
    pub fn retain(self: &Arc<Self>, header: Header, owes: Owes) -> RetainedId {
        let patience = self.peer().map_or(0, |peer| peer.patience);
        let out = &mut *self.send_side();
        let retained = out.retained.get_or_insert_default();
        // Over a link that has ended nobody is answered any more.
        if out.ending.is_none() {
            let runtime = &self.endpoint.runtime;
            let attend = |sooner| attend(self.clone(), sooner);
            retained.time(|sooner| runtime.spawn(attend(sooner)).abort_handle());
        }
        retained.retain(header, Duration::from_millis(patience.into()), owes)
    }

    /// Returns whether the sender of a retained request still waits for its answer.
    pub fn awaits(&self, id: RetainedId) -> bool {
        let out = &mut *self.send_side();
        out.stands() && out.retained.as_mut().is_some_and(|retained| retained.is_awaited(id))
    }

    /// Releases a retained request that is answered. Returns whether the answer may be sent now.
    /// `answer` makes a copy of it if it has to wait.
    pub fn release(
        self: &Arc<Self>,
        id: RetainedId,
        answer: impl FnOnce() -> DeferredAnswer,
    ) -> Release {
        let mut out = self.send_side();
        let retained = out.retained.as_mut();
        let release = retained.map_or(Release::Never, |retained| retained.release(id, answer));
        self.released(&mut out, release)
    }

    /// Sends the answer of a request that has given its credit back, if there is a credit for it.
    #[inline]
    fn released(self: &Arc<Self>, out: &mut SendSide, release: Release) -> Release {
        if release == Release::Late {
            self.answers_late(out);
        }
        release
    }

    /// Notes that the holder of a retained request, or its task, ends without an answer. Returns
    /// whether the sender is to be told now, since nobody else will answer. If the task ends and the
    /// holder owes an answer still, the request keeps the task's room.
    pub fn end_unanswered(
        self: &Arc<Self>,
        id: RetainedId,
        (who, room): (Owes, Option<Reserved>),
        answer: impl FnOnce() -> DeferredAnswer,
    ) -> Release {
        let mut out = self.send_side();
        let Some(retained) = out.retained.as_mut() else { return Release::Never };
        let release = retained.end_unanswered(id, who, answer);
        if release == Release::Never && room.is_some() {
            retained.take_room(id, room);
        }
        self.released(&mut out, release)
    }

    /// Returns whether fewer requests of the peer than so many are retained, or have answers that wait
    /// for a credit.
    #[cold]
    pub fn retains_few(&self, few: usize) -> bool {
        let out = self.send_side();
        out.retained
            .as_ref()
            .is_none_or(|retained| retained.len() + retained.detached.answers() < few)
    }

    /// Notes the task of the asynchronous handler that was started for a retained request.
    pub fn set_task(&self, id: RetainedId, task: AbortHandle) {
        let mut out = self.send_side();
        out.retained.iter_mut().for_each(|retained| retained.set_task(id, task.clone()));
    }

    /// Sends an answer that was held back.
    pub fn send_deferred(self: &Arc<Self>, answer: DeferredAnswer) {
        match answer {
            DeferredAnswer::Reply { handler, call, words, payload } => {
                let content = Content { words: &words, payload: &payload };
                self.reply(To { handler, call }, content, HeldNic::none());
            }
            DeferredAnswer::Returned(header, why) => self.give_back(header, why, &[]),
            DeferredAnswer::Nothing { call } => self.done(call),
        }
    }

    /// Sends requests back whose time is over.
    fn give_overdue_back(self: &Arc<Self>) {
        let overdue = {
            let out = &mut *self.send_side();
            let Some(retained) = out.retained.as_mut() else { return };
            let answer = |header| DeferredAnswer::Returned(header, Undeliverable::NoReply);
            let overdue = retained.take_overdue(Instant::now(), answer);
            self.answers_late(out);
            overdue
        };
        for (header, release, task) in overdue {
            if release == Release::Now {
                self.give_back(header, Undeliverable::NoReply, &[]);
            }
            task.iter().for_each(AbortHandle::abort);
        }
    }

    /// Asks the peer whether it still awaits the calls that handlers have retained for long.
    fn ask_what_is_awaited(self: &Arc<Self>) {
        let out = &mut *self.send_side();
        let asked = out.retained.as_mut().and_then(|retained| retained.ask(Instant::now()));
        if let Some((call, calls)) = asked {
            let words: Vec<u64> = packed(&calls).collect();
            let header =
                Header { kind: Kind::Unanswered, words: words.len(), handler: awaits::ASKED, call };
            let content = Content { words: &words, payload: &[] };
            self.ask_and_grant(out, header, content);
        }
    }

    /// Answers the peer's question which calls are still awaited. Returns `false` for a question by
    /// a call that needs no answer.
    pub fn tell_awaited(self: &Arc<Self>, call: u16, asked: &[u64]) -> bool {
        let out = &mut *self.send_side();
        let is_pending = out.calls.is_pending(call);
        if is_pending {
            let bit = |(at, call)| u64::from(out.calls.is_abandoned(call)) << at;
            let words = &[unpacked(asked).enumerate().map(bit).sum()];
            let header = Header { kind: Kind::Unanswered, words: 1, handler: awaits::TOLD, call };
            let at_once = (!handles_several()).then(HeldNic::none);
            self.send(out, header, Content { words, payload: &[] }, at_once);
        }
        is_pending
    }

    /// Takes in which of the calls that the peer was asked about it has given up, and ends their
    /// handlers. Returns `false` if the peer was not asked.
    pub fn hear_awaited(self: &Arc<Self>, call: u16, given_up: u64) -> bool {
        let mut out = self.send_side();
        let told = out.retained.as_mut().and_then(|retained| retained.hear(call, given_up));
        self.relieve(&mut out);
        drop(out);
        let Some((tasks, answer)) = told else { return false };
        tasks.iter().for_each(AbortHandle::abort);
        answer.into_iter().for_each(|answer| self.send_deferred(answer));
        true
    }
}
