//! Kept requests: how long they may be, and calls that their caller has given up.
//!
//! A caller that gives a call up tells nobody, for its peer may have no receive for a message of
//! that. Whoever handles the call asks instead, when its handler has taken long. The question takes
//! the receive that the caller has for the call's answer, and what the caller says to it takes the
//! receive of the request, which is free, since the request was handled. So for each call no more
//! than one message is under way in either direction, as if nothing was ever asked.

use std::sync::Arc;

use doorbell_verbs::floor::HeldNic;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::Link;
use crate::content::Content;
use crate::error::Undeliverable;
use crate::handling::handles_several;
use crate::kept::Release;
use crate::wire::{Header, Kind, awaits, packed, unpacked};

/// Sees to the kept requests of a link until there are none: at the times that they ask for, and
/// when it is notified that there is one that asks for less.
pub(super) async fn attend(link: Arc<Link>, sooner: Arc<Notify>) {
    loop {
        let next = {
            let out = &mut *link.out();
            let kept = out.kept.as_mut().filter(|_| out.ending.is_none());
            kept.and_then(|kept| kept.next_look(Instant::now()))
        };
        let Some(next) = next else { return };
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            () = sooner.notified() => continue,
        }
        link.sends_overdue_back();
        link.asks_what_is_awaited();
    }
}

impl Link {
    /// Sends requests back whose time is over.
    fn sends_overdue_back(self: &Arc<Self>) {
        loop {
            let overdue = self.out().kept.as_mut().and_then(|kept| {
                let answer = |header| -> crate::kept::Later {
                    Box::new(move |link| link.give_back(header, Undeliverable::NoReply, &[]))
                };
                kept.overdue(Instant::now(), answer)
            });
            let Some((header, release, task)) = overdue else { return };
            if release == Release::Now {
                self.give_back(header, Undeliverable::NoReply, &[]);
            }
            task.iter().for_each(AbortHandle::abort);
        }
    }

    /// Asks the peer whether it still awaits the calls that handlers have kept long.
    fn asks_what_is_awaited(self: &Arc<Self>) {
        let out = &mut *self.out();
        let asked = out.kept.as_mut().and_then(|kept| kept.ask(Instant::now()));
        if let Some((call, calls)) = asked {
            let words: Vec<u64> = packed(&calls).collect();
            let header =
                Header { kind: Kind::Unanswered, words: words.len(), handler: awaits::ASKED, call };
            let content = Content { words: &words, payload: &[] };
            self.ask_and_grant(out, header, content);
        }
    }

    /// Answers the peer's question which calls are still awaited. Whether it was asked by one that
    /// is to be answered.
    pub fn tells_awaited(self: &Arc<Self>, call: u16, asked: &[u64]) -> bool {
        let out = &mut *self.out();
        let is_to_come = out.calls.is_to_come(call);
        if is_to_come {
            let bit = |(at, call)| u64::from(out.calls.is_abandoned(call)) << at;
            let words = &[unpacked(asked).enumerate().map(bit).sum()];
            let header = Header { kind: Kind::Unanswered, words: 1, handler: awaits::TOLD, call };
            let at_once = (!handles_several()).then(HeldNic::none);
            self.send(out, header, Content { words, payload: &[] }, at_once);
        }
        is_to_come
    }

    /// The peer has answered which calls it has given up: their handlers are ended. Whether it was
    /// asked.
    pub fn hears_awaited(self: &Arc<Self>, call: u16, given_up: u64) -> bool {
        let told = self.out().kept.as_mut().and_then(|kept| kept.told(call, given_up));
        let Some((tasks, answer)) = told else { return false };
        tasks.iter().for_each(AbortHandle::abort);
        if let Some(answer) = answer {
            answer(self);
        }
        true
    }
}
