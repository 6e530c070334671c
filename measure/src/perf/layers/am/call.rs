//! A call and its answer, again and again.

use anyhow::bail;
use bytes::Bytes;
use doorbell_am::Peer;

use super::messages::{COUNTED, END, Messages, Said};
use crate::perf::Plan;
use crate::perf::figures::Quantity;
use crate::perf::figures::latencies::Latencies;
use crate::perf::layers::verbs::Beat;

/// Calls a handler by its place, which replies.
pub async fn run<A: Said>(
    peer: &Peer,
    messages: &Messages<A>,
    plan: &Plan,
    beat: &Beat,
) -> anyhow::Result<(u64, Quantity)> {
    rounds(peer, messages, plan, beat, async |round, words, times| {
        let payload = messages.payload(round);
        times.resume();
        let reply = peer.call_with(Messages::<A>::PING, words, payload).await?;
        times.lap();
        Ok(messages.are(round, reply.words(), reply.payload()))
    })
    .await
}

/// Calls a handler by its name, which returns the answer.
pub async fn run_typed<A: Said>(
    peer: &Peer,
    messages: &Messages<A>,
    plan: &Plan,
    beat: &Beat,
) -> anyhow::Result<(u64, Quantity)> {
    rounds(peer, messages, plan, beat, async |round, words, times| {
        let payload = messages.payload(round);
        if payload.is_empty() {
            times.resume();
            let answer = peer.call(Messages::<A>::CALL, words).await?;
            times.lap();
            return Ok(messages.are(round, answer.words().iter().copied(), &[]));
        }
        let payload = Bytes::copy_from_slice(payload);
        times.resume();
        let answer = peer.call(Messages::<A>::CALL_BYTES, payload).await?;
        times.lap();
        Ok(messages.are(round, std::iter::empty(), &answer))
    })
    .await
}

/// Calls again and again, with the words of each round, and checks that each answer was right.
async fn rounds<A: Said>(
    peer: &Peer,
    messages: &Messages<A>,
    plan: &Plan,
    beat: &Beat,
    mut call: impl AsyncFnMut(u64, A, &mut Latencies) -> anyhow::Result<bool>,
) -> anyhow::Result<(u64, Quantity)> {
    let mut times = Latencies::new(plan.amount, plan.meter());
    let mut next = messages.words(0);
    for round in 0.. {
        if round > 0 && plan.amount.is_over(round, || times.passed()) {
            break;
        }
        // Those of the next are made while there is time.
        let words = next;
        next = messages.words(round + 1);
        if !call(round, words, &mut times).await? {
            bail!("the answer to call {round} is not what it should be");
        }
        beat.count();
    }
    ended(peer, times).await
}

/// Asks the other end whether all of that came, and as it should.
async fn ended(peer: &Peer, mut times: Latencies) -> anyhow::Result<(u64, Quantity)> {
    let (count, wrong) = peer.call(END, ()).await?.arguments(COUNTED)?;
    if (count, wrong) != (times.len(), 0) {
        bail!("of {} calls {count} came, and {wrong} of them were wrong", times.len());
    }
    Ok((times.len(), Quantity::Latency(times.summary(2))))
}
