//! The requests and answers along a queue pair's path, as far as the checks must know them.

use std::collections::{BTreeMap, VecDeque};

use doorbell_core::nic::Domain;
use doorbell_core::wire::{Headers, Psn, RemoteAddr, Reth};

use super::memory::{Memory, Word};
use super::paths::MTU;

/// A read or an atomic operation that the NIC has asked a peer for.
#[derive(Clone, Copy)]
pub struct Asked {
    pub psn: Psn,
    pub len: u32,
    pub atomic: bool,
}

/// A read that a peer has asked the NIC for.
pub struct Sought {
    pub psn: Psn,
    pub domain: Domain,
    pub reth: Reth,
}

/// The requests and answers along one queue pair's path, as far as the checks must know them.
#[derive(Default)]
pub struct Line {
    /// The sequence number of the peer's next request.
    pub expected: Psn,
    /// The reads and atomic operations that the fuzzer may answer in the peer's name.
    pub asked: VecDeque<Asked>,
    /// The requests that no packet can have answered yet, each with the sequence number of its last
    /// answer.
    waiting: BTreeMap<u64, Psn>,
    /// The reads of the peer, and the words that the peer's atomic operations have found, by their
    /// sequence numbers.
    pub sought: Vec<Sought>,
    pub found: Vec<(Psn, Word)>,
    /// Whether packets from beyond a gap are kept.
    pub selective: bool,
    /// The packets that are kept, by their sequence numbers.
    pub held: BTreeMap<u32, (Headers, Vec<u8>)>,
    /// The newest packet that was sent, or the last answer to it.
    newest: Option<Psn>,
    /// The writes that no packet can have acknowledged yet, each with the sequence number of its
    /// last packet.
    unacknowledged: BTreeMap<u64, Psn>,
}

fn is_after(one: Psn, other: Psn) -> bool {
    one.distance_from(other) > 0
}

/// The remote address of a request. The request's number can be told from it.
pub const fn place_of(id: u64) -> RemoteAddr {
    RemoteAddr(id << 16)
}

/// The number of the request to which a remote address belongs, and the offset from the request's
/// beginning.
pub fn named(RemoteAddr(address): RemoteAddr) -> (u64, u32) {
    (address >> 16, u32::from(address as u16))
}

impl Line {
    /// Notes that a request has gone to the peer, perhaps again.
    pub fn ask(&mut self, id: u64, asked: Asked) {
        self.asked.push_back(asked);
        self.waiting.insert(id, asked.psn.add(MTU.packets(asked.len) - 1));
    }

    /// Notes that an answer with this sequence number has come. The NIC may take it for an answer
    /// or not.
    pub fn answered(&mut self, psn: Psn) {
        self.waiting.retain(|_, last| *last != psn);
        let Some(newest) = self.newest else { return };
        // The refusal of the next packet that was not sent acknowledges all that was.
        let acknowledged = [psn, psn.before()].into_iter().find(|&psn| !is_after(psn, newest));
        if let Some(acknowledged) = acknowledged {
            self.unacknowledged.retain(|_, last| is_after(*last, acknowledged));
        }
    }

    /// Notes that packets with sequence numbers up to `last` have gone to the peer.
    pub fn sent(&mut self, last: Psn) {
        if self.newest.is_none_or(|newest| is_after(last, newest)) {
            self.newest = Some(last);
        }
    }

    /// Notes that a write goes to the peer, perhaps again.
    pub fn write(&mut self, id: u64, last: Psn) {
        if self.newest.is_none_or(|newest| is_after(last, newest)) {
            self.unacknowledged.insert(id, last);
        }
    }

    /// Returns whether no packet of the peer's can have acknowledged the write `id`.
    pub fn is_unacknowledged(&self, id: u64) -> bool {
        self.unacknowledged.contains_key(&id)
    }

    /// Forgets the packets that are kept and are before the expected one.
    pub fn drop_passed(&mut self) {
        let expected = self.expected;
        self.held.retain(|&psn, _| !is_after(expected, Psn::new(psn)));
    }

    /// Returns whether a request before the request `id` can't have been answered.
    pub fn waits_before(&self, id: u64) -> bool {
        self.waiting.keys().any(|other| *other < id)
    }
}

impl Sought {
    /// Returns whether a packet is a right answer to a part of the read, by what the peer may read
    /// at this moment. `ends` says whether the packet ends an answer, and `may_be_cut` whether the
    /// answer may end with any packet: what is repeated ends before what is still to be sent.
    pub fn is_answered(
        &self,
        psn: Psn,
        (ends, may_be_cut): (bool, bool),
        payload: &[u8],
        memory: &Memory,
    ) -> bool {
        let Reth { address, rkey, length } = self.reth;
        let at = psn.distance_from(self.psn);
        if at < 0 || at as u32 >= MTU.packets(length.0) {
            return false;
        }
        let at = at as u32 * MTU.bytes() as u32;
        let len = (length.0 - at).min(MTU.bytes() as u32);
        let place = (rkey, RemoteAddr(address.0.wrapping_add(at.into())));
        payload.len() == len as usize
            && (ends == (at + len == length.0) || ends && may_be_cut)
            && (len == 0
                || memory.read(self.domain, place, len as usize).as_deref() == Some(payload))
    }
}
