//! Names of streams, by which a message finds its handler.

use std::fmt;

/// The name of a stream, which both sides declare. A message of the stream runs the handler that
/// its receiver has [for that name](super::EndpointBuilder::handler).
///
/// ```
/// use doorbell_messages::streams::StreamId;
///
/// const FILE: StreamId = StreamId::new("file");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamId {
    name: &'static str,
    number: u64,
}

impl StreamId {
    /// Makes the identifier of a stream by its name.
    pub const fn new(name: &'static str) -> Self {
        let (bytes, mut number, mut at) = (name.as_bytes(), 0xcbf2_9ce4_8422_2325_u64, 0);
        while at < bytes.len() {
            number = (number ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
            at += 1;
        }
        Self { name, number }
    }

    /// Returns the name of the stream.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Returns the number that stands for the name on the wire: the name's FNV-1a hash.
    pub(super) const fn number(self) -> u64 {
        self.number
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StreamId").field(&self.name).finish()
    }
}
