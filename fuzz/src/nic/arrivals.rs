//! What arrives: by a network or a link, whole or not.

use doorbell_core::encap::{Opener, PathId, Version};
use doorbell_core::nic::{Counters, Flow, Inbox, receive_frame};
use doorbell_core::wire::{Ethernet, Headers, Ipv4, Ipv6, Packet, Qpn, Service};

use super::super::input::Input;
use super::judge::{Arrived, refused};
use super::packets::{self, Target};
use super::paths::{MTU, PAIRS, path_from, path_to, same_host};
use super::reports;
use super::world::World;

/// The network header of a frame, as it stands in front of a datagram.
fn network_header(version: Version, frame: &[u8]) -> [u8; Ipv6::LEN] {
    let mut header = [0; Ipv6::LEN];
    match version {
        Version::V2Ipv4 => {
            let ip = &frame[Ethernet::LEN..][..Ipv4::LEN];
            header[Ipv6::LEN - Ipv4::LEN..].copy_from_slice(ip);
        }
        _ => header.copy_from_slice(&frame[Ethernet::LEN..][..Ipv6::LEN]),
    }
    header
}

impl World {
    fn target(&self, index: usize) -> Target {
        let pair = &self.pairs[index];
        Target {
            qpn: pair.number(),
            service: pair.service,
            expected: self.port.lines[index].expected,
            sent: self.port.sent[index],
            within: pair.within,
            selective: self.port.lines[index].selective,
        }
    }

    pub(super) fn receive(&mut self, index: usize, input: &mut Input<'_>) {
        let target = self.target(index);
        let (headers, payload) = match target.selective && input.u8() < 56 {
            true => reports::acknowledgement(input, &target),
            false => packets::packet(input, &target, &self.port.memory),
        };
        self.deliver(index, headers, &payload, input);
    }

    /// An answer to what the queue pair has asked for, or the next that has; and to a part of it
    /// only now and then.
    pub(super) fn receive_answer(&mut self, index: usize, input: &mut Input<'_>) {
        let lines = &self.port.lines;
        let asks = |index: &usize| !lines[*index].asked.is_empty();
        let Some(index) = (index..PAIRS).chain(0..index).find(asks) else { return };
        let Some(asked) = self.port.lines[index].asked.pop_front() else { return };
        let most = if input.u8() < 200 { u32::MAX } else { u32::from(input.u8() & 3) };
        let qpn = self.pairs[index].number();
        for part in 0..MTU.packets(asked.len).min(most) {
            let (headers, payload) = packets::answer(input, qpn, asked, part);
            self.deliver(index, headers, &payload, input);
        }
    }

    /// Gives a packet to the NIC as a frame: most come the right way, and as they were sent.
    fn deliver(&mut self, index: usize, headers: Headers, payload: &[u8], input: &mut Input<'_>) {
        let strange = input.u8();
        let from = if strange < 250 { index } else { usize::from(strange) % PAIRS };
        let back = &self.pairs[from].back;
        let mut frame = packets::frame(back, headers, payload);
        if strange == 249 {
            let at = usize::from(input.u16()) % frame.len();
            frame[at] ^= 1 << (input.u8() & 7);
        }
        // A bit that routers may change does not make it another packet.
        let whole = strange != 249 || {
            let mut opener = Opener::default();
            let arrival = opener.open(&frame, None);
            arrival.is_ok_and(|mut arrival| matches!(arrival.next(), Some(Ok(_))))
        };
        let arrived =
            Arrived { headers, payload, network: network_header(back.outer().version(), &frame) };
        let before = self.expect(index, &arrived);
        receive_frame(&mut self.nic, &mut self.opener, &frame, None);
        let taken = self.judge(index, &arrived, &before);
        assert!(!taken || whole, "it was damaged");
        let right = same_host(from, index) || self.pairs[index].service == Service::Ud;
        assert!(!taken || right, "from another peer");
    }

    /// A packet without outer headers, whatever its pad count says.
    pub(super) fn receive_by_link(&mut self, index: usize, input: &mut Input<'_>) {
        let target = self.target(index);
        let (headers, payload) = packets::packet(input, &target, &self.port.memory);
        let odd = input.u8();
        let link = if odd < 192 { index } else { usize::from(odd) % PAIRS };
        let flow = Flow::Link(path_to(link).id());
        let arrived = Arrived { headers, payload: &payload, network: [0; Ipv6::LEN] };
        let before = self.expect(index, &arrived);
        self.nic.packet(flow, &Packet { headers, payload: &payload[..] });
        let taken = self.judge(index, &arrived, &before);
        // What is not taken must not pass for done. Only what came behind a refused packet is not
        // refused, too.
        let info = headers.bth.opcode().info();
        let request = info.service == Service::Rc && !info.is_response();
        let after = self.nic.counters();
        let behind = after.out_of_sequence > before.counters.out_of_sequence;
        let told = taken || behind || self.nic.unsent_responses()(path_to(link).id());
        assert!(told || !request || !self.lossless, "nobody hears of {headers:?}");
    }

    /// A link says that packets were not taken over there.
    pub(super) fn receive_notice(&mut self, input: &mut Input<'_>) {
        let path = usize::from(input.u8()) % PAIRS;
        let headers = packets::notice(input, path, self.port.sent[path]);
        let flow = Flow::Link(PathId(u32::from(input.u8()) % PAIRS as u32));
        self.nic.packet(flow, &Packet { headers, payload: &[][..] });
    }

    /// Bytes that are no packet, as a frame or in one whose ICRC holds.
    pub(super) fn receive_noise(&mut self, index: usize, input: &mut Input<'_>) {
        let len = usize::from(input.u8());
        let segment = Some(input.u16()).filter(|&segment| segment & 1 == 0);
        let bytes = input.bytes(len);
        receive_frame(&mut self.nic, &mut self.opener, bytes, segment);
        let frame = packets::sealed(&path_from(index), bytes);
        let mut packets = Opener::default();
        let found = packets.open(&frame, None).ok().and_then(|mut arrival| arrival.next()?.ok());
        let Some(packet) = found else {
            let Counters { malformed, .. } = *self.nic.counters();
            receive_frame(&mut self.nic, &mut self.opener, &frame, None);
            return assert!(
                self.nic.counters().malformed > malformed,
                "no packet, and none counted"
            );
        };
        let Packet { headers, payload } = packet;
        let for_whom = |qpn: Qpn| self.pairs.iter().position(|pair| pair.qpn == Some(qpn));
        match for_whom(headers.bth.destination()) {
            // What answers bring is known by their numbers, and that of noise is not.
            Some(_) if headers.bth.opcode().info().is_response() => {}
            Some(index) => {
                let arrived = Arrived {
                    headers,
                    payload,
                    network: network_header(self.pairs[index].back.outer().version(), &frame),
                };
                let before = self.expect(index, &arrived);
                receive_frame(&mut self.nic, &mut self.opener, &frame, None);
                self.judge(index, &arrived, &before);
            }
            // Management datagrams come by a way of their own.
            None if headers.bth.destination() == Qpn::GSI => {}
            None => {
                let before = refused(self.nic.counters());
                receive_frame(&mut self.nic, &mut self.opener, &frame, None);
                assert!(refused(self.nic.counters()) > before, "nobody is there to take it");
            }
        }
    }
}
