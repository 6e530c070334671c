//! The device: it takes as many packets as it is told to, and checks each.

use std::collections::{BTreeMap, BTreeSet};

use doorbell_core::encap::{Full, Path, PathId};
use doorbell_core::nic::{Outbox, Transport};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{
    AtomicEth, AtomicValue, Extensions, Headers, Nak, Opcode, Operation, Psn, Qpn, Reth, Rkey,
    Service, Verdict, cm::Mad,
};

use super::lines::{Asked, Line, Sought, named};
use super::memory::{Memory, Word};
use super::paths::{MTU, PAIRS, peer, transport};

/// The packets that the device has taken in a turn.
#[derive(Default)]
pub struct Pushed {
    pub requests: usize,
    /// The requests and datagrams that no peer answers.
    pub unanswered: usize,
    pub answers: usize,
    /// The first byte of each management datagram.
    pub managing: Vec<u8>,
    /// The queue pairs that keep packets and have sent an acknowledgement without naming them.
    pub silent: Vec<usize>,
}

pub struct Port {
    /// The number of packets for which the device has room.
    pub room: usize,
    pub pushed: Pushed,
    pub memory: Memory,
    /// The sequence number of the newest request along each path.
    pub sent: [Psn; PAIRS],
    pub lines: [Line; PAIRS],
    /// The first sequence number of each request that asks for something.
    pub first: BTreeMap<u64, Psn>,
    /// The numbers of fenced requests, which wait for those before them.
    pub fenced: BTreeSet<u64>,
    tickets: [u64; PAIRS],
    delivered: [u64; PAIRS],
}

impl Port {
    pub fn new(memory: Memory) -> Self {
        Self {
            room: 0,
            pushed: Pushed::default(),
            memory,
            sent: [Psn::new(0); PAIRS],
            lines: Default::default(),
            first: BTreeMap::new(),
            fenced: BTreeSet::new(),
            tickets: [0; PAIRS],
            delivered: [0; PAIRS],
        }
    }

    /// Notes that the peer has received all packets that left along a path, except the last
    /// `all_but`.
    pub fn deliver(&mut self, path: usize, all_but: u64) {
        let taken = self.tickets[path].saturating_sub(all_but);
        self.delivered[path] = self.delivered[path].max(taken);
    }

    fn request(&mut self, index: usize, headers: &Headers) {
        let (psn, info) = (headers.bth.psn(), headers.bth.opcode().info());
        match info.service {
            Service::Rc => self.pushed.requests += 1,
            _ => self.pushed.unanswered += 1,
        }
        let line = &mut self.lines[index];
        let (address, len, asked) = match headers.extensions {
            // A probe of the peer.
            Extensions::Reth(Reth { rkey: Rkey(0), .. }) => return,
            Extensions::Reth(Reth { address, length, .. })
            | Extensions::RethImm(Reth { address, length, .. }, _)
            | Extensions::RethMetadata(Reth { address, length, .. }, _) => {
                let reads = info.operation == Operation::ReadRequest;
                let asked = Asked { psn, len: length.0, atomic: false };
                (address, length.0, reads.then_some(asked))
            }
            Extensions::Atomic(AtomicEth { address, .. }) => {
                (address, 0, Some(Asked { psn, len: 0, atomic: true }))
            }
            _ => {
                line.sent(psn);
                self.sent[index] = psn;
                return;
            }
        };
        let (id, offset) = named(address);
        let waits = self.fenced.contains(&id) && line.waits_before(id);
        assert!(!waits, "{id} was to wait: {headers:?}");
        let last = psn.add(MTU.packets(len) - 1);
        match asked {
            Some(asked) => {
                let first = psn.add(Psn::MAX.get() + 1 - offset / MTU.bytes() as u32);
                let known = *self.first.entry(id).or_insert(first);
                assert_eq!(known, first, "what is asked for again has the same number");
                line.ask(id, asked);
                line.sent(last);
            }
            None => {
                if info.service == Service::Rc {
                    line.write(id, last);
                }
                line.sent(psn);
            }
        }
        self.sent[index] = psn;
    }

    /// Checks an answer to a peer: a read's bytes must be in the memory and allowed, an atomic
    /// operation's word must be the one found.
    fn answer(&mut self, index: usize, headers: &Headers, payload: &[u8]) {
        self.pushed.answers += 1;
        assert_eq!(transport(index), Transport::Reliable, "no others answer: {headers:?}");
        let (psn, info) = (headers.bth.psn(), headers.bth.opcode().info());
        self.check_verdict(index, headers);
        if let Extensions::AethReport(..) = headers.extensions {
            self.check_bits(index, headers, payload);
        }
        let line = &self.lines[index];
        if info.operation == Operation::ReadResponse {
            let ends = (info.ends(), line.selective);
            let is_it = |sought: &Sought| sought.is_answered(psn, ends, payload, &self.memory);
            assert!(line.sought.iter().rev().any(is_it), "nobody may read that: {headers:?}");
        }
        if let Extensions::AethAtomicAck(_, AtomicValue(before)) = headers.extensions {
            let found = line.found.iter().rev().find(|(other, _)| *other == psn);
            let (_, word) = found.expect("an operation that was carried out");
            let right = matches!(word, Word::Unknown)
                || matches!(word, Word::Known(word) if *word == before);
            assert!(right, "an operation has found {before}, and not {word:?}");
        }
    }

    /// Checks an acknowledgement that leaves: only requests that have come are acknowledged, and a
    /// retry is asked only for the request that is expected.
    fn check_verdict(&self, index: usize, headers: &Headers) {
        let ahead = headers.bth.psn().distance_from(self.lines[index].expected);
        let (Extensions::Aeth(aeth)
        | Extensions::AethReport(aeth, _)
        | Extensions::AethAtomicAck(aeth, _)) = headers.extensions
        else {
            return assert!(ahead < 0, "what has not come is answered: {headers:?}");
        };
        match aeth.syndrome.verdict() {
            Verdict::Ack(_) => assert!(ahead < 0, "what has not come is answered: {headers:?}"),
            Verdict::ReceiverNotReady(_) | Verdict::Nak(Nak::SequenceError) => {
                assert_eq!(ahead, 0, "another is expected: {headers:?}");
            }
            // A request that was taken may be refused later, if its memory was deregistered
            // meanwhile.
            Verdict::Nak(_) => assert!(ahead <= 0, "what has not come is refused: {headers:?}"),
            Verdict::Reserved => panic!("no verdict: {headers:?}"),
        }
    }

    /// Checks an acknowledgement with a report: a queue pair that keeps packets sends it, and it
    /// names what is kept beyond the missing packet, and nothing else.
    fn check_bits(&mut self, index: usize, headers: &Headers, bits: &[u8]) {
        let (line, beyond) = (&self.lines[index], headers.bth.psn().add(1));
        let (Extensions::AethReport(aeth, _), true) = (headers.extensions, line.selective) else {
            panic!("a report that nobody understands: {headers:?}")
        };
        assert!(matches!(aeth.syndrome.verdict(), Verdict::Ack(_)), "{headers:?}");
        if bits.is_empty() {
            // The word of a read that came, which is not answered yet, names no packets.
            if beyond == line.expected && !line.held.is_empty() {
                self.pushed.silent.push(index);
            }
            return;
        }
        assert_eq!(beyond, line.expected, "bits from another packet on: {headers:?}");
        let is_named = |bit: u32| bits[bit as usize / 8] & 1 << (bit % 8) != 0;
        let named = (0..8 * bits.len() as u32).filter(|&bit| is_named(bit));
        let named: BTreeSet<u32> = named.map(|bit| beyond.add(1 + bit).get()).collect();
        assert!(named.iter().eq(line.held.keys()), "{named:?} are told to be kept");
    }

    /// Checks a datagram that leaves: it goes to the address and the queue pair that its request
    /// names.
    fn datagram(&mut self, path: &Path, headers: &Headers, payload: &[u8]) {
        let destination = headers.bth.destination();
        if destination == Qpn::GSI {
            assert_eq!(payload.len(), Mad::LEN);
            return self.pushed.managing.push(payload[0]);
        }
        self.pushed.unanswered += 1;
        let (Extensions::Deth(deth) | Extensions::DethImm(deth, _)) = headers.extensions else {
            panic!("no datagram: {headers:?}");
        };
        assert_eq!(destination, Qpn::new(deth.qkey.0), "a datagram names whom it is for");
        assert!(path.id().0 as usize >= PAIRS, "a datagram goes to an address");
    }
}

impl Outbox for Port {
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        let Some(room) = self.room.checked_sub(1) else { return Err(Full) };
        self.room = room;
        let (bth, info) = (&headers.bth, headers.bth.opcode().info());
        assert!(info.payload.allows(payload.len(), MTU.bytes()), "{headers:?}");
        let bytes = &mut [0; 256][..payload.len()];
        payload.copy_to(bytes);
        if info.service == Service::Ud {
            self.datagram(path, &headers, bytes);
            return Ok(0);
        }
        let index = path.id().0 as usize;
        self.tickets[index] += 1;
        let ticket = Ok(self.tickets[index]);
        // Notices to the link itself are addressed to queue pair 0.
        if bth.destination() == Qpn::new(0) {
            let notice =
                matches!(bth.opcode(), Opcode::RcAcknowledge | Opcode::RcAtomicAcknowledge);
            assert!(notice, "{headers:?}");
            return ticket;
        }
        assert_eq!(bth.destination(), peer(index), "each path leads to its own peer: {headers:?}");
        match info.is_response() {
            true => self.answer(index, &headers, bytes),
            false => self.request(index, &headers),
        }
        ticket
    }

    fn flush(&mut self) {}

    fn delivered(&mut self, path: PathId) -> u64 {
        self.delivered[path.0 as usize]
    }
}
