//! The sizes of pieces and windows for streams of gets, puts and stores.

use std::collections::VecDeque;

use doorbell_splitc::{Done, Error};

use super::ring::Shape;

/// How many operations on a few bytes are under way before a `sync`: so many that the round trip is
/// short beside them.
pub const WINDOW: usize = 4096;

/// How many operations a piece has: a power of two, and each operation has a place of its own. All
/// of them are checked while the clock stands, so it pays to have many. But few enough are needed
/// for caches to hold what is moved.
pub fn places(size: usize) -> u64 {
    let most = match Shape::of(size) {
        Shape::Word => 1 << 16,
        Shape::Few => (1 << 19) / size as u64,
        Shape::Bulk => ((1 << 22) / size as u64).clamp(8, 4096),
    };
    (1 << most.ilog2()).min(1 << 16)
}

/// Copies between the heaps of two processes that are under way.
pub struct Copies {
    under_way: VecDeque<Done>,
    most: usize,
}

impl Copies {
    /// An empty queue of copies, each of which will have `size` bytes.
    pub fn new(size: usize) -> Self {
        let most = ((1 << 21) / size).clamp(4, 64);
        Self { under_way: VecDeque::with_capacity(most), most }
    }

    /// Adds a copy that has begun. If that fills the queue, the call waits for the older half.
    #[inline]
    pub async fn push(&mut self, copy: Done) -> Result<(), Error> {
        self.under_way.push_back(copy);
        match self.under_way.len() == self.most {
            true => self.wait(self.most / 2).await,
            false => Ok(()),
        }
    }

    /// Waits until all copies are done.
    pub async fn finish(&mut self) -> Result<(), Error> {
        self.wait(self.under_way.len()).await
    }

    async fn wait(&mut self, count: usize) -> Result<(), Error> {
        for copy in self.under_way.drain(..count) {
            copy.done().await?;
        }
        Ok(())
    }
}
