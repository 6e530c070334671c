//! Knowing that stores are in.
//!
//! The bytes that are stored in a process are counted in its heap, by whoever carries them. There
//! are two counters, which take turns: the stores between two calls of `all_store_sync` are counted
//! in one, those between the next two calls in the other. So whoever is a call ahead changes
//! nothing that others wait for.

use crate::error::Error;
use crate::heap::STORED;
use crate::world::{Core, World};

impl World {
    /// Waits until `bytes` bytes more have been stored in this process's memory, by whichever
    /// processes, since the last call of this or of [`all_store_sync`](Self::all_store_sync). An
    /// atomic change counts as many bytes as its number has. The stored values are in place then.
    ///
    /// # Errors
    /// When a process of the world has gone, for it may be the one that was to store.
    pub async fn store_sync(&self, bytes: u64) -> Result<(), Error> {
        let core = &*self.0;
        core.flush().await?;
        let wanted = core.consumed.get() + bytes;
        core.until(|core| {
            if core.stored_here() >= wanted {
                return Some(Ok::<_, Error>(()));
            }
            core.fates.first().map(|gone| Err(gone.into()))
        })
        .await?;
        core.consumed.set(wanted);
        Ok(())
    }

    /// Waits until all stores of all processes are in, everywhere. All processes await this.
    ///
    /// # Errors
    /// When a process has gone.
    pub async fn all_store_sync(&self) -> Result<(), Error> {
        let core = &*self.0;
        core.all_done().await?;
        self.barrier().await?;
        // All stores that were counted here are in, and nobody counts any here before this process
        // has passed the next barrier.
        let over = core.turn.get();
        core.turn.set(over ^ 1);
        core.consumed.set(0);
        core.heap.region().store(counter(over), 0).expect("it is the heap's own");
        Ok(())
    }
}

/// Where the bytes are counted that are stored in a turn.
#[inline]
pub(crate) const fn counter(turn: u64) -> usize {
    STORED + 8 * (turn & 1) as usize
}

impl Core {
    /// Waits until everything that this process has begun is done, its stores among it.
    pub async fn all_done(&self) -> Result<(), Error> {
        self.flush().await?;
        self.confirm().await?;
        if self.outstanding.get() > 0 {
            self.until(|core| (core.outstanding.get() == 0).then_some(())).await;
        }
        match self.fates.any() {
            true => self.failure.take().map_or(Ok(()), Err),
            false => Ok(()),
        }
    }

    /// How many bytes were stored here in this turn, as far as they are counted.
    #[inline]
    fn stored_here(&self) -> u64 {
        self.heap.region().load(counter(self.turn.get())).unwrap_or(0)
    }
}
