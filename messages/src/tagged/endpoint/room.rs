//! Where the bodies of messages go: memory of the endpoint, or the program's.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::message::{Message, Received};
use super::peer::Peer;
use super::places::Held;
use crate::tagged::pull::{RegionPart, Target};

/// Memory of the program that [`Endpoint::receive_into`](super::Endpoint::receive_into) fills with
/// the body of a message.
///
/// | memory | how the body comes there |
/// |---|---|
/// | `&mut [u8]` | it is copied when the program takes the outcome |
/// | `Vec<BytesMut>`, `[BytesMut; N]` | the same; each is filled to its capacity, behind what it contains, before the next is |
/// | [`RegionPart`], `Vec<RegionPart>` | a long body, which is pulled from its sender, comes straight there, without another copy; a shorter one is copied |
///
/// The trait is implemented by these alone.
#[diagnostic::on_unimplemented(
    message = "no message is received into a `{Self}`",
    note = "receive into `&mut [u8]`, `Vec<BytesMut>`, `[BytesMut; N]`, `RegionPart` or \
            `Vec<RegionPart>`: of an array or a vector of bytes, give `&mut bytes[..]`"
)]
pub trait Room: sealed::Fill {}

/// Memory that the endpoint finds for the body of a message: [`Message::body`].
#[derive(Clone, Copy, Debug)]
pub struct Anywhere;

pub(super) mod sealed {
    use super::{Arc, Bytes, Held, Peer, Target};

    /// Memory that a body is put into, as a receive does that.
    pub trait Fill: Unpin {
        /// The body as long as it is not a message's.
        type Body;
        /// The message as the program gets it.
        type Message;

        /// Returns how many bytes there is room for.
        fn room(&self) -> usize;

        /// Returns the memory if long bodies are to come straight there.
        fn target(&self) -> Option<Arc<Target>> {
            None
        }

        /// Takes the body of a short message.
        fn take_short(&mut self, held: &Held<'_>) -> Self::Body;

        /// Takes a body that has come, which is not longer than there is room for.
        fn take(&mut self, body: Bytes) -> Self::Body;

        /// Takes a body of `len` bytes that has come to the [target](Self::target).
        fn is_in_place(&mut self, len: usize) -> Self::Body;

        /// Makes what the program gets.
        fn message(self, bits: u64, body: Self::Body, from: Peer) -> Self::Message;
    }
}

use sealed::Fill;

impl Room for Anywhere {}

impl Fill for Anywhere {
    type Body = Bytes;
    type Message = Message;

    fn room(&self) -> usize {
        usize::MAX
    }

    #[inline(always)]
    fn take_short(&mut self, held: &Held<'_>) -> Bytes {
        held.to_bytes()
    }

    #[inline]
    fn take(&mut self, body: Bytes) -> Bytes {
        body
    }

    fn is_in_place(&mut self, _: usize) -> Bytes {
        Bytes::new()
    }

    #[inline(always)]
    fn message(self, bits: u64, body: Bytes, from: Peer) -> Message {
        Message { bits, body, from }
    }
}

/// Memory that the program gets back with the message.
trait Memory: Unpin {
    fn room(&self) -> usize;

    fn target(&self) -> Option<Arc<Target>> {
        None
    }

    /// Copies a body there that there is room for.
    fn fill(&mut self, body: &[u8]);
}

impl<M: Memory> Room for M {}

impl<M: Memory> Fill for M {
    type Body = usize;
    type Message = Received<M>;

    fn room(&self) -> usize {
        Memory::room(self)
    }

    fn target(&self) -> Option<Arc<Target>> {
        Memory::target(self)
    }

    #[inline]
    fn take_short(&mut self, held: &Held<'_>) -> usize {
        let mut bytes = [0; Held::MOST];
        held.copy_to(&mut bytes);
        self.fill(&bytes[..held.len()]);
        held.len()
    }

    fn take(&mut self, body: Bytes) -> usize {
        self.fill(&body);
        body.len()
    }

    fn is_in_place(&mut self, len: usize) -> usize {
        len
    }

    fn message(self, bits: u64, len: usize, from: Peer) -> Received<M> {
        Received { bits, len, into: self, from }
    }
}

impl Memory for &mut [u8] {
    fn room(&self) -> usize {
        self.len()
    }

    #[inline]
    fn fill(&mut self, body: &[u8]) {
        self[..body.len()].copy_from_slice(body);
    }
}

impl Memory for Vec<BytesMut> {
    fn room(&self) -> usize {
        room_of(self)
    }

    fn fill(&mut self, body: &[u8]) {
        scatter(self, body);
    }
}

impl<const N: usize> Memory for [BytesMut; N] {
    fn room(&self) -> usize {
        room_of(self)
    }

    fn fill(&mut self, body: &[u8]) {
        scatter(self, body);
    }
}

/// Returns how many more bytes pieces have room for.
fn room_of(pieces: &[BytesMut]) -> usize {
    pieces.iter().map(|piece| piece.capacity() - piece.len()).sum()
}

/// Scatters a body into pieces, of which each is filled before the next.
fn scatter(pieces: &mut [BytesMut], mut body: &[u8]) {
    for piece in pieces {
        let (part, rest) = body.split_at(body.len().min(piece.capacity() - piece.len()));
        piece.extend_from_slice(part);
        body = rest;
    }
}

impl Memory for RegionPart {
    fn room(&self) -> usize {
        self.len()
    }

    fn target(&self) -> Option<Arc<Target>> {
        Some(Arc::new(Target::new(vec![self.clone()])))
    }

    fn fill(&mut self, body: &[u8]) {
        RegionPart::fill(self, body);
    }
}

impl Memory for Vec<RegionPart> {
    fn room(&self) -> usize {
        self.iter().map(RegionPart::len).sum()
    }

    fn target(&self) -> Option<Arc<Target>> {
        Some(Arc::new(Target::new(self.clone())))
    }

    fn fill(&mut self, body: &[u8]) {
        self.iter().fold(body, |rest, part| part.fill(rest));
    }
}
