//! Payloads of messages that were received.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use doorbell_verbs::Buf;

use crate::arrival::Arrival;
use crate::buffers::Buffers;
use crate::reply::Reply;

/// A payload of so few bytes is copied out of the buffer in which it was received, which then serves
/// for other messages.
pub(crate) const FEW: usize = 64;

/// The payload of a message, where it was received. [`Arguments::take`](crate::Arguments::take) makes
/// values of it.
pub struct Payload<'m>(Holder<'m>);

enum Holder<'m> {
    Request { arrival: &'m mut Arrival, buffers: &'m Arc<Buffers> },
    Reply(&'m mut Reply),
    Bytes(&'m [u8]),
}

impl<'m> Payload<'m> {
    /// The payload of a request.
    #[inline]
    pub(crate) fn of_request(arrival: &'m mut Arrival, buffers: &'m Arc<Buffers>) -> Self {
        Self(Holder::Request { arrival, buffers })
    }

    /// The payload of a reply.
    #[inline]
    pub(crate) fn of_reply(reply: &'m mut Reply) -> Self {
        Self(Holder::Reply(reply))
    }

    /// A payload that lies in memory of the program's own, for tests of a type of arguments.
    pub fn new(bytes: &'m [u8]) -> Self {
        Self(Holder::Bytes(bytes))
    }

    /// The bytes, where they were received.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Holder::Request { arrival, .. } => arrival.payload(),
            Holder::Reply(reply) => reply.payload(),
            Holder::Bytes(bytes) => bytes,
        }
    }

    /// Takes the bytes, and leaves none. More than 64 bytes that came in a packet of their own are not
    /// copied: the buffer in which they were received goes along, and comes back to the endpoint when
    /// the last of its `Bytes` is dropped.
    pub fn take(&mut self) -> Bytes {
        match &mut self.0 {
            Holder::Request { arrival, buffers } => arrival.take_payload(buffers),
            Holder::Reply(reply) => reply.take_payload(),
            Holder::Bytes(bytes) => Bytes::copy_from_slice(std::mem::take(bytes)),
        }
    }
}

impl fmt::Debug for Payload<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.as_slice().len())
    }
}

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
