//! A connection as a program at one end of it sees it: its queue pair, its memory, what it posted,
//! and what became of that.

use doorbell_core::cm::{Extensions, Reply, Request, Why};
use doorbell_core::connect::Agreement;
use doorbell_core::memory::{Buf, Region};
use doorbell_core::nic::*;
use doorbell_core::wire::cm::RejectReason;
use doorbell_core::wire::{Imm, Metadata, Qpn, RemoteAddr, Rkey};
use doorbell_simulation::NodeId;

use crate::reliable::common::{bytes, inline};

/// A queue pair and its ends.
pub struct Pair {
    pub qpn: Qpn,
    pub send: SendQueue,
    pub receive: ReceiveQueue,
}

/// What a program tells its peer in private data: which connection it is, and where its memory is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Card {
    pub number: u64,
    address: u64,
    rkey: u32,
}

impl Card {
    pub fn to_bytes(self) -> Vec<u8> {
        let parts = [&self.number.to_be_bytes()[..], &self.address.to_be_bytes()];
        [parts.concat(), self.rkey.to_be_bytes().to_vec()].concat()
    }

    pub fn read(private: &[u8]) -> Self {
        let word = |at| u64::from_be_bytes(*private[at..].first_chunk().expect("a card"));
        let rkey = u32::from_be_bytes(*private[16..].first_chunk().expect("a card"));
        assert!(private[20..].iter().all(|&byte| byte == 0), "nothing else was said");
        Self { number: word(0), address: word(8), rkey }
    }
}

/// What was posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Posted {
    Send,
    Write,
    Read,
    Add,
    /// The last, when all before are complete.
    Bye,
    /// The how manieth receive.
    Receive(u8),
}

/// The peer writes to the front of a side's memory and adds to the word behind that; what a side
/// reads of what it wrote comes to the end.
const WRITTEN: usize = 32;
const COUNT: usize = 32;
const READ: usize = 64;
pub const MEMORY: usize = 96;

pub struct Link {
    pub active: bool,
    pub peer: NodeId,
    pub request: Request,
    pub reply: Option<Reply>,
    pub extensions: Extensions,
    pub pair: Pair,
    pub region: Region,
    pub memory: Registration,
    /// Which connection it is, and the peer's memory.
    pub number: u64,
    pub theirs: Option<Card>,
    /// It stood; its queue pair is flushed, or is to be.
    pub stood: bool,
    pub closing: bool,
    /// This side gave it up before it stood.
    pub given_up: bool,
    pub failed: Option<Why>,
    pub ended: Option<Why>,
    /// What is posted and not complete, what was done, and what was received.
    pub outstanding: usize,
    pub done: Vec<Posted>,
    pub received: u8,
    /// One end of it began anew: nothing is promised.
    pub excused: bool,
}

/// The bytes that one side of a connection sends.
fn message(number: u64, active: bool, len: usize) -> Vec<u8> {
    let start = number * 2 + u64::from(active);
    (start..).map(|n| (n * 7 + n / 256) as u8).take(len).collect()
}

/// Up to three packets.
fn len(number: u64) -> usize {
    8 + (number * 37 % 2500) as usize
}

/// Why a connection may be refused, if neither end began anew: by a program; because a queue pair
/// is used again earlier than the peer has forgotten it; and because its refusal of ours was lost
/// so often that it has forgotten it meanwhile.
const REASONS: [RejectReason; 4] = [
    RejectReason::CONSUMER,
    RejectReason::NO_QP,
    RejectReason::STALE_CONNECTION,
    RejectReason::INVALID_COMM_ID,
];

/// The longest message.
pub const ROOM: usize = 2600;

impl Link {
    pub fn card(&self) -> Card {
        let (address, rkey) = (self.memory.address.0, self.memory.rkey.0);
        Card { number: self.number, address, rkey }
    }

    pub fn agreement(&self) -> Agreement {
        let reply = self.reply.as_ref().expect("a reply was sent or came");
        match self.active {
            true => Agreement::requesters(&self.request, reply),
            false => Agreement::responders(&self.request, reply),
        }
    }

    /// What the counter is before the peer adds to it, and what it adds.
    fn addition(&self) -> (u64, u64) {
        (self.number << 8, self.number * 3 + 1)
    }

    pub fn prepare(&mut self) {
        let (before, _) = self.addition();
        self.region.write_at(COUNT, &before.to_ne_bytes()).unwrap();
    }

    /// What it has to say first.
    pub fn requests(&self) -> Vec<(Posted, WorkRequest)> {
        let Card { address, rkey, .. } = self.theirs.expect("the peer gave its card");
        let (address, rkey) = (RemoteAddr(address), Rkey(rkey));
        let own = message(self.number, self.active, len(self.number));
        let write = WorkRequest::write(0, address, rkey, inline(&own_write(self)));
        let write = match self.agreement().sending(self.extensions).metadata {
            true => write.with_metadata(Metadata::new(&self.number.to_ne_bytes()).unwrap()),
            false => write.with_imm(Imm(self.number as u32)),
        };
        let into = self.memory.segment(READ as u64, WRITTEN as u32);
        let counter = RemoteAddr(address.0 + COUNT as u64);
        vec![
            (Posted::Send, WorkRequest::send(0, Memory::Buf(Buf::from(own)))),
            (Posted::Write, write),
            (Posted::Read, WorkRequest::read(0, address, rkey, into)),
            (Posted::Add, WorkRequest::fetch_add(0, counter, rkey, self.addition().1)),
        ]
    }

    /// Checks what was done.
    pub fn complete(&mut self, what: Posted, completion: &Completion) {
        self.outstanding -= 1;
        let done = match completion.outcome {
            Ok(done) => done,
            Err(failure) => return self.flushed(what, failure),
        };
        match what {
            Posted::Send | Posted::Bye => assert_eq!(done, Done::Sent),
            Posted::Write => assert_eq!(done, Done::Written),
            Posted::Read => {
                assert_eq!(done, Done::Read);
                assert_eq!(self.bytes_at(READ), own_write(self), "what was written is read");
            }
            Posted::Add => assert_eq!(done, Done::Atomic { before: self.addition().0 }),
            Posted::Receive(which) => return self.receive(which, done, completion),
        }
        self.done.push(what);
    }

    fn receive(&mut self, which: u8, done: Done, completion: &Completion) {
        assert_eq!(which, self.received, "in order");
        self.received += 1;
        let theirs = || message(self.number, !self.active, len(self.number));
        match which {
            0 => assert_eq!((done, bytes(completion)), (Done::Received, &theirs()[..])),
            1 => {
                assert_eq!(done, Done::ReceivedWrite);
                assert_eq!(self.bytes_at(0), theirs_write(self));
                let attached = completion.attached;
                let metadata = attached.metadata().map(|m| m.bytes() == self.number.to_ne_bytes());
                let imm = attached.imm().map(|imm| imm.0 == self.number as u32);
                let expected = match self.extensions.is_empty() {
                    true => (None, Some(true)),
                    false => (Some(true), None),
                };
                assert_eq!((metadata, imm), expected);
            }
            _ => {
                let bye = self.number.to_ne_bytes();
                assert_eq!((done, bytes(completion)), (Done::Received, &bye[..]));
            }
        }
    }

    /// Something was not carried out: only what was under way when the connection came to its end.
    fn flushed(&self, what: Posted, failure: Failure) {
        let (Failure::Broke(cause) | Failure::Flushed(cause)) = failure;
        let may_be = match cause {
            Cause::Told => self.closing,
            // The peer had left.
            Cause::NoAnswer { .. } | Cause::NoProgress { .. } => {
                self.excused || self.done.contains(&Posted::Add)
            }
            Cause::PeerSilent { .. } => self.excused,
            _ => false,
        };
        assert!(may_be, "{what:?} of {}: {failure:?}", self.number);
    }

    fn bytes_at(&self, offset: usize) -> [u8; WRITTEN] {
        let mut bytes = [0; WRITTEN];
        self.region.read_at(offset, &mut bytes).unwrap();
        bytes
    }

    /// Whether all that it had to say was said, and all that it was to hear was heard.
    pub fn is_done(&self) -> bool {
        self.done.contains(&Posted::Bye) && self.received == 3
    }

    /// The connection is over and released: everything is accounted for.
    pub fn check(&self) {
        assert_eq!(self.outstanding, 0, "each request has its completion: {}", self.number);
        let outcomes = [self.stood, self.failed.is_some(), self.given_up];
        let outcomes = outcomes.iter().filter(|&&outcome| outcome).count();
        assert_eq!(outcomes, 1, "one outcome: {:?}, {:?}", self.failed, self.ended);
        assert_eq!(self.stood, self.ended.is_some());
        if self.excused {
            return;
        }
        match &self.failed {
            None | Some(Why::Stale) => {}
            Some(Why::Refused { reason, .. }) if REASONS.contains(reason) => {}
            Some(other) => panic!("{} failed: {other:?}", self.number),
        }
        let unanswered = matches!(self.ended, Some(Why::TimedOut { .. }));
        assert!(!unanswered, "{} is answered", self.number);
        if self.stood {
            let said = self.done.iter().filter(|&&what| what != Posted::Bye).count();
            assert_eq!(
                (said, self.received),
                (4, 3),
                "it was used: {}, {:?}",
                self.number,
                self.ended
            );
            let mut count = [0; 8];
            self.region.read_at(COUNT, &mut count).unwrap();
            let (before, add) = self.addition();
            assert_eq!(u64::from_ne_bytes(count), before + add, "added once");
        }
    }
}

fn own_write(link: &Link) -> [u8; WRITTEN] {
    *message(link.number + 1, link.active, WRITTEN).first_chunk().unwrap()
}

fn theirs_write(link: &Link) -> [u8; WRITTEN] {
    *message(link.number + 1, !link.active, WRITTEN).first_chunk().unwrap()
}
