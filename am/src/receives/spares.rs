//! Spare buffers of one length, which all endpoints of a bundle share.

use std::sync::{Arc, Mutex, Weak};

use doorbell_verbs::Buf;

use doorbell_verbs::floor::locked;

/// Spare buffers, which serve for messages that are sent, and take the place of buffers that
/// handlers retain. Most endpoints of a bundle with many are idle, and need none of their own.
pub(crate) struct Spares {
    size: usize,
    buffers: Mutex<Vec<Buf>>,
}

impl Spares {
    /// Returns the length of each buffer.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Takes an empty buffer, or allocates one.
    #[inline]
    pub fn take(&self) -> Buf {
        let spare = locked(&self.buffers).pop();
        spare.unwrap_or_else(|| Buf::with_capacity(self.size))
    }

    /// Gives a buffer back, which is kept if there are fewer than `most`.
    #[inline]
    pub fn give(&self, mut buffer: Buf, most: usize) {
        let mut buffers = locked(&self.buffers);
        if buffer.capacity() == self.size && buffers.len() < most {
            buffer.clear();
            buffers.push(buffer);
        }
    }
}

/// The spare buffers of a bundle, by their lengths, as long as an endpoint uses them.
#[derive(Default)]
pub(crate) struct SparesBySize(Mutex<Vec<Weak<Spares>>>);

impl SparesBySize {
    /// Returns the spare buffers of a length.
    pub fn of(&self, size: usize) -> Arc<Spares> {
        let mut all = locked(&self.0);
        all.retain(|spares| spares.strong_count() > 0);
        let there = all.iter().filter_map(Weak::upgrade).find(|spares| spares.size == size);
        there.unwrap_or_else(|| {
            let fresh = Arc::new(Spares { size, buffers: Mutex::default() });
            all.push(Arc::downgrade(&fresh));
            fresh
        })
    }
}
