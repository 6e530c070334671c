//! Grants: memory that peers let this process map.

use std::collections::VecDeque;

use doorbell_core::encap::PathId;
use doorbell_core::memory::Region;
use doorbell_core::wire::{RemoteAddr, Rkey};
use doorbell_transports::Grant;
use tokio::sync::oneshot;

use crate::work::RemoteMemory;

/// A grant of a peer's memory, which is mapped here.
pub(crate) struct Granted {
    /// The link by which the grant came, and the key of the memory.
    link: PathId,
    rkey: Rkey,
    /// The address at which the memory begins, for the peer.
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

/// Returns the tag of a grant: the address of the memory, and below it the key.
pub(crate) fn granted_as(memory: &RemoteMemory) -> u128 {
    u128::from(memory.address().0) << u32::BITS | u128::from(memory.rkey().0)
}

/// A task that waits for a grant.
struct Waiting {
    link: PathId,
    rkey: Rkey,
    wakes: oneshot::Sender<()>,
}

/// The grants that have arrived, and the tasks that wait for grants.
#[derive(Default)]
pub(crate) struct Grants {
    /// Grants that no task has taken yet, oldest first.
    arrived: VecDeque<Granted>,
    waiting: Vec<Waiting>,
}

/// The most grants that are kept; the oldest gives way to a new one.
const MOST_GRANTS: usize = 1024;

impl Grants {
    pub fn arrive(&mut self, grant: Grant) {
        let granted = Granted::from(grant);
        let waits = |waiting: &mut Waiting| granted.is(waiting.link, waiting.rkey);
        for woken in self.waiting.extract_if(.., waits) {
            // If the task has stopped waiting, the grant stays for the next one that asks.
            let _ = woken.wakes.send(());
        }
        if self.arrived.len() == MOST_GRANTS {
            self.arrived.pop_front();
        }
        self.arrived.push_back(granted);
    }

    /// Returns whether any task waits for a grant.
    pub fn are_awaited(&mut self) -> bool {
        self.waiting.retain(|waiting| !waiting.wakes.is_closed());
        !self.waiting.is_empty()
    }

    /// Takes the grant of a key that came by a link. If it has not arrived, returns a receiver that
    /// is signalled when it does.
    pub fn take(&mut self, link: PathId, rkey: Rkey) -> Result<Granted, oneshot::Receiver<()>> {
        let found = self.arrived.iter().position(|granted| granted.is(link, rkey));
        if let Some(granted) = found.and_then(|found| self.arrived.remove(found)) {
            return Ok(granted);
        }
        let (wakes, woken) = oneshot::channel();
        self.waiting.push(Waiting { link, rkey, wakes });
        Err(woken)
    }
}
