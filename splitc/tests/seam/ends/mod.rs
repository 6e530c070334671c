//! The end of a process ends what others have to do with that process, with an error that names it,
//! and nothing hangs.

mod dying;
mod epochs;
mod given_up;
mod killed;
mod left;
mod leftover;
mod silent;
mod tight;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use doorbell_splitc::World;

/// Tells a thread that it may go on when this is dropped, even by a panic.
#[derive(Debug)]
pub struct GoesOn(pub Arc<AtomicBool>);

impl Drop for GoesOn {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Counts the threads that have come so far, by other means than those that are tested.
#[derive(Clone, Default, Debug)]
pub struct Count(Arc<AtomicUsize>);

impl Count {
    /// Notes that one more thread has come.
    pub fn one_more(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    /// How many have come so far.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }

    /// Waits until so many have come, and serves peers meanwhile.
    pub async fn reaches(&self, count: usize, world: &World) {
        while self.count() < count {
            world.poll();
            tokio::task::yield_now().await;
        }
    }
}
