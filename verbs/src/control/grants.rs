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
    wakes: oneshot::Sender<()>,
}

/// What peers have granted and who waits for that.
#[derive(Default)]
pub(crate) struct Grants {
    /// What nobody has taken yet, oldest first.
    arrived: VecDeque<Granted>,
    waiting: Vec<Waiting>,
}

/// The most grants that wait to be taken; the oldest give way to new ones.
const MOST_GRANTS: usize = 1024;

impl Grants {
    pub fn arrive(&mut self, grant: Grant) {
        let granted = Granted::from(grant);
        let waits = |waiting: &mut Waiting| granted.is(waiting.link, waiting.rkey);
        for woken in self.waiting.extract_if(.., waits) {
            // Who does not wait any more leaves it to who asks next.
            let _ = woken.wakes.send(());
        }
        if self.arrived.len() == MOST_GRANTS {
            self.arrived.pop_front();
        }
        self.arrived.push_back(granted);
    }

    /// Whether somebody waits for one.
    pub fn are_awaited(&mut self) -> bool {
        self.waiting.retain(|waiting| !waiting.wakes.is_closed());
        !self.waiting.is_empty()
    }

    /// What a peer at the end of a link has granted by that key; or what tells when it has.
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
