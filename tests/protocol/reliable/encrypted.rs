//! Encrypted connections, and somebody on the path who reads, repeats, changes and forges packets:
//! nothing that the peer has not sent changes memory or state, and nothing secret is in the clear.

use std::collections::BTreeSet;
use std::time::Duration;

use doorbell_core::cipher::Keys;
use doorbell_core::encap::{Opener, Path};
use doorbell_core::memory::Buf;
use doorbell_core::nic::*;
use doorbell_core::pcap::Reader;
use doorbell_core::wire::{
    Aeth, AtomicEth, AtomicValue, Bth, DmaLength, Extensions, Headers, Imm, Layout, Msn, Nak,
    Opcode, Packet, Psn, Qpn, RemoteAddr, Reth, Rkey, Syndrome,
};
use doorbell_kit::effort;
use doorbell_secure::{Suite, cipher};
use doorbell_simulation::{Fabric, Faults, NodeId};

use crate::reliable::common::{End, Setup, Two, at, content, inline, outcomes};
use crate::reliable::random::dice::Dice;

/// The keys of one end of a connection, whose number gives both directions their secrets.
fn keys(connection: u8, suite: Suite, is_first: bool) -> Keys {
    let secrets = [0, 1].map(|direction| cipher(suite, &[2 * connection + direction; 32]));
    let [there, back] = secrets;
    if is_first { Keys::new(there, back) } else { Keys::new(back, there) }
}

/// Encrypts a connection, one end of which is settled after the other.
fn encrypt(
    connection: u8,
    suite: Suite,
    selective: bool,
) -> impl FnMut(&mut Connection, &mut Sending) {
    let mut is_first = true;
    move |ends, sending| {
        let link = Path::link(ends.path.id());
        let path = std::mem::replace(&mut ends.path, link);
        ends.path = path.encrypted(keys(connection, suite, is_first)).expect("it is no link");
        (ends.selective, sending.selective) = (selective, selective);
        is_first = false;
    }
}

const SECRET: &[u8] = b"what nobody else may read";

/// Every kind of request, and what is in the peer's memory at the end.
fn uses_everything(two: &mut Two) {
    let (region, lent) = two.b.open(&mut two.fabric, 16384);
    let long = SECRET.repeat(300);
    two.b.receives(3, 8192);
    let room = Buf::with_capacity(long.len());
    two.a.post(WorkRequest::write(1, at(&lent, 8), lent.rkey, Buf::from(&long[..])));
    two.a.post(WorkRequest::send(2, Buf::from(&long[..])));
    two.a.post(WorkRequest::send(3, inline(SECRET)));
    two.a.post(WorkRequest::read(4, at(&lent, 8), lent.rkey, room));
    two.a.post(WorkRequest::fetch_add(5, at(&lent, 0), lent.rkey, 7));
    let last = WorkRequest::write(6, at(&lent, 16000), lent.rkey, inline(SECRET));
    two.a.post(last.with_imm(Imm(5)));
    let (done, received) = two.run(6, 3);
    assert!(outcomes(&done).iter().all(|(_, outcome)| outcome.is_ok()), "{done:?}");
    assert!(outcomes(&received).iter().all(|(_, outcome)| outcome.is_ok()), "{received:?}");
    let memory = content(&region);
    assert_eq!(&memory[8..8 + long.len()], long);
    assert_eq!(memory[..8], 7_u64.to_ne_bytes());
    assert!(memory[16000..].starts_with(SECRET));
}

#[test]
fn everything_works_encrypted_whatever_the_cable_does() {
    let faults = Faults { loss: 0.05, duplication: 0.05, ..Faults::default() };
    let bad = Setup::default().cable.with_faults(faults);
    for suite in Suite::ALL {
        for (cable, selective) in [(Setup::default().cable, false), (bad, false), (bad, true)] {
            let setup = Setup { cable, ..Setup::default() };
            let mut two = setup.connected(encrypt(1, suite, selective));
            two.fabric.network.start_recording(1 << 24);
            uses_everything(&mut two);
            let (a, b) = two.counters();
            assert_eq!((a.not_authentic, b.not_authentic), (0, 0));
            let seen = two.fabric.network.pcap();
            for secret in [SECRET, &SECRET[..8]] {
                assert!(!seen.windows(secret.len()).any(|part| part == secret), "in the clear");
            }
        }
    }
}

#[test]
fn keys_follow_each_other_without_a_pause() {
    let mut two = Setup::default().connected(encrypt(1, Suite::Aes128Gcm, true));
    let (_, lent) = two.b.open(&mut two.fabric, 64);
    for round in 0..20 {
        for id in 0..10 {
            two.a.post(WorkRequest::write(id, at(&lent, 0), lent.rkey, inline(&[round; 8])));
        }
        let end = if round % 2 == 0 { &two.a } else { &two.b };
        assert!(two.fabric.nic(end.node).renew_keys(end.qpn));
        let (done, _) = two.run(10, 0);
        assert!(done.iter().all(|done| done.outcome.is_ok()));
    }
    let (a, b) = two.counters();
    assert_eq!((a.not_authentic + b.not_authentic, a.retransmitted), (0, 0));
}

/// Somebody on the path, who has seen packets of several connections between two nodes.
struct Adversary {
    dice: Dice,
    /// The packets that were seen, each with the queue pair that it went to.
    seen: Vec<(Qpn, Vec<u8>)>,
    /// The numbers that were used, each with the queue pair that its packet went to.
    numbers: BTreeSet<(Qpn, u64)>,
    /// How much of the recording was read.
    read: usize,
}

impl Adversary {
    /// Reads what has passed since.
    fn watch(&mut self, fabric: &mut Fabric) {
        let recorded = fabric.network.pcap();
        let reader = Reader::new(&recorded).expect("a recording");
        for record in reader.skip(self.read) {
            let frame = record.expect("a record").data;
            self.read += 1;
            let mut opener = Opener::default();
            let Ok(mut arrival) = opener.open(frame, None) else { continue };
            if let Some(Ok(packet)) = arrival.next() {
                let bth = packet.headers.bth;
                assert_eq!(bth.opcode(), Opcode::Encrypted, "in the clear");
                let number = packet.payload[..8].try_into().expect("it begins with a number");
                let is_new = self.numbers.insert((bth.destination(), u64::from_be_bytes(number)));
                assert!(is_new, "a number was used twice");
                let sealed = [&bth.to_bytes()[..], packet.payload].concat();
                self.seen.push((bth.destination(), sealed));
            }
        }
    }

    /// Sends something to one of the queue pairs, with the right addresses.
    fn strike(&mut self, fabric: &mut Fabric, ends: &[(NodeId, Qpn); 4], rkey: Rkey) {
        let (node, qpn) = self.dice.pick(ends);
        let psn = fabric.nic(node).expected_psn(qpn).expect("it is there");
        let psn = psn.add(self.dice.below(3) as u32);
        if self.seen.is_empty() || self.dice.percent(40) {
            return self.forge(fabric, (node, qpn), psn, rkey);
        }
        let (to, mut bytes) = self.seen[self.dice.below(self.seen.len())].clone();
        match self.dice.below(3) {
            // As it was: to whom it went, or to somebody else.
            0 => {}
            // One bit, but for those that switches may change.
            1 => {
                let at = self.dice.below(bytes.len());
                if at != 4 {
                    bytes[at] ^= 1 << self.dice.below(8);
                }
            }
            // The number of another connection, or of another packet.
            _ => bytes[8..12].copy_from_slice(&psn.get().to_be_bytes()),
        }
        let Some((head, behind)) = bytes.split_first_chunk() else { return };
        let Ok(bth) = Bth::from_bytes(head) else { return };
        // To whom it went, or to another queue pair.
        let went = ends.iter().find(|(_, qpn)| *qpn == to).filter(|_| self.dice.percent(50));
        let (node, qpn) = *went.unwrap_or(&(node, qpn));
        let bth = Bth::new(bth.opcode(), qpn, bth.psn())
            .with_pad(bth.pad())
            .with_ack_request(bth.ack_request())
            .with_solicited(bth.solicited());
        if bth.opcode().layout() == Layout::None {
            inject(fabric, node, Headers { bth, extensions: Extensions::None }, behind);
        }
    }

    /// Forges a packet of any opcode, in the clear, with the numbers of the moment.
    fn forge(&mut self, fabric: &mut Fabric, (node, qpn): (NodeId, Qpn), psn: Psn, rkey: Rkey) {
        let reth = Reth { address: RemoteAddr(0), rkey, length: DmaLength(8) };
        let value = AtomicValue(1);
        let add = AtomicEth { address: RemoteAddr(0), rkey, swap_or_add: value, compare: value };
        let syndromes = [Syndrome::from_code(0x1F), Syndrome::nak(Nak::RemoteAccess)];
        let aeth = Aeth { syndrome: self.dice.pick(&syndromes), msn: Msn::new(1) };
        let (opcode, extensions) = self.dice.pick(&[
            (Opcode::RcWriteOnly, Extensions::Reth(reth)),
            (Opcode::RcSendOnly, Extensions::None),
            (Opcode::RcReadRequest, Extensions::Reth(reth)),
            (Opcode::RcFetchAdd, Extensions::Atomic(add)),
            (Opcode::RcAcknowledge, Extensions::Aeth(aeth)),
            (Opcode::RcReadResponseOnly, Extensions::Aeth(aeth)),
            (Opcode::Cnp, Extensions::None),
            (Opcode::Encrypted, Extensions::None),
        ]);
        let payload: &[u8] = match opcode {
            Opcode::RcWriteOnly | Opcode::RcSendOnly | Opcode::RcReadResponseOnly => &[0xEE; 8],
            Opcode::Cnp => &[0; 16],
            // Of any length, also too short for a number and a tag, and longer than any packet.
            Opcode::Encrypted => &[0xEE; 5000][..self.dice.pick(&[0, 7, 8, 23, 24, 25, 60, 5000])],
            _ => &[],
        };
        let bth = Bth::new(opcode, qpn, psn).with_ack_request(true);
        inject(fabric, node, Headers { bth, extensions }, payload);
    }
}

/// Gives a packet to a node as if it had come from the peer's addresses.
fn inject(fabric: &mut Fabric, node: NodeId, headers: Headers, payload: &[u8]) {
    let flow = Flow::Link(fabric.path(node, 1 - node).id());
    fabric.turn(node);
    fabric.nic(node).packet(flow, &Packet { headers, payload });
    fabric.turn(node);
}

#[test]
fn whatever_somebody_on_the_path_sends_nothing_changes() {
    for seed in 0..effort(40, 2000) {
        let mut dice = Dice::new(seed);
        let suite = dice.pick(&Suite::ALL);
        let setup = Setup { seed, ..Setup::default() };
        let mut two = setup.connected(encrypt(1, suite, dice.percent(50)));
        // Another connection of the same two nodes, to whose queue pairs packets are moved.
        let others = [two.a.node, two.b.node].map(|node| End::new(&mut two.fabric, node, 8, 16));
        let [c, d] = others.each_ref().map(|end| (end.node, end.qpn));
        two.fabric.connect(c, d, setup.mtu, encrypt(3, suite, false));
        let ends = [(two.a.node, two.a.qpn), (two.b.node, two.b.qpn), c, d];
        two.fabric.network.start_recording(1 << 24);

        let (region, lent) = two.b.open(&mut two.fabric, 4096);
        let mut adversary = Adversary { dice, seen: Vec::new(), numbers: BTreeSet::new(), read: 0 };
        for round in 0..30_u64 {
            let bytes = [round as u8 + 1; 1500];
            two.a.post(WorkRequest::write(round, at(&lent, 8), lent.rkey, Buf::from(&bytes[..])));
            two.a.post(WorkRequest::fetch_add(1000 + round, at(&lent, 0), lent.rkey, 1));
            for _ in 0..4 {
                adversary.strike(&mut two.fabric, &ends, lent.rkey);
                two.run_for(Duration::from_micros(3));
            }
            let (done, _) = two.run(2, 0);
            assert!(done.iter().all(|done| done.outcome.is_ok()), "seed {seed}: {done:?}");
            adversary.watch(&mut two.fabric);
            let memory = content(&region);
            assert!(memory[8..1508].iter().all(|&byte| byte == round as u8 + 1), "seed {seed}");
            assert_eq!(memory[..8], (round + 1).to_ne_bytes(), "seed {seed}: each was added once");
            assert!(memory[1508..].iter().all(|&byte| byte == 0), "seed {seed}");
        }
        let (a, b) = two.counters();
        assert!(a.not_authentic + b.not_authentic > 0, "seed {seed}");
        assert!(a.came_before + b.came_before > 0, "seed {seed}");
        for (node, qpn) in ends {
            assert_eq!(two.fabric.nic(node).state(qpn), Some(State::ReadyToSend), "seed {seed}");
        }
    }
}
