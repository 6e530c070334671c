//! Serving other processes between operations that need no waiting.

use doorbell_am::costs::{Cost, span};
use doorbell_verbs::ConnectionState;

use super::Core;
use crate::error::Error;

/// After how many operations a process serves its peers, though none of the operations had to
/// wait: some tens of microseconds of loads and stores.
const BETWEEN_LOOKS: u32 = 1024;

impl Core {
    /// Counts an operation that begins. After every so many, this serves the other processes, which
    /// a program that never waits would not do otherwise.
    #[inline]
    pub fn count_one(&self) {
        let count = self.counted.get().wrapping_add(1);
        self.counted.set(count);
        if count.is_multiple_of(BETWEEN_LOOKS) {
            self.look_around();
        }
    }

    /// Serves whatever has come from other processes, and notes which processes have gone.
    #[cold]
    pub fn look_around(&self) {
        let _notification = span(Cost::Notification);
        self.bundle.poll(true);
        // The endpoint learns of an end by a task, and a program that never waits lets none run.
        for peer in &self.peers {
            if let Some(far) = &peer.far
                && let ConnectionState::Ended(_) = far.connection.state()
                && !self.departures.has_gone(peer.rank)
            {
                self.gone(peer.rank, far);
            }
        }
        self.settle();
    }

    /// Once for every so many operations, sends what waits to be sent and lets other tasks of this
    /// thread run: for operations that are awaited and are done at once.
    #[inline]
    pub async fn breathe(&self) -> Result<(), Error> {
        match self.counted.get().wrapping_sub(self.breathed.get()) >= BETWEEN_LOOKS {
            // On the heap, so that the futures of reads and writes stay small.
            true => Box::pin(self.take_breath()).await,
            false => Ok(()),
        }
    }

    #[cold]
    async fn take_breath(&self) -> Result<(), Error> {
        self.breathed.set(self.counted.get());
        tokio::task::yield_now().await;
        self.flush_ready()
    }
}
