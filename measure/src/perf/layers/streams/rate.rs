//! Messages one way, and the pieces of long messages.

use std::time::{Duration, Instant};

use doorbell_messages::streams::Peer;

use super::handlers::{END, NOTE, PIECES};
use crate::perf::figures::Quantity;
use crate::perf::layers::verbs::Beat;
use crate::perf::shared::pattern::Pattern;
use crate::perf::{Amount, Plan};

/// Messages or pieces between looks at the clock.
const A_LOOK: u64 = 256;

/// The pieces of a message, if time decides how many there are in all.
const A_MESSAGE: u64 = 1 << 14;

/// Sends messages of one piece.
pub async fn messages(to: &Peer, plan: &Plan, beat: &Beat) -> anyhow::Result<(u64, Quantity)> {
    let (pattern, meter, began) = (Pattern::new(plan.size), plan.meter(), Instant::now());
    let mut sent = 0;
    while !is_over(plan.amount, sent, || began.elapsed()) {
        let mut message = to.begin(NOTE).await?;
        message.send(pattern.of(sent, plan.size)).await?;
        message.end().await?;
        sent += 1;
        if sent.is_multiple_of(A_LOOK) {
            beat.count();
            meter.at(sent, began.elapsed());
        }
    }
    end(to, sent).await?;
    Ok((sent, Quantity::Rate(sent as f64 / began.elapsed().as_secs_f64())))
}

/// Sends messages of many pieces.
pub async fn pieces(to: &Peer, plan: &Plan, beat: &Beat) -> anyhow::Result<(u64, Quantity)> {
    let (pattern, meter, began) = (Pattern::new(plan.size), plan.meter(), Instant::now());
    let mut sent = 0;
    let left = |sent| match plan.amount {
        Amount::Times(times) => A_MESSAGE.min(times - sent),
        Amount::For(time) if began.elapsed() >= time => 0,
        Amount::For(_) => A_MESSAGE,
    };
    loop {
        let count = left(sent);
        if count == 0 {
            break;
        }
        let mut message = to.begin(PIECES).await?;
        message.send(count.to_be_bytes()).await?;
        for number in 0..count {
            message.send(pattern.of(number, plan.size)).await?;
            if number.is_multiple_of(A_LOOK) {
                beat.count();
                meter.at(sent + number, began.elapsed());
            }
        }
        message.end().await?;
        sent += count;
    }
    end(to, sent).await?;
    Ok((sent, Quantity::Rate(sent as f64 / began.elapsed().as_secs_f64())))
}

/// Returns whether so many messages, or the time, are as many as the plan says.
pub fn is_over(amount: Amount, sent: u64, passed: impl FnOnce() -> Duration) -> bool {
    match amount {
        Amount::Times(times) => sent >= times,
        Amount::For(time) => sent > 0 && sent.is_multiple_of(A_LOOK) && passed() >= time,
    }
}

/// Asks the other end whether all messages came, and as they should.
pub async fn end(to: &Peer, sent: u64) -> anyhow::Result<()> {
    let mut message = to.begin(END).await?;
    message.send(sent.to_be_bytes()).await?;
    Ok(message.end_handled().await?)
}
