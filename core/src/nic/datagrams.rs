//! Queue pairs without a connection: each message is a packet, to whomever it names.

use crate::encap::Outer;
use crate::payload::Payload;
use crate::planted::{Bug, planted};
use crate::wire::{Bth, Deth, Extensions, Headers, Ipv4, Ipv6, Opcode, Packet, PathMtu};

use super::common::{AddressId, Common};
use super::completion::{Cause, Done};
use super::device::{Flow, Outbox};
use super::gather::{gather, scatter};
use super::pair::QueuePair;
use super::queues::Purpose;
use super::requester::{Stop, Turn};
use super::responder::Message;
use super::states::State;
use super::work::{Attachment, Operation};

/// The bytes in front of a datagram in its receive, in which its network header stands.
pub const DATAGRAM_HEADER: usize = 40;

/// What stands in front of a datagram in its receive: the GRH or IPv6 header, or an IPv4 header in
/// the last half. On a link of its own a packet has neither.
fn network_header(flow: Flow<'_>) -> [u8; DATAGRAM_HEADER] {
    let mut bytes = [0; DATAGRAM_HEADER];
    match flow {
        Flow::Network(_, Outer::V1(_, grh)) => bytes = grh.to_bytes(),
        Flow::Network(_, Outer::V2Ipv6(_, ip, _)) => bytes = ip.to_bytes(),
        Flow::Network(_, Outer::V2Ipv4(_, ip, _)) => {
            bytes[Ipv6::LEN - Ipv4::LEN..].copy_from_slice(&ip.to_bytes());
        }
        Flow::Link(_) => {}
    }
    bytes
}

impl QueuePair {
    /// Sends the datagram at the cursor.
    #[inline(never)]
    pub fn send_datagram<O: Outbox>(
        &mut self,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<(), Turn> {
        let (source, mtu, pkey) = (self.number(), self.mtu, self.pkey);
        let (psn, posted) = self.requester.at_cursor();
        let Some(posted) = posted else { return Err(Turn::Idle) };
        if self.state == State::Draining {
            return Err(Turn::Idle);
        }
        let Operation::Datagram { to, qpn, qkey } = posted.request.operation else {
            return Err(Turn::Idle);
        };
        if !common.reserve(self.send_completions, Purpose::Send) {
            return Err(Turn::Starved);
        }
        let deth = Deth { qkey, source, reserved: 0 };
        let (opcode, extensions) = match posted.request.attached {
            Attachment::Imm(imm) => (Opcode::UdSendOnlyImmediate, Extensions::DethImm(deth, imm)),
            _ => (Opcode::UdSendOnly, Extensions::Deth(deth)),
        };
        let solicited = posted.request.solicited;
        let bth = Bth::new(opcode, qpn, psn).with_pkey(pkey).with_solicited(solicited);
        let headers = Headers { bth, extensions };
        let sent = push(common, outbox, self.domain, mtu, (to, headers), posted);
        let r = &mut self.requester;
        match sent {
            Ok(ticket) => {
                r.begun += 1;
                r.sent(1, false, true, ticket, common.now);
                common.counters.sent += 1;
                self.sent_for_good(true, common);
                Ok(())
            }
            Err(stop) => {
                match stop {
                    // It is the first, for those before it are complete: it fails with its slot.
                    Stop::Refused(_) => r.begun += 1,
                    Stop::Turn(_) => common.release(self.send_completions, Purpose::Send),
                }
                Err(self.stopped(stop, common))
            }
        }
    }

    /// Takes a datagram, or drops it.
    #[inline(never)]
    pub fn take_datagram<P: Payload>(
        &mut self,
        flow: Flow<'_>,
        packet: &Packet<P>,
        common: &mut Common,
    ) {
        let (deth, attached) = match packet.headers.extensions {
            Extensions::Deth(deth) => (deth, Attachment::Nothing),
            Extensions::DethImm(deth, imm) => (deth, Attachment::Imm(imm)),
            _ => return common.counters.wrong_service += 1,
        };
        if !self.state.responds() {
            return common.counters.wrong_state += 1;
        }
        if deth.qkey != self.qkey && !planted(Bug::IgnoresQkeys) {
            return common.counters.wrong_qkey += 1;
        }
        if packet.payload.len() > self.mtu.bytes() {
            return common.counters.passed_over += 1;
        }
        let Ok(mut receive) = self.take_receive(common) else {
            return common.counters.passed_over += 1;
        };
        let len = DATAGRAM_HEADER + packet.payload.len();
        let memory = &mut receive.memory;
        let (header, keys) = (network_header(flow), &common.keys);
        let put = memory.room() >= len as u64
            && scatter(memory, 0, &header[..], keys, self.domain).is_ok()
            && scatter(memory, DATAGRAM_HEADER, packet.payload, keys, self.domain).is_ok();
        if !put {
            self.responder.keep(receive);
            return common.counters.passed_over += 1;
        }
        let misnamed = planted(Bug::MisnamesSenders).then_some(self.number());
        let done = Done::ReceivedDatagram { source: misnamed.unwrap_or(deth.source) };
        let solicited = packet.headers.bth.solicited();
        let message = Message { done, len: len as u32, attached, solicited };
        self.complete_receive(receive, message, common);
    }
}

/// Gives a datagram to the device.
fn push<O: Outbox>(
    common: &Common,
    outbox: &mut O,
    domain: super::Domain,
    mtu: PathMtu,
    (to, headers): (AddressId, Headers),
    posted: &super::queues::Posted,
) -> Result<u64, Stop> {
    let most = mtu.bytes();
    if posted.len as usize > most {
        let cause = Cause::LongDatagram { len: posted.len, most: most as u16 };
        return Err(Stop::Refused(cause));
    }
    let Some(path) = common.addresses.get(to) else {
        return Err(Stop::Refused(Cause::NoAddress));
    };
    let data = &posted.request.data;
    let pushed = match data.bytes() {
        Some(bytes) => outbox.push(path, headers, bytes),
        None => {
            let range = 0..posted.len as usize;
            let payload = gather(&common.keys, domain, data.segments(), range);
            outbox.push(path, headers, payload.map_err(Stop::Refused)?)
        }
    };
    pushed.map_err(|_| Stop::Turn(Turn::DeviceFull))
}

const _: () = assert!(DATAGRAM_HEADER == Ipv6::LEN);
