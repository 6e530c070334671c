//! Messages that the guest stops sending, and signs that are missing, in frames made by hand.

use std::net::{IpAddr, Ipv4Addr};

use doorbell_core::encap::ICRC_LEN;
use doorbell_core::wire::{Bth, Credits, DmaLength, Mac, Msn, Nak, RemoteAddr, Reth, Rkey};

use super::*;

const GUEST: Ipv4Addr = Ipv4Addr::new(10, 219, 0, 2);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 219, 0, 1);
const GUESTS_PAIR: Qpn = Qpn::new(0x2A);
const PEERS_PAIR: Qpn = Qpn::new(0x04_357B);
/// The PSN of the first packet: those of a message go over the end of the numbers.
const FIRST: Psn = Psn::new(0xFF_FFFE);

/// A frame with a packet of these headers and no payload, which nobody looks at.
fn frame(way: Way, opcode: Opcode, psn: Psn, extensions: Extensions) -> Vec<u8> {
    let ((from, to), pair) = match way {
        Way::FromGuest => ((GUEST, PEER), PEERS_PAIR),
        Way::ToGuest => ((PEER, GUEST), GUESTS_PAIR),
    };
    let headers = Headers { bth: Bth::new(opcode, pair, psn), extensions };
    let packet = &headers.to_bytes()[..headers.len()];
    let [from, to] = [from, to].map(|ip| (IpAddr::from(ip), 4791).into());
    let outer = Outer::v2((Mac([2; 6]), Mac([4; 6])), from, to).expect("of one family");
    let outer = outer.around(packet.len() + ICRC_LEN);
    let icrc = outer.icrc(packet).to_le_bytes();
    [&outer.to_bytes()[..outer.len()], packet, &icrc].concat()
}

/// A link on which frames are seen, at a time that the test sets.
struct Scene {
    sender: Sender,
    now: Instant,
    harmed: u64,
}

impl Scene {
    fn new() -> Self {
        Self { sender: Sender::default(), now: Instant::now(), harmed: 0 }
    }

    /// The guest sends the packet of a message that is so many packets behind the first.
    fn sends(&mut self, opcode: Opcode, place: u32) {
        let frame = frame(Way::FromGuest, opcode, FIRST.add(place), Extensions::None);
        self.sender.see(Way::FromGuest, &frame, self.now, self.harmed);
    }

    /// Somebody answers a request.
    fn answers(&mut self, way: Way, syndrome: Syndrome, psn: Psn) {
        let extensions = Extensions::Aeth(Aeth { syndrome, msn: Msn::new(0) });
        let frame = frame(way, Opcode::RcAcknowledge, psn, extensions);
        self.sender.see(way, &frame, self.now, self.harmed);
    }

    /// The peer acknowledges the packet that is so many packets behind the first.
    fn acknowledges(&mut self, place: u32) {
        self.answers(Way::ToGuest, Syndrome::ACK, FIRST.add(place));
    }

    /// The guest answers after a time whether it is there.
    fn is_there_after(&mut self, time: Duration) {
        self.now += time;
        self.answers(Way::FromGuest, Syndrome::ACK, Psn::new(7));
    }

    /// The guest sends four packets of a message that has more.
    fn sends_four(&mut self) {
        self.sends(Opcode::RcSendFirst, 0);
        (1..4).for_each(|place| self.sends(Opcode::RcSendMiddle, place));
    }

    fn stall(&self) -> Option<Stall> {
        self.sender.stall(self.harmed)
    }
}

const LATER: Duration = Duration::from_secs(15);

#[test]
fn a_guest_that_stops_in_mid_message_with_all_acknowledged_and_answers_has_stalled() {
    let mut scene = Scene::new();
    scene.sends_four();
    // Not for every packet is there an acknowledgement.
    scene.acknowledges(1);
    scene.acknowledges(3);
    scene.is_there_after(LATER);
    let stall = scene.stall().expect("the guest has stalled");
    let expected = Stall {
        peer: PEER.into(),
        destination: PEERS_PAIR,
        first: FIRST,
        last: FIRST.add(3),
        silence: LATER,
    };
    assert_eq!(stall, expected);
    let told = stall.to_string();
    assert!(told.contains("all 4 packets") && told.contains("PSN 1, "), "{told}");
}

#[test]
fn a_guest_that_stops_after_the_first_packet_of_a_write_has_stalled() {
    let mut scene = Scene::new();
    let (address, rkey, length) = (RemoteAddr(0), Rkey(0), DmaLength(512));
    let reth = Extensions::Reth(Reth { address, rkey, length });
    let first = frame(Way::FromGuest, Opcode::RcWriteFirst, FIRST, reth);
    scene.sender.see(Way::FromGuest, &first, scene.now, 0);
    scene.acknowledges(0);
    scene.is_there_after(LATER);
    assert_eq!(scene.stall().map(|stall| (stall.first, stall.last)), Some((FIRST, FIRST)));
}

#[test]
fn a_guest_whose_last_packet_is_unacknowledged_has_not_stalled() {
    let mut scene = Scene::new();
    scene.sends_four();
    scene.acknowledges(2);
    scene.is_there_after(LATER);
    assert_eq!(scene.stall(), None);
    scene.acknowledges(3);
    scene.sends(Opcode::RcSendMiddle, 4);
    scene.is_there_after(LATER);
    assert_eq!(scene.stall(), None);
}

#[test]
fn a_guest_that_has_sent_the_whole_message_has_not_stalled() {
    let mut scene = Scene::new();
    scene.sends_four();
    scene.acknowledges(3);
    scene.sends(Opcode::RcSendLast, 4);
    scene.acknowledges(4);
    scene.is_there_after(LATER);
    assert_eq!(scene.stall(), None);
    scene.sends(Opcode::RcSendOnly, 5);
    scene.acknowledges(5);
    scene.is_there_after(LATER);
    assert_eq!(scene.stall(), None);
}

#[test]
fn a_guest_of_which_a_packet_was_lost_or_repeated_has_not_stalled() {
    for next in [5, 3, 0] {
        let mut scene = Scene::new();
        scene.sends_four();
        scene.sends(Opcode::RcSendMiddle, next);
        scene.acknowledges(next);
        scene.is_there_after(LATER);
        assert_eq!(scene.stall(), None, "{next}");
    }
}

#[test]
fn a_guest_that_was_not_plainly_acknowledged_has_not_stalled() {
    let credits = Credits::at_most(0);
    for syndrome in [Syndrome::nak(Nak::SequenceError), Syndrome::ack_with(credits)] {
        let mut scene = Scene::new();
        scene.sends_four();
        scene.answers(Way::ToGuest, syndrome, FIRST.add(3));
        scene.acknowledges(3);
        scene.is_there_after(LATER);
        assert_eq!(scene.stall(), None, "{syndrome:?}");
    }
    let mut scene = Scene::new();
    scene.sends_four();
    let aeth = Extensions::Aeth(Aeth { syndrome: Syndrome::ACK, msn: Msn::new(0) });
    let mut damaged = frame(Way::ToGuest, Opcode::RcAcknowledge, FIRST.add(3), aeth);
    *damaged.last_mut().expect("it has an ICRC") ^= 1;
    scene.sender.see(Way::ToGuest, &damaged, scene.now, 0);
    scene.is_there_after(LATER);
    assert_eq!(scene.stall(), None);
}

#[test]
fn a_guest_that_was_silent_for_a_short_time_or_does_not_answer_has_not_stalled() {
    let mut scene = Scene::new();
    scene.sends_four();
    scene.acknowledges(3);
    scene.now += LATER;
    assert_eq!(scene.stall(), None, "it may be gone altogether");
    let mut scene = Scene::new();
    scene.sends_four();
    scene.acknowledges(3);
    scene.is_there_after(Duration::from_secs(1));
    assert_eq!(scene.stall(), None);
}

#[test]
fn a_guest_has_not_stalled_where_frames_came_to_harm_since_the_message_began() {
    let mut scene = Scene::new();
    scene.harmed = 3;
    scene.sends_four();
    scene.acknowledges(3);
    scene.is_there_after(LATER);
    assert!(scene.stall().is_some(), "harm from before does not count");
    scene.harmed += 1;
    assert_eq!(scene.stall(), None);
}
