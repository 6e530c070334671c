//! A wait for layers above that consists of polls, and is no future.

use std::fmt;
use std::task::{Context, Poll};

use super::handle::Nic;
use crate::progress::{Look, NicGuard, WaitState};

/// The state of a wait that consists of polls and is no future, as that of a reader of a byte
/// stream. The state is kept from one poll to the next, and borrows nothing.
///
/// A program may stop polling in the middle of a wait without saying so. If its task led the others
/// by then, the watch takes over within about a millisecond.
///
/// The wait is for something of the NIC that `K` has: the NIC itself, or what keeps it anyway.
pub struct PolledWait<K: HasNic = Nic> {
    keeper: K,
    wait_state: WaitState,
}

/// An owner of a NIC, which a wait for something of the NIC keeps.
pub trait HasNic {
    /// Returns the NIC, which is always the same.
    fn nic(&self) -> &Nic;
}

impl HasNic for Nic {
    fn nic(&self) -> &Nic {
        self
    }
}

impl<K: HasNic> PolledWait<K> {
    /// Makes the state of a wait for something of the NIC that `keeper` has.
    pub fn new(keeper: K) -> Self {
        Self { keeper, wait_state: WaitState::default() }
    }

    /// Waits for what the look finds that `look` makes, making progress meanwhile.
    #[inline]
    pub fn poll<'k, L: Look>(
        &'k mut self,
        context: &mut Context<'_>,
        look: impl FnOnce(&'k K) -> L,
    ) -> Poll<L::Output> {
        let Self { keeper, wait_state } = self;
        let engine = keeper.nic().engine();
        engine.wait(context, wait_state, &mut look(keeper)).map(|(found, adapter)| {
            NicGuard::new(engine, adapter).release_soon();
            found
        })
    }
}

impl<K: HasNic> Drop for PolledWait<K> {
    fn drop(&mut self) {
        self.keeper.nic().engine().end(&mut self.wait_state);
    }
}

impl<K: HasNic> fmt::Debug for PolledWait<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PolledWait").field(self.keeper.nic()).finish()
    }
}
