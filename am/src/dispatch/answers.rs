//! Answers of peers to the requests of this side.

use std::sync::Arc;

use super::{Dispatcher, Looking};
use crate::arguments::Room;
use crate::error::Undeliverable;
use crate::handlers::{Replied, Returned};
use crate::kinds::Reply;
use crate::link::Link;
use crate::receives::Arrival;
use crate::shared::{count, run_handler};
use crate::wire::{Header, awaits};

impl Dispatcher {
    /// Hands a reply to the caller who awaits it, or to its reply handler.
    #[inline]
    pub(super) fn reply(
        &mut self,
        link: &Arc<Link>,
        arrival: &mut Arrival,
        looking: &mut Looking<'_>,
    ) {
        count(&self.counters.replies);
        let header = arrival.header;
        if header.call != 0 {
            looking.answered(link, header.call, || Ok(Reply::of(arrival, &link.buffers)));
            return;
        }
        // What answers nothing is not handled: the program's memory for answers is bounded by what
        // it has asked.
        let Some(woke) = link.answered_one_way() else { return count(&self.counters.malformed) };
        looking.looked.woke |= woke;
        self.run_reply(link, arrival);
    }

    /// Runs the reply handler of a reply that no caller awaits.
    #[inline]
    pub(super) fn run_reply(&mut self, link: &Arc<Link>, arrival: &Arrival) {
        let header = arrival.header;
        let table = self.tables.get_mut(link.endpoint.number).and_then(Option::as_mut);
        let Some(run) = table.and_then(|table| table.replies.get_mut(header.handler)) else {
            return count(&self.counters.undelivered);
        };
        let mut room = Room::new();
        let words = room.read(arrival.words());
        let reply = Replied::new(link, arrival);
        if run_handler(&self.counters, self.runs, || run(reply, words)) == Some(false) {
            count(&self.counters.undelivered);
        }
    }

    /// Ends a call to which nothing was replied, or takes in a message about requests whose handlers
    /// take long.
    #[cold]
    pub(super) fn unanswered(
        &mut self,
        link: &Arc<Link>,
        arrival: &mut Arrival,
        looking: &mut Looking<'_>,
    ) {
        if arrival.header.handler == awaits::LATE {
            return self.late(link, arrival, looking);
        }
        let mut room = Room::new();
        let (call, words) = (arrival.header.call, room.read(arrival.words()));
        let sound = match (arrival.header.handler, words) {
            (awaits::ENDS, _) => {
                looking.answered(link, call, || Err(Undeliverable::Unanswered));
                true
            }
            (awaits::ASKED, calls) => link.tell_awaited(call, calls),
            (awaits::TOLD, &[given_up]) => link.hear_awaited(call, given_up),
            (awaits::LATER, tickets) => {
                let woke = link.is_answered_late(call, tickets);
                looking.looked.woke |= woke.unwrap_or(false);
                woke.is_some()
            }
            _ => false,
        };
        if !sound {
            count(&self.counters.malformed);
        }
    }

    /// Takes in a request of this side that came back.
    #[cold]
    pub(super) fn returned(
        &mut self,
        link: &Arc<Link>,
        arrival: &Arrival,
        looking: &mut Looking<'_>,
    ) {
        count(&self.counters.returned);
        let header = arrival.header;
        let code = arrival.data().as_chunks::<8>().0.first().map(|&word| u64::from_le_bytes(word));
        let Some(why) = code.and_then(Undeliverable::from_code) else {
            return count(&self.counters.malformed);
        };
        if header.call != 0 {
            looking.answered(link, header.call, || Err(why));
            return;
        }
        let Some(woke) = link.answered_one_way() else { return count(&self.counters.malformed) };
        looking.looked.woke |= woke;
        let header = Header { words: header.words.saturating_sub(1), ..header };
        self.give_up(link, why, Some((header, &arrival.data()[8..])));
    }

    /// Runs the handler of returned requests for one that was not delivered, or traces a warning.
    #[cold]
    pub(super) fn give_up(
        &mut self,
        link: &Arc<Link>,
        why: Undeliverable,
        what: Option<(Header, &[u8])>,
    ) {
        let returned = Returned { why, link, what };
        let table = self.tables.get_mut(link.endpoint.number).and_then(Option::as_mut);
        match table.and_then(|table| table.returned.as_mut()) {
            Some(run) => drop(run_handler(&self.counters, self.runs, || run(returned))),
            None => tracing::warn!("{returned}"),
        }
    }
}
