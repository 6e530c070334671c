//! The peer: whether packets come from it, and when something came.

use crate::nic::device::flow::Flow;
use crate::nic::requests::event::Event;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::wire::{OpcodeInfo, Operation};

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
        let qpn = self.number();
        let Some(path) = &self.path else { return false };
        match flow {
            _ if flow.number() == self.known_flow => true,
            Flow::Link(link) => {
                let ours = link == path.id();
                if ours {
                    self.known_flow = flow.number();
                }
                ours
            }
            Flow::Network(number, outer) => {
                let (source, destination) = outer.hosts();
                let ours = path.outer().hosts() == (destination, source);
                if ours {
                    // Packets that are marked have a flow of their own, and are always looked at.
                    if !outer.is_marked() {
                        self.known_flow = number;
                    }
                    if path.outer().ethernet().destination != outer.ethernet().source {
                        common.raise(Event::PathChanged(qpn), &mut self.path_changed_pending);
                    }
                }
                ours
            }
        }
    }

    /// Notes that a switch has marked a packet. The peer is told of marked requests, which it has
    /// sent. Marked responses are this side's affair, since it has asked for them. Marked
    /// acknowledgements are nobody's.
    #[cold]
    pub fn note_mark(&mut self, info: OpcodeInfo) {
        if !info.is_response()
            && let Some(arrivals) = &mut self.responder.arrivals
        {
            arrivals.marked = arrivals.marked.wrapping_add(1);
        } else if info.operation == Operation::ReadResponse
            && let Some(control) = &mut self.requester.control
        {
            control.response_marked();
        }
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
