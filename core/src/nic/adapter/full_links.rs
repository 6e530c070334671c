//! Sending past full links.
//!
//! A lossless device has room for each link of its own, and a peer may stop reading: then what is
//! for it waits, and nothing else does. Within a turn, what a link once had no room for is not
//! tried again, so that nothing overtakes it. Each queue pair that waits is tried in turn, since
//! one packet may find room where another did not.
//!
//! All of this is apart from the common path, on which no link is full.

use crate::encap::PathId;
use crate::nic::adapter::nic::Nic;
use crate::nic::adapter::sending::send_or_flush;
use crate::nic::device::outbox::Outbox;
use crate::nic::state::delivery_failures::DELIVERY_FAILURES;
use crate::nic::state::queue_pair::QueuePair;
use crate::nic::state::turns::{QUANTUM, ResponderTurn};

impl Nic {
    /// Sends first what is owed, some of which found no room in the last turn, and then requests.
    #[cold]
    #[inline(never)]
    pub(crate) fn send_after_full<O: Outbox>(&mut self, outbox: &mut O) {
        self.answer(outbox);
        self.send_past_full_links(outbox);
    }

    /// Goes on sending when the link of a queue pair was found full.
    #[cold]
    #[inline(never)]
    pub(crate) fn send_past_full<O: Outbox>(&mut self, place: u32, outbox: &mut O) {
        let Self { common, pairs, .. } = self;
        if !common.lossless {
            return common.sendable.push_back(place);
        }
        common.full_links.stopped.push(place);
        if let Some(link) = pairs[place as usize].as_deref().and_then(|pair| pair.link()) {
            common.full_links.add(link);
        }
        self.send_past_full_links(outbox);
    }

    /// Lets all queue pairs send whose links are not full. Those that were stopped are then listed
    /// behind those that were not tried, so that no queue pair keeps a link to itself.
    fn send_past_full_links<O: Outbox>(&mut self, outbox: &mut O) {
        let Self { common, pairs, .. } = self;
        while let Some(place) = common.sendable.pop_front() {
            let Some(pair) = pairs[place as usize].as_deref_mut() else { continue };
            let link = pair.link();
            if link.is_some_and(|link| common.full_links.has(link)) {
                common.full_links.aside.push_back(place);
                continue;
            }
            if send_or_flush(pair, common, outbox) {
                continue;
            }
            common.full_links.stopped.push(place);
            if !common.lossless {
                break;
            }
            if let Some(link) = link {
                common.full_links.add(link);
            }
        }
        common.sendable.extend(common.full_links.aside.drain(..));
        common.sendable.extend(common.full_links.stopped.drain(..));
    }

    /// Goes on sending what is owed when the device, or the link of the first queue pair that owes
    /// something, was found full.
    #[cold]
    #[inline(never)]
    pub(crate) fn answer_past_full_links<O: Outbox>(&mut self, outbox: &mut O) {
        let Self { common, pairs, .. } = self;
        common.device_was_full = true;
        if !common.lossless {
            return;
        }
        for _ in 0..common.owing.len() {
            let Some(place) = common.owing.pop_front() else { break };
            let Some(pair) = pairs.get_mut(place as usize).and_then(Option::as_deref_mut) else {
                if place == DELIVERY_FAILURES {
                    common.send_delivery_failures(pairs, outbox);
                }
                continue;
            };
            let link = pair.link();
            if link.is_some_and(|link| common.full_links.has(link)) {
                common.owing.push_back(place);
                continue;
            }
            match pair.send_owed(common, outbox, QUANTUM) {
                ResponderTurn::AllSent => pair.responder.is_owing = false,
                ResponderTurn::MoreOwed => common.owing.push_back(place),
                ResponderTurn::DeviceFull => {
                    common.owing.push_back(place);
                    link.into_iter().for_each(|link| common.full_links.add(link));
                }
            }
        }
    }

    /// Returns a function that tells of a link whether its peer is still owed a NAK, or the link a
    /// delivery failure notice. Until both are sent, a lossless device does not report there how
    /// far this NIC has come.
    #[inline]
    pub fn unsent_responses(&self) -> impl Fn(PathId) -> bool {
        let any = self.common.owing.iter().any(|&place| self.owes_nak(place));
        move |link| any && self.owes_nak_by(link)
    }

    /// Whether the queue pair at a place owes its peer a NAK, or the place stands for delivery
    /// failure notices.
    fn owes_nak(&self, place: u32) -> bool {
        let pair = self.pairs.get(place as usize).and_then(Option::as_deref);
        place == DELIVERY_FAILURES || pair.is_some_and(QueuePair::owes_nak)
    }

    /// Whether a NAK or a delivery failure notice is owed by a link.
    #[cold]
    fn owes_nak_by(&self, link: PathId) -> bool {
        let mut places = self.common.owing.iter().filter(|&&place| self.owes_nak(place));
        places.any(|&place| match self.pairs.get(place as usize).and_then(Option::as_deref) {
            Some(pair) => pair.link() == Some(link),
            None => self.common.delivery_failures.has_for(link),
        })
    }
}
