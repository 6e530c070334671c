//! Sending: what a NIC sends in a turn, and in what order.

use crate::nic::adapter::nic::{Nic, find};
use crate::nic::config::queue_pair_state::State;
use crate::nic::device::outbox::Outbox;
use crate::nic::queues::errors::Refused;
use crate::nic::queues::send_queue::SendQueue;
use crate::nic::requests::work_request::{Copied, WorkRequest};
use crate::nic::state::common::Common;
use crate::nic::state::delivery_failures::DELIVERY_FAILURES;
use crate::nic::state::queue_pair::QueuePair;
use crate::nic::state::turns::{QUANTUM, RequesterTurn, ResponderTurn};

/// Has a queue pair, which was taken off its list, send or flush what it can, and enters it in the
/// list where it belongs then. If the device has no room, the queue pair is entered nowhere, and
/// `false` is returned.
#[inline]
pub(crate) fn send_or_flush<O: Outbox>(
    pair: &mut QueuePair,
    common: &mut Common,
    outbox: &mut O,
) -> bool {
    let turn = match pair.state {
        State::Error => pair.flush(common),
        _ => pair.send(common, outbox, QUANTUM),
    };
    let place = pair.shared.place;
    match turn {
        RequesterTurn::Idle => pair.active = false,
        RequesterTurn::More => common.sendable.push_back(place),
        RequesterTurn::Starved => common.wait_for_slots(place),
        RequesterTurn::DeviceFull => return false,
    }
    true
}

impl Nic {
    /// Whether [`transmit`](Self::transmit) may have anything to do.
    #[inline]
    pub fn has_work(&self) -> bool {
        let common = &self.common;
        !common.sendable.is_empty()
            || !common.owing.is_empty()
            || common.management.has_work()
            || self.doorbells.any()
    }

    /// Posts a request, and sends it at once: for a program that has the NIC in hand, and need not
    /// ring the doorbell. Everything else is left to the next turn.
    ///
    /// # Errors
    /// As [`SendQueue::post`].
    #[inline]
    pub fn post<O: Outbox>(
        &mut self,
        queue: &mut SendQueue,
        request: WorkRequest,
        outbox: &mut O,
    ) -> Result<(), Refused<WorkRequest>> {
        queue.post(request)?;
        self.posted(queue, outbox);
        Ok(())
    }

    /// Sends what was posted to a queue without ringing the doorbell, as [`post`](Self::post) does.
    #[inline]
    pub fn posted<O: Outbox>(&mut self, queue: &SendQueue, outbox: &mut O) {
        let ours = queue.rings(&self.doorbells);
        match find(&mut self.pairs, self.numbers, queue.qpn()).filter(|_| ours) {
            Some(pair) if !pair.active => {
                pair.active = true;
                if let Some(path) = &pair.path {
                    outbox.prepare(path.id());
                }
                if !send_or_flush(pair, &mut self.common, outbox) {
                    self.common.sendable.push_back(pair.shared.place);
                }
                outbox.flush();
            }
            // Other queue pairs, or requests before this one, have their turn first.
            Some(_) => self.transmit(outbox),
            None => queue.ring(),
        }
    }

    /// Sends a message at once and keeps nothing of it, so that no memory has to be lent to the
    /// NIC. That is possible on a lossless device, if no other request waits to be sent on this
    /// connection, and the message is one packet. Returns whether the message was sent; if not, it
    /// is to be posted as others are.
    ///
    /// The message can't be sent again to a peer without a receive for it: that ends the
    /// connection, with [`Cause::ReceiverNotReady`](crate::nic::Cause::ReceiverNotReady).
    #[inline(always)]
    pub fn send_copied<O: Outbox>(
        &mut self,
        queue: &mut SendQueue,
        message: &Copied<'_>,
        outbox: &mut O,
    ) -> bool {
        let Self { common, pairs, numbers, doorbells, .. } = self;
        let ours = queue.rings(doorbells) && common.lossless && !common.device_was_full;
        let pair = find(pairs, *numbers, queue.qpn()).filter(|pair| ours && !pair.active);
        let Some(pair) = pair else { return false };
        if let Some(path) = &pair.path {
            outbox.prepare(path.id());
        }
        let sent = pair.send_copied(queue, message, common, outbox);
        outbox.flush();
        sent
    }

    /// Takes requests for acknowledged since the peer's program has said, by a message that
    /// followed from them, that it received the first `count` of all requests that were posted to a
    /// queue since the connection began. The peer's NIC need not acknowledge them. A peer that says
    /// what is not so loses what it did not receive.
    #[inline]
    pub fn acknowledged_by_program(&mut self, queue: &SendQueue, count: u32) {
        if queue.rings(&self.doorbells)
            && let Some(pair) = find(&mut self.pairs, self.numbers, queue.qpn())
        {
            pair.acknowledged_by_program(count, &mut self.common);
        }
    }

    /// Sends management datagrams, then the requests that were posted, as far as they may be sent,
    /// and then the acknowledgements and responses that are owed to peers: a peer's program waits
    /// for data, and hardly ever for an acknowledgement.
    #[inline]
    pub fn transmit<O: Outbox>(&mut self, outbox: &mut O) {
        let Self { common, pairs, doorbells, .. } = self;
        doorbells.answer(|place| {
            if let Some(pair) = pairs[place as usize].as_deref_mut() {
                common.activate(pair);
            }
        });
        common.wake_starved();
        // Management datagrams go before data, so that the one that tells a peer that the
        // connection is established, and its private data, is not overtaken by the first message.
        if common.management.has_work() {
            let full = common.lossless.then_some(&mut common.full_links);
            common.counters.sent += common.management.transmit(outbox, full);
        }
        // What the device had no room for goes before everything else, or a stream of data would
        // keep it waiting for ever.
        if common.device_was_full {
            self.send_after_full(outbox);
        } else {
            self.send(outbox);
        }
        self.answer(outbox);
        if self.common.full_links.any() {
            self.common.full_links.forget();
        }
        outbox.flush();
    }

    /// Lets the queue pairs send that may have something to send.
    #[inline]
    fn send<O: Outbox>(&mut self, outbox: &mut O) {
        let Self { common, pairs, .. } = self;
        while let Some(place) = common.sendable.pop_front() {
            let Some(pair) = pairs[place as usize].as_deref_mut() else { continue };
            if !send_or_flush(pair, common, outbox) {
                return self.send_past_full(place, outbox);
            }
        }
    }

    /// Sends what queue pairs owe their peers. Each has one turn, so that a long response keeps no
    /// other queue pair waiting.
    #[inline]
    pub fn answer<O: Outbox>(&mut self, outbox: &mut O) {
        let Self { common, pairs, .. } = self;
        common.device_was_full = false;
        for _ in 0..common.owing.len() {
            let Some(place) = common.owing.pop_front() else { break };
            let Some(pair) = pairs.get_mut(place as usize).and_then(Option::as_deref_mut) else {
                if place == DELIVERY_FAILURES {
                    common.send_delivery_failures(pairs, outbox);
                }
                continue;
            };
            match pair.send_owed(common, outbox, QUANTUM) {
                ResponderTurn::AllSent => pair.responder.is_owing = false,
                ResponderTurn::MoreOwed => common.owing.push_back(place),
                ResponderTurn::DeviceFull => {
                    common.owing.push_front(place);
                    return self.answer_past_full_links(outbox);
                }
            }
        }
    }
}
