//! The peer: whether packets come from it, and when something came.

use crate::nic::device::flow::Flow;
use crate::nic::requests::event::Event;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;

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
                    self.known_flow = number;
                    if path.outer().ethernet().destination != outer.ethernet().source {
                        common.raise(Event::PathChanged(qpn), &mut self.path_changed_pending);
                    }
                }
                ours
            }
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
