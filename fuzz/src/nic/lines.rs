//! What has gone along a queue pair's path, and may yet.

use std::collections::{BTreeMap, VecDeque};

use doorbell_core::nic::Domain;
use doorbell_core::wire::{Psn, RemoteAddr, Reth};

use super::memory::Memory;
use super::paths::MTU;

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
    /// The sequence number of the peer's next request.
    pub expected: Psn,
    /// What its peer may be made to answer.
    pub asked: VecDeque<Asked>,
    /// What was asked for and surely not answered: the number of each last answer.
    waiting: BTreeMap<u64, Psn>,
    /// What its peer has read, and the words that it has found.
    pub sought: Vec<Sought>,
    pub found: Vec<(Psn, u64)>,
}

/// Where a request is for, at its peer: the address says which request it is.
pub const fn place_of(id: u64) -> RemoteAddr {
    RemoteAddr(id << 16)
}

/// The request that a place is of, and how far behind its beginning that is.
pub fn named(RemoteAddr(address): RemoteAddr) -> (u64, u32) {
    (address >> 16, u32::from(address as u16))
}

impl Line {
    /// A request has gone to the peer, perhaps again.
    pub fn ask(&mut self, id: u64, asked: Asked) {
        self.asked.push_back(asked);
        self.waiting.insert(id, asked.psn.add(MTU.packets(asked.len) - 1));
    }

    /// An answer comes, which need not be taken for one.
    pub fn answered(&mut self, psn: Psn) {
        self.waiting.retain(|_, last| *last != psn);
    }

    /// Whether something that was asked for before a request was surely not answered.
    pub fn waits_before(&self, id: u64) -> bool {
        self.waiting.keys().any(|other| *other < id)
    }
}

impl Sought {
    /// Whether that is a part of it, which the peer may read at this moment.
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
