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
pub struct PolledWait {
    nic: Nic,
    wait_state: WaitState,
}

impl PolledWait {
    /// Makes the state of a wait for something of `nic`.
    pub fn new(nic: &Nic) -> Self {
        Self { nic: nic.clone(), wait_state: WaitState::default() }
    }

    /// Waits for what `look` finds, making progress meanwhile.
    #[inline]
    pub fn poll<L: Look>(&mut self, context: &mut Context<'_>, look: &mut L) -> Poll<L::Output> {
        let engine = self.nic.engine();
        engine.wait(context, &mut self.wait_state, look).map(|(found, adapter)| {
            NicGuard::new(engine, adapter).release_soon();
            found
        })
    }
}

impl Drop for PolledWait {
    fn drop(&mut self) {
        self.nic.engine().end(&mut self.wait_state);
    }
}

impl fmt::Debug for PolledWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PolledWait").field(&self.nic).finish()
    }
}
