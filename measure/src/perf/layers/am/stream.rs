//! Requests one way, as fast as credits come back.

use std::time::Instant;

use anyhow::bail;
use doorbell_am::Peer;

use super::messages::{COUNTED, END, Messages, Said};
use crate::perf::figures::Quantity;
use crate::perf::layers::verbs::Beat;
use crate::perf::{Amount, Plan};

/// Messages between looks at the clock.
const A_LOOK: u64 = 256;

pub async fn run<A: Said>(
    peer: &Peer,
    messages: &Messages<A>,
    plan: &Plan,
    beat: &Beat,
) -> anyhow::Result<(u64, Quantity)> {
    let (meter, began) = (plan.meter(), Instant::now());
    let mut sent = 0;
    loop {
        let (words, payload) = (messages.words(sent), messages.payload(sent));
        peer.request_with(Messages::<A>::NOTE, words, payload).await?;
        sent += 1;
        if sent.is_multiple_of(A_LOOK) {
            beat.count();
            meter.at(sent, began.elapsed());
        }
        let over = match plan.amount {
            Amount::Times(times) => sent >= times,
            Amount::For(time) => sent.is_multiple_of(A_LOOK) && began.elapsed() >= time,
        };
        if over {
            break;
        }
    }
    // As long as what it follows: where sizes have ways of their own, it goes the same.
    let ended = peer.call_with(END, (), messages.payload(0)).await?;
    let (count, wrong) = ended.arguments(COUNTED)?;
    let took = began.elapsed();
    if (count, wrong) != (sent, 0) {
        bail!("of {sent} requests {count} came, and {wrong} of them were wrong");
    }
    Ok((sent, Quantity::Rate(sent as f64 / took.as_secs_f64())))
}
