//! The requests and answers along a queue pair's path, as far as the checks must know them.

use std::collections::{BTreeMap, VecDeque};

use doorbell_core::nic::Domain;
use doorbell_core::wire::{Psn, RemoteAddr, Reth};

use super::memory::Memory;
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
    pub found: Vec<(Psn, u64)>,
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
    }

    /// Returns whether a request before the request `id` can't have been answered.
    pub fn waits_before(&self, id: u64) -> bool {
        self.waiting.keys().any(|other| *other < id)
    }
}

impl Sought {
    /// Returns whether a packet is a right answer to a part of the read, by what the peer may read
    /// at this moment.
    pub fn is_answered(&self, psn: Psn, ends: bool, payload: &[u8], memory: &Memory) -> bool {
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
