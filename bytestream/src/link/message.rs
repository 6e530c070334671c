//! Messages, made of the bytes that a program writes.

use doorbell_verbs::{Buf, Data, Inline};

use super::slices::Slices;
use crate::shared::Buffers;

/// The longest message for which a buffer of its own length is allocated, rather than one of a
/// segment taken.
const MOST_APART: usize = 4096;

/// The most bytes that are posted inline, as part of the request.
const MOST_INLINE: usize = 64;

/// Bytes that were written while enough short messages were under way, and that the next message
/// takes. They are fewer than a segment, or a segment while the send queue has no place.
#[derive(Default)]
pub(super) struct Gathered(Option<Buf>);

impl Gathered {
    /// Returns how many bytes were gathered.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |buffer| buffer.len())
    }

    /// Appends the next `len` bytes. There must be room for them in a segment.
    pub fn append(&mut self, buffers: &Buffers, slices: &mut Slices<'_, '_>, len: usize) {
        let buffer = self.0.get_or_insert_with(|| buffers.take());
        let at = buffer.len();
        buffer.set_len(at + len).expect("a buffer has room for a segment");
        slices.copy_to(&mut buffer[at..]);
        slices.advance(len);
    }

    /// Takes what was gathered, as a message.
    pub fn take(&mut self) -> Option<Data> {
        self.0.take().map(Data::from)
    }
}

/// Copies the next `len` bytes into the request itself if they are few, or into a buffer.
pub(super) fn message(buffers: &Buffers, slices: &Slices<'_, '_>, len: usize) -> Data {
    if len <= MOST_INLINE {
        let mut few = [0; MOST_INLINE];
        slices.copy_to(&mut few[..len]);
        return Inline::new(&few[..len]).expect("so many have room").into();
    }
    if len <= MOST_APART {
        let mut bytes = vec![0; len];
        slices.copy_to(&mut bytes);
        return Buf::from(bytes).into();
    }
    let mut buffer = buffers.take();
    buffer.set_len(len).expect("a buffer has room for a segment");
    slices.copy_to(&mut buffer);
    buffer.into()
}
