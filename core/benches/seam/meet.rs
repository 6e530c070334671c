//! Where the two processes of a measurement meet: a few words that both map.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::device::Device;
use crate::port::Port;
use crate::sys::SharedWords;

pub const WORDS: usize = 64;
const LINE: usize = 8;
const PATIENCE: Duration = Duration::from_secs(20);

/// One side's view: side 0 leads, side 1 follows.
pub struct Meeting {
    words: Arc<SharedWords>,
    side: usize,
}

impl Meeting {
    pub fn new(words: Arc<SharedWords>, side: usize) -> Self {
        Self { words, side }
    }

    pub fn leads(&self) -> bool {
        self.side == 0
    }

    /// A line that this side writes and one that the other does, both zero after a meeting.
    pub fn lines(&self) -> (&AtomicU64, &AtomicU64) {
        (self.word(2 + self.side), self.word(3 - self.side))
    }

    fn word(&self, line: usize) -> &AtomicU64 {
        &self.words.words()[line * LINE]
    }

    /// Returns when both sides are here.
    ///
    /// # Panics
    /// If the other does not come: it has failed and has said why.
    pub fn meet(&self) {
        self.lines().0.store(0, Ordering::Relaxed);
        self.word(4).store(0, Ordering::Relaxed);
        let here = self.word(self.side).fetch_add(1, Ordering::AcqRel) + 1;
        let start = Instant::now();
        while self.word(1 - self.side).load(Ordering::Acquire) < here {
            assert!(start.elapsed() < PATIENCE, "the other process did not come to the meeting");
            std::hint::spin_loop();
        }
    }

    /// The leader's word that the measurement is over.
    pub fn finish(&self) {
        self.word(4).store(1, Ordering::Release);
    }

    pub fn finished(&self) -> bool {
        self.word(4).load(Ordering::Acquire) == 1
    }
}

impl Meeting {
    /// As [`meet`](Self::meet), keeping the NIC going: the other side may still wait for it. It
    /// does not sleep, for no frame would tell it that the other side has come.
    pub async fn meet_async<D: Device>(&self, port: &Port<D>) {
        let here = self.word(self.side).fetch_add(1, Ordering::AcqRel) + 1;
        while self.word(1 - self.side).load(Ordering::Acquire) < here {
            port.make_progress();
            tokio::task::yield_now().await;
        }
    }
}
