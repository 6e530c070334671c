//! Received messages.

use doorbell_core::memory::Buf;
use doorbell_core::nic::{Attachment, Completion, Done};
use doorbell_core::wire::Imm;

use crate::error::Failed;

/// A received message, or the notice of a write with an immediate or metadata.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The bytes of the message; empty for a write, whose bytes are where the peer has written
    /// them. The buffer's spare room comes behind the bytes. It becomes [`Bytes`](Buf::into_bytes)
    /// or a `Vec<u8>` without a copy.
    pub data: Buf,
    /// The number of bytes that were received, or written.
    pub len: u32,
    /// The immediate or the metadata that came with the message.
    pub attached: Attachment,
    /// Whether the message is the notice of a write, which uses up a receive without filling its
    /// buffer.
    pub is_write: bool,
}

impl Message {
    /// Returns the immediate that came with the message.
    pub fn imm(&self) -> Option<Imm> {
        self.attached.imm()
    }

    pub(crate) fn of(completion: Completion) -> Result<Self, Failed> {
        let Completion { outcome, len, attached, memory, .. } = completion;
        match outcome {
            Ok(done) => {
                let is_write = matches!(done, Done::ReceivedWrite);
                Ok(Self { data: memory.into_buf(), len, attached, is_write })
            }
            Err(why) => Err(Failed::of(why, memory)),
        }
    }
}
