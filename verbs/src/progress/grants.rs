//! Memory that peers have granted, until somebody maps it.

use std::collections::VecDeque;

use doorbell_core::encap::PathId;
use doorbell_core::memory::Region;
use doorbell_core::wire::{RemoteAddr, Rkey};
use doorbell_transports::Grant;
use tokio::sync::oneshot;

use crate::memory::RemoteMemory;

/// Memory of a peer's that is mapped here.
pub(crate) struct Granted {
    /// By which link it came, and what names it there.
    link: PathId,
    rkey: Rkey,
    /// Where it begins, by the peer's addresses.
    pub base: RemoteAddr,
    pub region: Region,
}

impl Granted {
    fn is(&self, link: PathId, rkey: Rkey) -> bool {
        (self.link, self.rkey) == (link, rkey)
    }
}

impl From<Grant> for Granted {
    fn from(Grant { from, tag, memory }: Grant) -> Self {
        let base = RemoteAddr((tag >> u32::BITS) as u64);
        Self { link: from, rkey: Rkey(tag as u32), base, region: memory }
    }
}

/// What a grant is called: the key of the memory, and behind that its address.
pub(crate) fn granted_as(memory: &RemoteMemory) -> u128 {
    u128::from(memory.address().0) << u32::BITS | u128::from(memory.rkey().0)
}

/// Who waits for a grant.
struct Waiting {
    link: PathId,
    rkey: Rkey,
    asks: oneshot::Sender<Granted>,
}

/// What peers have granted and who waits for that.
#[derive(Default)]
pub(crate) struct Grants {
    /// What nobody has asked for yet, oldest first.
    arrived: VecDeque<Granted>,
    waiting: Vec<Waiting>,
}

/// The most grants that wait to be asked for; the oldest give way to new ones.
const MOST_GRANTS: usize = 1024;

impl Grants {
    pub fn arrive(&mut self, grant: Grant) {
        let granted = Granted::from(grant);
        self.waiting.retain(|waiting| !waiting.asks.is_closed());
        let waits = |waiting: &Waiting| granted.is(waiting.link, waiting.rkey);
        match self.waiting.iter().position(waits) {
            Some(waits) => drop(self.waiting.swap_remove(waits).asks.send(granted)),
            None => {
                if self.arrived.len() == MOST_GRANTS {
                    self.arrived.pop_front();
                }
                self.arrived.push_back(granted);
            }
        }
    }

    /// Whether somebody waits for one.
    pub fn are_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// What a peer at the end of a link has granted by that key, now or later.
    pub fn ask(&mut self, link: PathId, rkey: Rkey) -> oneshot::Receiver<Granted> {
        self.waiting.retain(|waiting| !waiting.asks.is_closed());
        let (asks, asked) = oneshot::channel();
        let found = self.arrived.iter().position(|granted| granted.is(link, rkey));
        match found.and_then(|found| self.arrived.remove(found)) {
            Some(granted) => drop(asks.send(granted)),
            None => self.waiting.push(Waiting { link, rkey, asks }),
        }
        asked
    }
}
