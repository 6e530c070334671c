//! Arrival: what the NIC does with what a device hands over, which are packets, links that are
//! gone, and closed ports.

use std::time::Duration;

use crate::encap::{Host, PathId};
use crate::nic::adapter::nic::{Nic, find};
use crate::nic::device::flow::Flow;
use crate::nic::device::inbox::Inbox;
use crate::nic::device::receive::by_row;
use crate::nic::keep_alive::peers::SuspicionReason;
use crate::nic::requests::event::Event;
use crate::payload::Payload;
use crate::time::Time;
use crate::wire::{AfterBth, Bth, Malformed, OpcodeInfo, Operation, Packet, Qpn, RawBth, Service};

/// The shortest time between two ICMP messages about closed ports that are processed. Those that
/// come sooner are dropped.
const BETWEEN_CLOSED: Duration = Duration::from_millis(1);

impl Nic {
    /// Hands a packet to its queue pair, or drops it.
    #[inline(always)]
    fn dispatch<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>, info: OpcodeInfo) {
        let Self { common, pairs, numbers, .. } = self;
        common.counters.received += 1;
        let bth = packet.headers.bth;
        let Some(pair) = find(pairs, *numbers, bth.destination()) else {
            return self.no_such_queue_pair(flow, *packet);
        };
        // Datagrams may come from anywhere.
        if pair.service() != Service::Ud && !pair.belongs_to_connection(flow, common) {
            common.counters.strangers += 1;
            return self.reject_undelivered(flow.link(), info, bth.destination(), bth.psn());
        }
        if !pair.pkey.same_partition(bth.pkey()) {
            common.counters.other_partition += 1;
            return self.reject_undelivered(flow.link(), info, bth.destination(), bth.psn());
        }
        pair.note_heard(common);
        if let Flow::Network(_, outer) = flow
            && outer.is_marked()
        {
            pair.note_mark(info, common);
        }
        if info.operation == Operation::CongestionNotification && pair.service() != Service::Ud {
            return pair.notified(common);
        }
        if info.service != pair.service() {
            common.counters.wrong_service += 1;
            return self.reject_undelivered(flow.link(), info, bth.destination(), bth.psn());
        }
        match info.service {
            Service::Ud => pair.receive_datagram(flow, packet, common),
            _ if info.is_response() => pair.receive_response(packet, info, common),
            _ => pair.receive_request(packet, info, common),
        }
    }
}

impl Inbox for Nic {
    #[inline(never)]
    fn packet<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>) {
        by_row!(
            packet.headers.bth.opcode(),
            [RcReadRequest, RcReadResponseOnly, RcFetchAdd, RcAtomicAcknowledge],
            row => self.dispatch(flow, packet, row),
            other => self.dispatch(flow, packet, *other.info())
        );
    }

    #[inline(always)]
    fn fast_path(&mut self, flow: Flow<'_>, bth: RawBth, behind: impl AfterBth) -> bool {
        let Self { common, pairs, numbers, .. } = self;
        find(pairs, *numbers, bth.destination())
            .is_some_and(|pair| pair.receive_fast_path(flow, bth, behind, common))
    }

    #[inline(always)]
    fn packet_of_opcode<P: Payload>(&mut self, flow: Flow<'_>, packet: Packet<P>, row: OpcodeInfo) {
        self.dispatch(flow, &packet, row);
    }

    #[inline(always)]
    fn arrived(&mut self, at: Time) {
        self.common.arrived = at;
    }

    /// Notes that a link is gone. What is under way there is given up when it is known what was
    /// delivered before.
    #[cold]
    fn gone(&mut self, link: PathId) {
        if !self.common.gone_links.contains(&link) {
            self.common.gone_links.push(link);
        }
    }

    /// Asks all peers at the host for a sign of life at once. A message that quotes no packet of
    /// this NIC's that is under way changes nothing: whoever forges one would have to know 24 bits
    /// of a queue pair number and the sequence number of the moment. Of the messages that come
    /// within a millisecond, one is looked at, since that takes a walk along all queue pairs.
    ///
    /// If a management datagram is quoted, an [event](Event::RequestBounced) tells of it.
    #[cold]
    fn port_closed(&mut self, at: Host, quoted: &[u8]) {
        let Some((bth, behind)) = quoted.split_first_chunk() else { return };
        let Ok(bth) = Bth::from_bytes(bth) else { return };
        if bth.destination() == Qpn::GSI {
            let bounced = self.common.management.bounced(bth, behind);
            return self.common.events.extend(bounced.map(Event::RequestBounced));
        }
        let Self { common, pairs, port_closed_again, .. } = self;
        if common.lossless || common.now < *port_closed_again {
            return;
        }
        *port_closed_again = common.now + BETWEEN_CLOSED;
        if !pairs.iter().flatten().any(|pair| pair.may_have_sent(at, &bth)) {
            return;
        }
        common.counters.closed_ports += 1;
        for (peer, at) in common.peers.suspect(at, SuspicionReason::Closed, |_| true, common.now) {
            common.timers.arm(peer.timer(), at);
        }
    }

    fn malformed(&mut self, why: Malformed) {
        tracing::trace!(%why, "malformed");
        self.common.counters.malformed += 1;
    }
}
