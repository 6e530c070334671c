//! Requests of peers, which run request handlers.

use std::sync::Arc;

use super::{Dispatcher, Looked, Looking};
use crate::arguments::Room;
use crate::error::Undeliverable;
use crate::handlers::{Asked, Request};
use crate::link::Link;
use crate::receives::{Arrival, Reassembled};
use crate::shared::{Runs, count, run_handler};
use crate::wire::{Header, Kind, SYSTEM};

impl Dispatcher {
    /// Runs the handler of a request, or sends the request back if nobody handles it.
    #[inline]
    pub(super) fn request(
        &mut self,
        link: &Arc<Link>,
        arrival: &mut Arrival,
        looking: &mut Looking<'_>,
    ) {
        let kind = arrival.header.kind;
        if kind == Kind::Placed && !take_place(arrival) {
            return count(&self.counters.malformed);
        }
        if kind == Kind::Fragment && !self.reassemble(link, arrival) {
            return;
        }
        count(&self.counters.requests);
        let header = arrival.header;
        let endpoint = &link.endpoint;
        let place = (endpoint.number, header.handler);
        if self.collecting.is_some_and(|collecting| collecting != place) {
            self.finish(&mut looking.looked);
        }
        if header.handler == SYSTEM {
            return self.answer_question(link, arrival);
        }
        if arrival.placed.as_ref().is_some_and(|placed| placed.end > endpoint.segment_len()) {
            count(&self.counters.undelivered);
            return link.give_back(header, Undeliverable::Segment, &[]);
        }
        let table = self.tables.get_mut(endpoint.number).and_then(Option::as_mut);
        let handler = table.and_then(|table| table.requests.get_mut(header.handler));
        let (true, Some(run)) = (link.is_admitted(), handler) else {
            return self.refuse(link, arrival);
        };
        let mut room = Room::new();
        let words = room.read(arrival.words());
        let mut asked = Asked::new(link, arrival, looking.nic.reborrow());
        let request = Request::new(&mut asked);
        let collected = run_handler(&self.counters, self.runs, || run.run(request, words));
        if collected == Some(true) {
            self.collecting = Some(place);
        }
    }

    /// Has the handler finish that has collected requests, if one has.
    #[inline]
    pub fn finish(&mut self, looked: &mut Looked) {
        let Some((number, handler)) = self.collecting.take() else { return };
        let table = self.tables.get_mut(number).and_then(Option::as_mut);
        if let Some(run) = table.and_then(|table| table.requests.get_mut(handler)) {
            let finished = run_handler(&self.counters, Runs::OneOfSeveral, || run.finish());
            looked.woke |= finished.unwrap_or_default();
        }
    }

    /// Copies a fragment of a payload into the segment. Returns whether it was the last, and has
    /// become the request for the whole payload.
    #[cold]
    fn reassemble(&mut self, link: &Arc<Link>, arrival: &mut Arrival) -> bool {
        match link.reassemble(arrival) {
            Reassembled::Whole => return true,
            Reassembled::More => link.done(0),
            Reassembled::Malformed => {
                count(&self.counters.malformed);
                link.done(0);
            }
            Reassembled::Refused(handler, why) => {
                count(&self.counters.undelivered);
                let header = Header { kind: Kind::Request, words: 0, handler, call: 0 };
                link.give_back(header, why, &[]);
            }
        }
        false
    }

    /// Sends a request back that nobody handles.
    #[cold]
    fn refuse(&self, link: &Arc<Link>, arrival: &Arrival) {
        count(&self.counters.undelivered);
        let why =
            if link.is_admitted() { Undeliverable::NoHandler } else { Undeliverable::WrongTag };
        link.give_back(arrival.header, why, arrival.data());
    }
}

/// Takes the place of a placed payload out of the words. Returns whether the words have one.
#[cold]
fn take_place(arrival: &mut Arrival) -> bool {
    let words = arrival.data().as_chunks::<8>().0;
    let &[offset, len, ..] = words else { return false };
    let (offset, len) = (u64::from_le_bytes(offset), u64::from_le_bytes(len));
    let Some(words) = arrival.header.words.checked_sub(Kind::Placed.own_words()) else {
        return false;
    };
    arrival.header = Header { kind: Kind::Request, words, ..arrival.header };
    arrival.data.start += 8 * Kind::Placed.own_words();
    arrival.placed = Some(offset..offset.saturating_add(len));
    true
}
