//! Tagged messages, as a program on Tokio sends and receives them: there and back, as a stream into
//! receives that are posted ahead, and as a stream that no receive waits for.
//!
//! The end that leads sends, and the other receives. The last message of a test says how many there
//! were, and is answered with how many came, and how many of them were wrong.

mod latency;
mod stream;

use anyhow::{Context, bail};
use bytes::Bytes;
use doorbell_am::{Bundle, BundleConfig};
use doorbell_messages::{Endpoint, Match, Peer as Other};
use serde_json::json;

use super::figures::{Figures, Found};
use super::pattern::{Pattern, wholly};
use super::peer::Peer;
use super::test::Tags;
use super::verbs::{Guard, open};
use super::{Place, Plan};

/// The match bits of what is measured.
const DATA: u64 = 1;
/// The match bits of the last message of a test.
const END: u64 = 2;
/// The match bits of the answer to the last message.
const COUNTED: u64 = 3;

/// Runs one end of a test.
pub fn run(
    test: Tags,
    plan: &Plan,
    peer: &mut Peer,
    place: &Place<'_>,
) -> anyhow::Result<Option<Figures>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("a runtime")?.block_on(play(test, plan, peer, place))
}

async fn play(
    test: Tags,
    plan: &Plan,
    peer: &mut Peer,
    place: &Place<'_>,
) -> anyhow::Result<Option<Figures>> {
    let nic = open(plan, place)?;
    let guard = Guard::over(&nic, peer)?;
    let bundle = Bundle::new(&nic, &BundleConfig::default())?;
    let builder = Endpoint::builder().longest(plan.size.max(1 << 20));
    let endpoint = guard.run(async { Ok(builder.open_on(&bundle).await?) }).await?;
    let (beat, messages) = (guard.beat(), Messages::new(plan.size));
    let end = End { endpoint: &endpoint, messages: &messages, plan, beat: &beat };
    let figures = if peer.leads() {
        let name = peer.hear()?;
        let name = name.as_str().context("the other end's name is no text")?;
        let found = guard.run(async {
            let other = endpoint.connect(name).await?;
            let (iters, found) = match test {
                Tags::Lat => latency::lead(&end, &other).await?,
                Tags::Bw => stream::lead(&end, &other, false).await?,
                Tags::UnexpectedBw => stream::lead(&end, &other, true).await?,
            };
            Ok((iters, found))
        });
        let (iters, found): (u64, Found) = found.await?;
        Some(Figures { device: Some(nic.capabilities().name), iters, found })
    } else {
        peer.tell(&json!(endpoint.name().to_string()))?;
        let followed = guard.run(async {
            match test {
                Tags::Lat => latency::follow(&end).await,
                Tags::Bw => stream::follow(&end).await,
                Tags::UnexpectedBw => stream::follow_unexpected(&end).await,
            }
        });
        followed.await?;
        None
    };
    peer.meet(|| {
        bundle.poll(true);
        Ok(())
    })?;
    Ok(figures)
}

/// An end of a test of tagged messages, with what its loops need.
struct End<'p> {
    endpoint: &'p Endpoint,
    messages: &'p Messages,
    plan: &'p Plan,
    beat: &'p super::verbs::Beat,
}

impl End<'_> {
    /// Tells the other end how many messages were sent, and waits for the answer. Fails unless all
    /// of them came, and as they should.
    async fn say_end(&self, other: &Other, sent: u64) -> anyhow::Result<()> {
        other.send(END, sent.to_be_bytes().to_vec()).await?;
        let answer = self.endpoint.receive(Match::exactly(COUNTED)).await?.body;
        let [count, wrong] = [0, 8].map(|at| word_at(&answer, at));
        if (count, wrong) != (sent, 0) {
            bail!("of {sent} messages {count} came, and {wrong} of them were wrong");
        }
        Ok(())
    }

    /// Hears how many messages were sent, and says how many came, and how many of them were wrong.
    async fn answer_end(
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

fn word_at(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..)
        .and_then(|bytes| bytes.first_chunk())
        .map_or(u64::MAX, |word| u64::from_be_bytes(*word))
}

/// The bodies of messages.
struct Messages {
    pattern: Pattern,
    /// The bytes of the pattern, of which bodies are parts.
    bytes: Bytes,
    size: usize,
}

impl Messages {
    fn new(size: usize) -> Self {
        let pattern = Pattern::new(size);
        let bytes = Bytes::copy_from_slice(pattern.all());
        Self { pattern, bytes, size }
    }

    /// Returns the body of the message with this number, which is no copy.
    #[inline]
    fn body(&self, number: u64) -> Bytes {
        let at = self.pattern.place_of(number);
        self.bytes.slice(at..at + self.size)
    }

    /// Returns whether bytes are the body of the message with this number. Not all messages are
    /// compared [wholly].
    #[inline]
    fn is(&self, number: u64, body: &[u8]) -> bool {
        let expected = self.pattern.of(number, self.size);
        if wholly(self.size, number) {
            return body == expected;
        }
        body.len() == expected.len()
            && body.first_chunk::<8>() == expected.first_chunk()
            && body.last_chunk::<8>() == expected.last_chunk()
    }
}
