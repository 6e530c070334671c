//! Delivery failures: how a link is told of packets that no queue pair took, and what is done when
//! a notice comes.

use crate::encap::{Path, PathId};
use crate::nic::adapter::nic::Nic;
use crate::nic::device::flow::Flow;
use crate::nic::device::outbox::Outbox;
use crate::nic::requests::failure::Cause;
use crate::nic::state::common::Common;
use crate::nic::state::delivery_failures::{DELIVERY_FAILURES, FailedDelivery};
use crate::nic::state::queue_pair::{Blamed, QueuePair};
use crate::payload::Payload;
use crate::wire::{OpcodeInfo, Packet, Psn, Qpn, Service};

impl Common {
    /// Sends the notices when it is their turn among what is owed, except those whose link is full.
    ///
    /// They go behind the NAKs by their link: a queue pair that is refused by its own peer is to be
    /// told by that NAK, which says why.
    #[cold]
    pub fn send_delivery_failures<O: Outbox>(
        &mut self,
        pairs: &[Option<Box<QueuePair>>],
        outbox: &mut O,
    ) {
        for _ in 0..self.delivery_failures.waiting.len() {
            let Some((link, failed)) = self.delivery_failures.waiting.pop_front() else { break };
            let refuses = |&place: &u32| {
                let pair = pairs.get(place as usize).and_then(Option::as_deref);
                pair.is_some_and(|pair| pair.owes_nak() && pair.link() == Some(link))
            };
            let path = Path::link(link);
            if self.owing.iter().any(refuses) {
                self.delivery_failures.waiting.push_back((link, failed));
            } else if self.full_links.has(link)
                || outbox.push(&path, failed.headers(), &[][..]).is_err()
            {
                self.device_was_full = true;
                self.full_links.add(link);
                self.delivery_failures.waiting.push_back((link, failed));
            } else {
                self.counters.sent += 1;
                self.counters.notices_sent += 1;
            }
        }
        if !self.delivery_failures.waiting.is_empty() {
            self.owing.push_back(DELIVERY_FAILURES);
        }
    }
}

impl Nic {
    /// Takes a packet for a queue pair that does not exist.
    #[cold]
    pub(crate) fn no_such_queue_pair<P: Payload>(&mut self, flow: Flow<'_>, packet: Packet<P>) {
        let (link, headers) = (flow.link(), &packet.headers);
        let info = headers.bth.opcode().info();
        if headers.bth.destination() == Qpn::GSI {
            return self.common.receive_management(flow, &packet);
        }
        match (link, FailedDelivery::read(headers)) {
            (Some(link), Some(failed)) if self.common.lossless => {
                self.receive_delivery_failure(link, failed);
            }
            _ => {
                self.common.counters.no_such_queue_pair += 1;
                self.reject_undelivered(link, *info, headers.bth.destination(), headers.bth.psn());
            }
        }
    }

    /// Sees to it that a packet which was dropped before any queue pair took it does not pass for
    /// delivered.
    #[cold]
    pub(crate) fn reject_undelivered(
        &mut self,
        link: Option<PathId>,
        info: OpcodeInfo,
        number: Qpn,
        psn: Psn,
    ) {
        let request = info.service == Service::Rc && !info.is_response();
        if let Some(link) = link
            && self.common.lossless
            && request
        {
            self.common.owe_delivery_failure(link, number, psn);
        }
    }

    /// Breaks the queue pairs that a notice is about.
    fn receive_delivery_failure(&mut self, link: PathId, failed: FailedDelivery) {
        let Self { common, pairs, .. } = self;
        let mut concerned = false;
        // Every queue pair with something under way is in this list.
        for index in 0..common.awaiting_delivery.len() {
            let place = common.awaiting_delivery[index] as usize;
            let pair =
                pairs[place].as_deref_mut().filter(|pair| pair.has_failed_delivery(link, failed));
            if let Some(pair) = pair {
                concerned = true;
                pair.break_with(Cause::NoAnswer { tries: 1 }, Blamed::Request(0), common);
            }
        }
        match concerned {
            true => common.counters.notices_received += 1,
            false => common.counters.stray_answers += 1,
        }
    }
}
