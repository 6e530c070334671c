//! Arrival: what the NIC does with what a device hands over, which are packets, links that are
//! gone, and closed ports.

use std::time::Duration;

use crate::cipher::Unopened;
use crate::encap::{Host, Path, PathId};
use crate::nic::adapter::nic::{Nic, find};
use crate::nic::device::flow::Flow;
use crate::nic::device::inbox::Inbox;
use crate::nic::device::receive::by_row;
use crate::nic::keep_alive::peers::SuspicionReason;
use crate::nic::requests::event::Event;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::payload::Payload;
use crate::time::Time;
use crate::wire::{
    AfterBth, Bth, Headers, Malformed, Opcode, OpcodeInfo, Operation, Packet, PathMtu, Qpn, RawBth,
    Service,
};

/// The shortest time between two ICMP messages about closed ports that are processed. Those that
/// come sooner are dropped.
const BETWEEN_CLOSED: Duration = Duration::from_millis(1);

impl Nic {
    /// Hands a packet to its queue pair, or drops it.
    #[inline(always)]
    fn dispatch<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>, info: OpcodeInfo) {
        let Self { common, pairs, numbers, opened, .. } = self;
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
        if pair.encrypts() {
            return pair.open(opened, flow, packet, common);
        }
        if !pair.deliver(flow, packet, info, common) {
            self.reject_undelivered(flow.link(), info, bth.destination(), bth.psn());
        }
    }
}

/// The longest that an opened packet may be: its opcode, its extension headers, its payload.
const LONGEST_OPENED: usize = 1 + Headers::MAX_LEN + PathMtu::Mtu4096.bytes();

/// A packet that was encrypted: at a glance, and parsed.
struct Inner<'b> {
    bth: RawBth,
    behind: &'b [u8],
    packet: Packet<&'b [u8]>,
}

impl<'b> Inner<'b> {
    /// Takes the packet's opcode, and what is behind it.
    fn of(bth: &Bth, code: u8, behind: &'b [u8]) -> Result<Self, Malformed> {
        let opcode = Opcode::from_code(code)
            .filter(|opcode| *opcode != Opcode::Encrypted)
            .ok_or(Malformed::Opcode(code))?;
        let bth = bth.with_opcode(opcode).with_pad(0);
        let packet = behind.parse(bth, opcode.layout())?;
        Ok(Self { bth: RawBth::of(&bth), behind, packet })
    }
}

impl QueuePair {
    /// Opens a packet that is encrypted, and takes what was in it. It is opened into memory of the
    /// NIC, so that nobody reads what is not authentic.
    #[inline(never)]
    fn open<P: Payload>(
        &mut self,
        opened: &mut Box<[u8]>,
        flow: Flow<'_>,
        packet: &Packet<P>,
        common: &mut Common,
    ) {
        let bth = packet.headers.bth;
        let keys = self.path.as_mut().and_then(Path::keys_mut);
        let (Opcode::Encrypted, Some(keys), Some(sealed)) =
            (bth.opcode(), keys, packet.payload.as_bytes())
        else {
            common.counters.not_authentic += 1;
            return;
        };
        if opened.is_empty() {
            *opened = vec![0; LONGEST_OPENED].into();
        }
        keys.renew_if_due();
        let inner = match keys.open(&bth, sealed, opened) {
            Ok((code, behind)) => Inner::of(&bth, code, behind),
            Err(Unopened::CameBefore) => return common.counters.came_before += 1,
            Err(Unopened::NotAuthentic) => return common.counters.not_authentic += 1,
        };
        self.note_way(flow, common);
        match inner {
            Ok(inner) if self.take_fast_path(inner.bth, inner.behind, common) => {}
            Ok(Inner { packet, .. }) => {
                let info = packet.headers.bth.opcode().info();
                self.deliver(flow, &packet, *info, common);
            }
            Err(why) => {
                tracing::trace!(%why, "malformed");
                common.counters.malformed += 1;
            }
        }
    }

    /// Takes a packet that came by the connection, and is authentic if its packets are encrypted.
    /// Returns false if it is of a service that the queue pair does not have.
    #[inline(always)]
    fn deliver<P: Payload>(
        &mut self,
        flow: Flow<'_>,
        packet: &Packet<P>,
        info: OpcodeInfo,
        common: &mut Common,
    ) -> bool {
        self.note_heard(common);
        if let Flow::Network(_, outer) = flow
            && outer.is_marked()
        {
            self.note_mark(info, common);
        }
        if info.operation == Operation::CongestionNotification && self.service() != Service::Ud {
            self.notified(common);
            return true;
        }
        if info.service != self.service() || info.operation == Operation::Encrypted {
            common.counters.wrong_service += 1;
            return false;
        }
        match info.service {
            Service::Ud => self.receive_datagram(flow, packet, common),
            _ if info.is_response() => self.receive_response(packet, info, common),
            _ => self.receive_request(packet, info, common),
        }
        true
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
