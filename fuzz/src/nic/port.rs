//! The device: it takes as many packets as it is told to, and looks at what they say.

use std::collections::{BTreeMap, VecDeque};

use doorbell_core::encap::{Full, Path, PathId};
use doorbell_core::nic::{Domain, Outbox, Transport};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{
    AtomicEth, AtomicValue, Extensions, Headers, Opcode, Operation, Psn, Qpn, RemoteAddr, Reth,
    Rkey, Service, cm::Mad,
};

use super::memory::Memory;
use super::paths::{MTU, PAIRS, peer, transport};

/// What was taken since that was last asked.
#[derive(Default)]
pub struct Pushed {
    pub requests: usize,
    /// Those that nobody answers.
    pub unanswered: usize,
    pub answers: usize,
    /// The first byte of each management datagram.
    pub managing: Vec<u8>,
}

/// Something that a peer was asked for.
#[derive(Clone, Copy)]
pub struct Asked {
    pub psn: Psn,
    pub len: u32,
    pub atomic: bool,
}

/// A read that a peer has asked for.
pub struct Sought {
    pub psn: Psn,
    pub domain: Domain,
    pub reth: Reth,
}

/// What has gone along a queue pair's path, and may yet.
#[derive(Default)]
pub struct Line {
    /// What its peer has not answered.
    pub asked: VecDeque<Asked>,
    /// What its peer has read, and the words that it has found.
    pub sought: Vec<Sought>,
    pub found: Vec<(Psn, u64)>,
}

pub struct Port {
    /// How many more packets it takes.
    pub room: usize,
    pub pushed: Pushed,
    pub memory: Memory,
    /// The newest request that went along each path.
    pub sent: [Psn; PAIRS],
    pub lines: [Line; PAIRS],
    /// The first sequence number of each request that asks for something.
    pub first: BTreeMap<u64, Psn>,
    tickets: [u64; PAIRS],
    delivered: [u64; PAIRS],
}

/// Where requests that ask for something ask for it: the address says which request it is.
pub const fn asked_at(id: u64) -> u64 {
    id << 16
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
            tickets: [0; PAIRS],
            delivered: [0; PAIRS],
        }
    }

    /// The peer has taken everything that left along a path, but for some.
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
        match headers.extensions {
            // Whether anybody is there.
            Extensions::Reth(Reth { rkey: Rkey(0), .. }) => return,
            Extensions::Reth(Reth { address, length, .. })
                if info.operation == Operation::ReadRequest =>
            {
                self.asked(index, (address.0, psn), length.0, false);
            }
            Extensions::Atomic(AtomicEth { address, .. }) => {
                self.asked(index, (address.0, psn), 0, true);
            }
            _ => {}
        }
        self.sent[index] = psn;
    }

    fn asked(&mut self, index: usize, (address, psn): (u64, Psn), len: u32, atomic: bool) {
        let before = (address as u16) / MTU.bytes() as u16;
        let first = psn.add(Psn::MAX.get() + 1 - u32::from(before));
        let known = *self.first.entry(address >> 16).or_insert(first);
        assert_eq!(known, first, "what is asked for again has the same number");
        self.lines[index].asked.push_back(Asked { psn, len, atomic });
    }

    /// What is told to a peer is what it asked for.
    fn answer(&mut self, index: usize, headers: &Headers, payload: &[u8]) {
        self.pushed.answers += 1;
        assert_eq!(transport(index), Transport::Reliable, "no others answer: {headers:?}");
        let (psn, info) = (headers.bth.psn(), headers.bth.opcode().info());
        let line = &self.lines[index];
        if info.operation == Operation::ReadResponse {
            let is_it =
                |sought: &Sought| sought.is_answered(psn, info.ends(), payload, &self.memory);
            assert!(line.sought.iter().rev().any(is_it), "nobody may read that: {headers:?}");
        }
        if let Extensions::AethAtomicAck(_, AtomicValue(before)) = headers.extensions {
            let found = line.found.iter().rev().find(|(other, _)| *other == psn);
            assert_eq!(found, Some(&(psn, before)), "what an operation found");
        }
    }

    /// Datagrams go where their requests say.
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

impl Sought {
    /// Whether that is a part of it, which the peer may read at this moment.
    fn is_answered(&self, psn: Psn, ends: bool, payload: &[u8], memory: &Memory) -> bool {
        let Reth { address, rkey, length } = self.reth;
        let at = psn.distance_from(self.psn);
        if at < 0 || at as u32 >= MTU.packets(length.0) {
            return false;
        }
        let at = at as u32 * MTU.bytes() as u32;
        let len = (length.0 - at).min(MTU.bytes() as u32);
        let place = (rkey, RemoteAddr(address.0.wrapping_add(at.into())));
        payload.len() == len as usize
            && ends == (at + len == length.0)
            && (len == 0
                || memory.read(self.domain, place, len as usize).as_deref() == Some(payload))
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
        // What is told to the link itself is for queue pair 0.
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
