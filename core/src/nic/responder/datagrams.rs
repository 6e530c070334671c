//! Datagrams, the responder's side.

use crate::encap::Outer;
use crate::nic::device::flow::Flow;
use crate::nic::requests::completion::Done;
use crate::nic::requests::gather::scatter;
use crate::nic::requests::work_request::Attachment;
use crate::nic::responder::outcomes::ReceivedMessage;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::payload::Payload;
use crate::planted::{Bug, planted};
use crate::wire::{Extensions, Ipv4, Ipv6, Packet};

/// How many bytes stand in front of a datagram in its receive, for its network header.
pub const DATAGRAM_HEADER: usize = 40;

/// Returns the bytes in front of a datagram in its receive: the GRH or IPv6 header, or an IPv4
/// header in the last half. A packet that comes by a link has neither.
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
    /// Takes a datagram, or drops it.
    #[inline(never)]
    pub fn receive_datagram<P: Payload>(
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
            self.responder.keep_receive(receive);
            return common.counters.passed_over += 1;
        }
        let misnamed = planted(Bug::MisnamesSenders).then_some(self.number());
        let done = Done::ReceivedDatagram { source: misnamed.unwrap_or(deth.source) };
        let solicited = packet.headers.bth.solicited();
        let message = ReceivedMessage { done, len: len as u32, attached, solicited };
        self.complete_receive(receive, message, common);
    }
}

const _: () = assert!(DATAGRAM_HEADER == Ipv6::LEN);
