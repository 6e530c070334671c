//! The state that all waiting futures share.

use std::task::{Context, Poll};

use crate::progress::{Held, Look, NicGuard, ProgressEngine, WaitState};

/// One wait for something of a NIC. When it is dropped while its task leads, another task will
/// lead.
pub(crate) struct Waiting<'s> {
    engine: &'s ProgressEngine,
    wait_state: WaitState,
}

impl<'s> Waiting<'s> {
    #[inline]
    pub fn new(engine: &'s ProgressEngine) -> Self {
        Self { engine, wait_state: WaitState::default() }
    }

    /// Returns the progress engine of the NIC.
    pub fn engine(&self) -> &'s ProgressEngine {
        self.engine
    }

    #[inline]
    pub fn poll<L: Look>(
        &mut self,
        context: &mut Context<'_>,
        look: &mut L,
    ) -> Poll<(L::Output, NicGuard<'s>)> {
        let found = self.engine.wait(context, &mut self.wait_state, look);
        found.map(|(found, adapter)| (found, NicGuard::new(self.engine, adapter)))
    }

    /// Polls the wait for a thread that holds the NIC already.
    #[inline]
    pub fn poll_holding<L: Look>(
        &mut self,
        adapter: Held<'s>,
        context: &mut Context<'_>,
        look: &mut L,
    ) -> Poll<(L::Output, NicGuard<'s>)> {
        let found = self.engine.take_turns(adapter, context, &mut self.wait_state, look);
        found.map(|(found, adapter)| (found, NicGuard::new(self.engine, adapter)))
    }
}

impl Drop for Waiting<'_> {
    #[inline]
    fn drop(&mut self) {
        self.engine.end(&mut self.wait_state);
    }
}
