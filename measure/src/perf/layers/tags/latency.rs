//! A message there and one back, again and again.

use anyhow::bail;
use doorbell_messages::{Match, Peer as Other, Receiving};

use super::end::{DATA, END, End};
use crate::perf::figures::Quantity;
use crate::perf::figures::latencies::Latencies;

/// Sends messages, and receives each as it comes back.
pub async fn lead(end: &End<'_>, other: &Other) -> anyhow::Result<(u64, Quantity)> {
    let &End { endpoint, messages, plan, beat } = end;
    let _others = others(end);
    let mut times = Latencies::new(plan.amount, plan.meter());
    for round in 0.. {
        if round > 0 && plan.amount.is_over(round, || times.passed()) {
            break;
        }
        let body = messages.body(round);
        times.resume();
        let back = endpoint.receive(Match::exactly(DATA));
        let sent = other.send(DATA, body);
        let back = back.await?;
        times.lap();
        sent.await?;
        if !messages.is(round, &back.body) {
            bail!("message {round} did not come back as it should");
        }
        beat.count();
    }
    end.say_end(other, times.len()).await?;
    Ok((times.len(), Quantity::Latency(times.summary(2))))
}

/// Receives messages, and sends each back.
pub async fn follow(end: &End<'_>) -> anyhow::Result<()> {
    let &End { endpoint, messages, beat, .. } = end;
    let _others = others(end);
    let (mut count, mut wrong) = (0, 0);
    loop {
        let message = endpoint.receive(Match::any()).await?;
        if message.bits == END {
            return end.answer_end(&message, wrong, count).await;
        }
        wrong += u64::from(!messages.is(count, &message.body));
        count += 1;
        message.from.send(DATA, message.body).await?;
        beat.count();
    }
}

/// Posts the receives that take none of the messages. Each has a mask of its own, so that a message
/// is compared with every one of them.
fn others(end: &End<'_>) -> Vec<Receiving> {
    let others = (0..end.plan.posted as u64).map(|low| {
        let top = 1 << 63;
        end.endpoint.receive(Match::bits(top).mask(top | low))
    });
    others.collect()
}
