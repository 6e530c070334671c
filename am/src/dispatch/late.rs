//! Late answers of peers, to requests of this side whose handlers waited for something.

use std::sync::Arc;

use super::{Dispatcher, Looking};
use crate::error::Undeliverable;
use crate::kinds::Reply;
use crate::link::Link;
use crate::receives::Arrival;
use crate::shared::count;
use crate::wire::awaits::{Late, Sort};
use crate::wire::{Header, Kind};

impl Dispatcher {
    /// Hands a late answer to the caller who awaits it, or to its handler. The peer gets the credit
    /// of its message back.
    #[cold]
    pub(super) fn late(
        &mut self,
        link: &Arc<Link>,
        arrival: &mut Arrival,
        looking: &mut Looking<'_>,
    ) {
        let call = arrival.header.call;
        match take_late(arrival) {
            Some(late) => self.late_answer(link, arrival, late, looking),
            None => count(&self.counters.malformed),
        }
        link.done(call);
    }

    fn late_answer(
        &mut self,
        link: &Arc<Link>,
        arrival: &mut Arrival,
        Late { ticket, sort, handler }: Late,
        looking: &mut Looking<'_>,
    ) {
        let code = arrival.data().as_chunks::<8>().0.first().map(|&word| u64::from_le_bytes(word));
        let why = match sort {
            Sort::Returned => code.and_then(Undeliverable::from_code),
            Sort::Reply | Sort::Nothing => Some(Undeliverable::Unanswered),
        };
        let is_owed = ticket != 0 || link.answered_one_way_late();
        let (true, Some(why)) = (is_owed, why) else { return count(&self.counters.malformed) };
        match sort {
            Sort::Reply => count(&self.counters.replies),
            Sort::Returned => count(&self.counters.returned),
            Sort::Nothing => {}
        }
        match (ticket, sort) {
            (1.., Sort::Reply) => {
                let answer = || Ok(Reply::of(arrival, &link.buffers));
                looking.looked.woke |= link.answered_late(ticket, answer);
            }
            (1.., _) => looking.looked.woke |= link.answered_late(ticket, || Err(why)),
            (0, Sort::Reply) => self.run_reply(link, arrival),
            (0, Sort::Returned) => {
                let header = Header { kind: Kind::Returned, words: 0, handler, call: 0 };
                self.give_up(link, why, Some((header, &[])));
            }
            (0, Sort::Nothing) => {}
        }
    }
}

/// Takes the first word of a late answer off the message, which is a reply from here on. Returns
/// `None` if there is no such word.
fn take_late(arrival: &mut Arrival) -> Option<Late> {
    let words = arrival.header.words.checked_sub(1)?;
    let first = arrival.data().first_chunk()?;
    let late = Late::from_word(u64::from_le_bytes(*first))?;
    let Late { handler, .. } = late;
    arrival.header = Header { kind: Kind::Reply, words, handler, call: 0 };
    arrival.data.start += 8;
    Some(late)
}
