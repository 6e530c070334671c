//! Buffers that messages were received into, and that programs keep.

use std::ops::Range;
use std::sync::Arc;

use doorbell_verbs::Buf;

use crate::buffers::Buffers;

/// A payload of so few bytes is copied out of the buffer in which it was received, which then serves
/// for other messages: a program that keeps it for long holds no more memory than it has to. A copy of so
/// many bytes costs about what it costs to give a buffer away.
pub(crate) const FEW: usize = 512;

/// A buffer that bytes were received into, and which of them are meant. When it is dropped, the buffer
/// serves its endpoint again.
pub(crate) struct ReceivedBuffer {
    pub buffer: Buf,
    pub range: Range<usize>,
    pub buffers: Arc<Buffers>,
}

impl AsRef<[u8]> for ReceivedBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }
}

impl Drop for ReceivedBuffer {
    fn drop(&mut self) {
        self.buffers.give(std::mem::take(&mut self.buffer));
    }
}
