//! Messages with tags, by the layer that stands on streams.

use std::time::Instant;

use anyhow::{bail, ensure};
use doorbell_messages::streams::{Endpoint, Peer};

use super::handlers::is_right;
use super::matching::{Matching, Receive, send};
use super::rate::is_over;
use crate::perf::Plan;
use crate::perf::figures::Quantity;
use crate::perf::figures::latencies::Latencies;
use crate::perf::layers::verbs::Beat;
use crate::perf::shared::pattern::Pattern;

/// The tag of all messages but the last.
const TAG: u64 = 7;
/// The tag of the last message, whose body is the number of the others, and of what says how many
/// were right.
const LAST: u64 = 8;

/// How many receives are posted ahead.
const AHEAD: usize = 64;

/// Sends messages and waits for each to come back.
pub async fn latency(
    endpoint: &Endpoint,
    to: &Peer,
    matching: &Matching,
    plan: &Plan,
    beat: &Beat,
) -> anyhow::Result<(u64, Quantity)> {
    let pattern = Pattern::new(plan.size);
    let mut times = Latencies::new(plan.amount, plan.meter());
    let mut buffer = vec![0; plan.size];
    for round in 0.. {
        if round > 0 && plan.amount.is_over(round, || times.passed()) {
            break;
        }
        let body = pattern.of(round, plan.size);
        times.resume();
        matching.post(Receive { tag: TAG, buffer });
        send(to, TAG, round, body).await?;
        let done = endpoint.wait_until(|| matching.take_done()).await;
        times.lap();
        ensure!(is_right(&pattern, round, &done.buffer, plan.size), "message {round} is wrong");
        buffer = done.buffer;
        beat.count();
    }
    end(endpoint, to, matching, times.len()).await?;
    Ok((times.len(), Quantity::Latency(times.summary(2))))
}

/// Sends messages one way.
pub async fn rate(
    endpoint: &Endpoint,
    to: &Peer,
    matching: &Matching,
    plan: &Plan,
    beat: &Beat,
) -> anyhow::Result<(u64, Quantity)> {
    let (pattern, meter, began) = (Pattern::new(plan.size), plan.meter(), Instant::now());
    let mut sent = 0;
    while !is_over(plan.amount, sent, || began.elapsed()) {
        send(to, TAG, sent, pattern.of(sent, plan.size)).await?;
        sent += 1;
        if sent.is_multiple_of(256) {
            beat.count();
            meter.at(sent, began.elapsed());
        }
    }
    end(endpoint, to, matching, sent).await?;
    Ok((sent, Quantity::Rate(sent as f64 / began.elapsed().as_secs_f64())))
}

/// Asks the other end how many messages came as they should.
async fn end(endpoint: &Endpoint, to: &Peer, matching: &Matching, sent: u64) -> anyhow::Result<()> {
    matching.post(Receive { tag: LAST, buffer: vec![0; 8] });
    send(to, LAST, sent, &sent.to_be_bytes()).await?;
    let told = endpoint.wait_until(|| matching.take_done()).await;
    let right = u64::from_be_bytes(told.buffer[..].try_into()?);
    ensure!(right == sent, "of {sent} messages {right} came as they should");
    Ok(())
}

/// Receives messages at the end that follows, and sends them `back` or not, until the last.
pub async fn follow(
    endpoint: &Endpoint,
    to: &Peer,
    matching: &Matching,
    plan: &Plan,
    back: bool,
    beat: &Beat,
) -> anyhow::Result<()> {
    let pattern = Pattern::new(plan.size);
    let (mut right, mut last) = (0, None);
    let mut came = 0;
    while last.is_none_or(|last| came < last) {
        let Receive { tag, buffer } = endpoint.wait_until(|| matching.take_done()).await;
        if tag == LAST {
            last = Some(u64::from_be_bytes(buffer[..].try_into()?));
            continue;
        }
        right += u64::from(is_right(&pattern, came, &buffer, plan.size));
        if back {
            send(to, TAG, came, &buffer).await?;
        }
        came += 1;
        matching.post(Receive { tag: TAG, buffer });
        beat.count();
    }
    send(to, LAST, 0, &right.to_be_bytes()).await?;
    if right != came {
        bail!("of {came} messages {right} were right");
    }
    Ok(())
}

/// Posts the receives of the end that follows.
pub fn post_ahead(matching: &Matching, plan: &Plan) {
    for _ in 0..AHEAD {
        matching.post(Receive { tag: TAG, buffer: vec![0; plan.size] });
    }
    matching.post(Receive { tag: LAST, buffer: vec![0; 8] });
}
