//! Bytes of a message that are held back until they fill a packet.

use doorbell_am::{Arguments, Credit, Gathered, Peer, RequestId, SendError};

/// Bytes that are held back: a few in memory of the message, and more in the buffer that their
/// packet leaves from, if packets to the peer leave from buffers.
#[derive(Default, Debug)]
pub struct Held {
    few: Vec<u8>,
    /// The buffer, which has all bytes once it is there.
    buffer: Option<Gathered>,
    /// Whether packets to the peer leave from no buffers, as was found.
    has_no_buffers: bool,
}

/// The bytes of a packet that is to be sent.
pub enum Outgoing<'b> {
    Slice(&'b [u8]),
    /// The bytes of a message that were held back, which are sent from their buffer.
    Held(&'b mut Held),
}

/// The most bytes that are held without a buffer. Packets of so few bytes leave together with
/// others.
const FEW: usize = 1024;

impl Held {
    /// Holds bytes in memory that another message has used.
    pub fn using(spare: Vec<u8>) -> Self {
        Self { few: spare, ..Self::default() }
    }

    /// Returns the bytes that are held back.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&self.few, Gathered::payload)
    }

    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Holds bytes behind the others, for a packet with so many words. The caller holds no more than
    /// fit into a packet.
    pub fn extend(&mut self, bytes: &[u8], peer: &Peer, words: usize) {
        let is_due = self.buffer.is_none() && !self.has_no_buffers;
        if is_due && self.few.len() + bytes.len() > FEW {
            self.buffer = peer.gather(words);
            self.has_no_buffers = self.buffer.is_none();
            if let Some(buffer) = &mut self.buffer {
                buffer.extend_from_slice(&self.few);
                self.few.clear();
            }
        }
        match &mut self.buffer {
            Some(buffer) => buffer.extend_from_slice(bytes),
            None => self.few.extend_from_slice(bytes),
        }
    }

    /// Sends the bytes as the payload of a request, and holds none then.
    pub fn leave<A: Arguments>(
        &mut self,
        credit: Credit<'_>,
        id: RequestId<A>,
        arguments: A,
    ) -> Result<(), SendError> {
        if let Some(buffer) = self.buffer.take() {
            return credit.request_gathered(id, arguments, buffer);
        }
        let sent = credit.request_with(id, arguments, &self.few);
        self.few.clear();
        sent
    }

    /// Returns the memory for few bytes, which another message may use.
    pub fn take_spare(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.few)
    }
}

impl Outgoing<'_> {
    pub fn len(&self) -> usize {
        match self {
            Self::Slice(bytes) => bytes.len(),
            Self::Held(held) => held.len(),
        }
    }

    /// Sends the bytes as the payload of a request.
    pub fn leave<A: Arguments>(
        self,
        credit: Credit<'_>,
        id: RequestId<A>,
        arguments: A,
    ) -> Result<(), SendError> {
        match self {
            Self::Slice(bytes) => credit.request_with(id, arguments, bytes),
            Self::Held(held) => held.leave(credit, id, arguments),
        }
    }
}
