//! Payloads of messages that were received.

use std::fmt;

use bytes::Bytes;

/// The payload of a received message, of which [`Arguments::take`](crate::Arguments::take) makes
/// values.
pub struct Payload<'m>(Holder<'m>);

/// A received message that gives its payload away.
pub(crate) trait HasPayload {
    /// Returns the bytes, in the buffer in which they were received.
    fn payload(&self) -> &[u8];

    /// Takes the bytes, and leaves an empty payload.
    fn take_payload(&mut self) -> Bytes;
}

enum Holder<'m> {
    Received(&'m mut dyn HasPayload),
    Bytes(&'m [u8]),
}

impl<'m> Payload<'m> {
    /// Makes the payload of a message that was received.
    #[inline]
    pub(crate) fn of(received: &'m mut dyn HasPayload) -> Self {
        Self(Holder::Received(received))
    }

    /// Makes a payload of the program's own memory, for tests of a type of arguments.
    pub fn new(bytes: &'m [u8]) -> Self {
        Self(Holder::Bytes(bytes))
    }

    /// Returns the bytes, in the buffer in which they were received.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Holder::Received(received) => received.payload(),
            Holder::Bytes(bytes) => bytes,
        }
    }

    /// Takes the bytes, and leaves an empty payload. Bytes that came in a packet of their own and
    /// fill a quarter of the buffer in which they were received are not copied: the buffer goes
    /// along, and comes back to the endpoint when the last of its `Bytes` is dropped.
    pub fn take(&mut self) -> Bytes {
        match &mut self.0 {
            Holder::Received(received) => received.take_payload(),
            Holder::Bytes(bytes) => Bytes::copy_from_slice(std::mem::take(bytes)),
        }
    }
}

impl fmt::Debug for Payload<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.as_slice().len())
    }
}
