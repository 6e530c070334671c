//! An end of a test of tagged messages, and the bodies of the messages.

use anyhow::bail;
use bytes::Bytes;
use doorbell_messages::{Endpoint, Match, Peer as Other};

use crate::perf::Plan;
use crate::perf::layers::verbs::Beat;
use crate::perf::shared::pattern::{Pattern, wholly};

/// The match bits of what is measured.
pub const DATA: u64 = 1;
/// The match bits of the last message of a test.
pub const END: u64 = 2;
/// The match bits of the answer to the last message.
const COUNTED: u64 = 3;

/// An end of a test of tagged messages, with what its loops need.
pub struct End<'p> {
    pub endpoint: &'p Endpoint,
    pub messages: &'p Messages,
    pub plan: &'p Plan,
    pub beat: &'p Beat,
}

impl End<'_> {
    /// Tells the other end how many messages were sent, and waits for the answer. Fails unless all
    /// of them came, and as they should.
    pub async fn say_end(&self, other: &Other, sent: u64) -> anyhow::Result<()> {
        other.send(END, sent.to_be_bytes().to_vec()).await?;
        let answer = self.endpoint.receive(Match::exactly(COUNTED)).await?.body;
        let [count, wrong] = [0, 8].map(|at| word_at(&answer, at));
        if (count, wrong) != (sent, 0) {
            bail!("of {sent} messages {count} came, and {wrong} of them were wrong");
        }
        Ok(())
    }

    /// Hears how many messages were sent, and says how many came, and how many of them were wrong.
    pub async fn answer_end(
        &self,
        end: &doorbell_messages::Message,
        wrong: u64,
        came: u64,
    ) -> anyhow::Result<()> {
        let counted = [came, wrong].into_iter().flat_map(u64::to_be_bytes);
        end.from.send(COUNTED, counted.collect::<Vec<_>>()).await?;
        match wrong {
            0 => Ok(()),
            wrong => bail!("{wrong} messages are not what they should be"),
        }
    }
}

pub fn word_at(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..)
        .and_then(|bytes| bytes.first_chunk())
        .map_or(u64::MAX, |word| u64::from_be_bytes(*word))
}

/// The bodies of messages.
pub struct Messages {
    pattern: Pattern,
    /// The bytes of the pattern, of which bodies are parts.
    bytes: Bytes,
    size: usize,
}

impl Messages {
    pub fn new(size: usize) -> Self {
        let pattern = Pattern::new(size);
        let bytes = Bytes::copy_from_slice(pattern.all());
        Self { pattern, bytes, size }
    }

    /// Returns the body of the message with this number, which is no copy.
    #[inline]
    pub fn body(&self, number: u64) -> Bytes {
        let at = self.pattern.place_of(number);
        self.bytes.slice(at..at + self.size)
    }

    /// Returns whether bytes are the body of the message with this number. Not all messages are
    /// compared [wholly].
    #[inline]
    pub fn is(&self, number: u64, body: &[u8]) -> bool {
        let expected = self.pattern.of(number, self.size);
        if wholly(self.size, number) {
            return body == expected;
        }
        body.len() == expected.len()
            && body.first_chunk::<8>() == expected.first_chunk()
            && body.last_chunk::<8>() == expected.last_chunk()
    }
}
