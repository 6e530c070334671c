//! The peer: whether packets come from it, and when something came.

use std::time::Duration;

use crate::encap::Full;
use crate::nic::device::flow::Flow;
use crate::nic::device::outbox::Outbox;
use crate::nic::requests::event::Event;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::time::Time;
use crate::wire::{Bth, Extensions, Headers, Opcode, OpcodeInfo, Operation, Psn, Service};

/// The span of time in which a peer is sent one congestion notification, and none in the next such
/// span: a peer slows down once by what is marked in about 50 µs, as adapters do.
const SPAN_OF_NOTIFICATION: Duration = Duration::from_micros(25);

/// The number of the span of time that a moment is in, modulo 2¹⁶.
fn span_of(now: Time) -> u16 {
    (now.as_nanos() / SPAN_OF_NOTIFICATION.as_nanos() as u64) as u16
}

impl QueuePair {
    /// Notes that a packet has come before the queue pair is ready to send: the peer knows that the
    /// connection is established.
    #[cold]
    pub fn note_established(&mut self, common: &mut Common) {
        if !std::mem::replace(&mut self.has_received, true) {
            common.raise(Event::Established(self.number()), &mut self.established_pending);
        }
    }

    /// Whether a packet came by the path that leads to the peer.
    #[inline]
    pub fn belongs_to_connection(&mut self, flow: Flow<'_>, common: &mut Common) -> bool {
        let Some(path) = &self.path else { return false };
        match flow {
            _ if flow.number() == self.known_flow => true,
            Flow::Link(link) => {
                let ours = link == path.id();
                if ours && !self.encrypts() {
                    self.known_flow = flow.number();
                }
                ours
            }
            Flow::Network(number, outer) => {
                let (source, destination) = outer.hosts();
                let ours = path.outer().hosts() == (destination, source);
                // Where packets are encrypted, a flow proves nothing.
                if ours && !self.encrypts() {
                    // Packets that are marked have a flow of their own, and are always looked at.
                    if !outer.is_marked() {
                        self.known_flow = number;
                    }
                    self.note_way(flow, common);
                }
                ours
            }
        }
    }

    /// Notes by which way a packet of the peer's came: the peer may have moved to another port.
    pub fn note_way(&mut self, flow: Flow<'_>, common: &mut Common) {
        let qpn = self.number();
        if let (Flow::Network(_, outer), Some(path)) = (flow, &self.path)
            && path.outer().ethernet().destination != outer.ethernet().source
        {
            common.raise(Event::PathChanged(qpn), &mut self.path_changed_pending);
        }
    }

    /// Notes that a switch has marked a packet. A peer that shares selective repeat is told of its
    /// marked requests by reports, and marked responses are this side's affair, since it has asked
    /// for them. Other peers are sent a congestion notification. Marked acknowledgements are
    /// nobody's.
    #[cold]
    pub fn note_mark(&mut self, info: OpcodeInfo, common: &mut Common) {
        let answers = info.operation == Operation::ReadResponse;
        if info.is_response() && !answers || self.service() == Service::Ud {
            return;
        }
        common.counters.marked += 1;
        match (&mut self.responder.arrivals, &mut self.requester.control) {
            (Some(_), Some(control)) if answers => control.was_marked(),
            (Some(arrivals), _) if !answers => arrivals.marked = arrivals.marked.wrapping_add(1),
            (Some(_), _) => {}
            (None, _) if span_of(common.now).wrapping_sub(self.responder.notified_in) > 1 => {
                self.responder.notified_in = span_of(common.now);
                self.responder.owes_notification = true;
                common.list_owing(self);
            }
            (None, _) => {}
        }
    }

    /// Takes a congestion notification: switches have marked packets of this side's.
    #[cold]
    pub fn notified(&mut self, common: &mut Common) {
        common.counters.notifications_received += 1;
        // A peer that reports marks has no need of notifications, which anybody can forge.
        if !self.requester.selective
            && let Some(control) = &mut self.requester.control
        {
            control.was_marked();
        }
    }

    /// Sends the peer a congestion notification, if it is owed one.
    #[inline]
    pub(crate) fn send_notification<O: Outbox>(
        &mut self,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<(), Full> {
        match (&self.path, self.responder.owes_notification) {
            (Some(path), true) => {
                let bth = Bth::new(Opcode::Cnp, self.peer_qpn, Psn::new(0)).with_pkey(self.pkey);
                let bth = bth.with_congestion(false, true);
                outbox.push(path, Headers { bth, extensions: Extensions::None }, &[0; 16][..])?;
                common.counters.sent += 1;
                common.counters.notifications_sent += 1;
            }
            (None, true) => {}
            (_, false) => return Ok(()),
        }
        self.responder.owes_notification = false;
        Ok(())
    }

    /// Notes that something came from the peer, once for all that came at the same time.
    #[inline(always)]
    pub fn note_heard(&mut self, common: &mut Common) {
        if self.heard_at != common.now {
            self.heard_at = common.now;
            common.peers.note_heard(self.peer_id, self.shared.place, common.now);
        }
    }
}
