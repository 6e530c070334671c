//! Received buffers that programs keep.

use std::ops::Range;
use std::sync::Weak;

use doorbell_verbs::Buf;

use crate::receives::Buffers;

/// Returns whether a payload of this length is copied out of the buffer in which it was received,
/// so that the buffer serves for other messages. Payloads that a program keeps hold no more than
/// four times their bytes.
pub(crate) fn is_copied(payload: usize, buffer: &Buf) -> bool {
    4 * payload < buffer.capacity()
}

/// A range of a buffer that was received into. When the value is dropped, the buffer serves its
/// endpoint again.
pub(crate) struct ReceivedBuffer {
    pub buffer: Buf,
    pub range: Range<usize>,
    /// The pool that the buffer belongs to, as long as its endpoint is there.
    pub buffers: Weak<Buffers>,
}

impl AsRef<[u8]> for ReceivedBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }
}

impl Drop for ReceivedBuffer {
    fn drop(&mut self) {
        if let Some(buffers) = self.buffers.upgrade() {
            buffers.give(std::mem::take(&mut self.buffer));
        }
    }
}
