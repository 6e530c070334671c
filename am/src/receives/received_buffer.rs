//! Buffers that messages were received into, and that programs keep.

use std::ops::Range;
use std::sync::Weak;

use doorbell_verbs::Buf;

use crate::receives::Buffers;

/// Whether a payload is copied out of the buffer in which it was received, which then serves for
/// other messages: a program that keeps payloads for long holds no more than four times their
/// bytes.
pub(crate) fn is_copied(payload: usize, buffer: &Buf) -> bool {
    4 * payload < buffer.capacity()
}

/// A buffer that bytes were received into, and which of them are meant. When it is dropped, the
/// buffer serves its endpoint again.
pub(crate) struct ReceivedBuffer {
    pub buffer: Buf,
    pub range: Range<usize>,
    /// Where the buffer belongs, as long as the endpoint is there.
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
