//! Synchronising stores: waiting until stores have arrived.
//!
//! The bytes that are stored in a process are counted in that process's heap, whatever carries
//! them. There are two counters, which take turns: the stores between two calls of `all_store_sync`
//! are counted in one, the stores between the next two calls in the other. So a process that is one
//! call ahead changes no counter that others still wait for.

use crate::error::{Error, Gone};
use crate::heap::counter;
use crate::world::{Core, Waits, World};

impl World {
    /// Waits until `bytes` more bytes have been stored in this process's memory, by whichever
    /// processes, since the last call of `store_sync` or of
    /// [`all_store_sync`](Self::all_store_sync). An atomic change counts as many bytes as the
    /// number that it changes has. When `store_sync` is done, the stored values are in place.
    ///
    /// # Errors
    /// When a process of the world has gone, for that process may be the one that was to store; or
    /// when the programs of all other processes have ended, and have not stored as many bytes.
    pub async fn store_sync(&self, bytes: u64) -> Result<(), Error> {
        let core = &*self.0;
        let wanted = core.consumed.get() + bytes;
        let waits = |core: &Core| {
            let come = core.stored_here().saturating_sub(core.consumed.get());
            Waits::Stores { wanted: bytes, come }
        };
        core.flush_until(waits, |core| {
            let nobody = core.nobody_writes();
            if core.stored_here() >= wanted {
                return Some(Ok::<_, Error>(()));
            }
            nobody.map(|gone| Err(gone.into()))
        })
        .await??;
        core.consumed.set(wanted);
        Ok(())
    }

    /// Waits until all stores of all processes have arrived at their targets: a fence for stores,
    /// and a barrier. A collective call: all processes await it.
    ///
    /// # Errors
    /// When a process has gone.
    pub async fn all_store_sync(&self) -> Result<(), Error> {
        let core = &*self.0;
        core.all_done().await?;
        core.group.fence().await?;
        // All stores that this turn's counter counts have arrived, and no process counts in it
        // again before this process has passed the next barrier.
        let over = core.turn.get();
        core.turn.set(over ^ 1);
        core.consumed.set(0);
        core.heap.region().store(counter(over), 0).expect("it is the heap's own");
        Ok(())
    }
}

impl Core {
    /// Why no other process will write to this process's memory any more, if that is so: a process
    /// has gone, or the programs of all others have ended. To be asked before the memory is looked
    /// at, since what was written before the ends is in place.
    pub fn nobody_writes(&self) -> Option<Gone> {
        let others = self.size() - 1;
        if others > 0 && self.served.ended() >= others {
            let rank = usize::from(self.rank == 0);
            let why = "its program has ended, as those of all other processes have".into();
            return Some(Gone { rank, why });
        }
        self.departures.first()
    }

    /// How many bytes were stored in this process in this turn, as far as they are counted.
    #[inline]
    fn stored_here(&self) -> u64 {
        self.heap.region().load(counter(self.turn.get())).unwrap_or(0)
    }
}
