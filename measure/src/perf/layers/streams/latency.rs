//! A message there and one back, again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::bail;
use doorbell_messages::streams::{Endpoint, EndpointBuilder, Peer};

use super::handlers::{PING, PONG, is_right};
use super::rate::end;
use crate::perf::Plan;
use crate::perf::figures::Quantity;
use crate::perf::figures::latencies::Latencies;
use crate::perf::layers::verbs::Beat;
use crate::perf::shared::pattern::Pattern;

/// The messages that have come back.
#[derive(Default)]
pub struct Pongs {
    right: AtomicU64,
    came: AtomicU64,
}

/// The handlers of the end that leads.
pub fn leader(plan: &Plan) -> (EndpointBuilder, Arc<Pongs>) {
    let (size, pattern) = (plan.size, Arc::new(Pattern::new(plan.size)));
    let pongs = Arc::new(Pongs::default());
    let noted = pongs.clone();
    let builder = Endpoint::builder().handler(PONG, move |mut message| {
        let (pattern, pongs) = (pattern.clone(), noted.clone());
        async move {
            let body = message.receive(size).await?;
            let number = pongs.right.load(Ordering::Relaxed);
            if is_right(&pattern, number, &body, size) {
                pongs.right.store(number + 1, Ordering::Relaxed);
            }
            pongs.came.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    });
    (builder, pongs)
}

pub async fn run(
    endpoint: &Endpoint,
    to: &Peer,
    pongs: Arc<Pongs>,
    plan: &Plan,
    beat: &Beat,
) -> anyhow::Result<(u64, Quantity)> {
    let pattern = Pattern::new(plan.size);
    let mut times = Latencies::new(plan.amount, plan.meter());
    for round in 0.. {
        if round > 0 && plan.amount.is_over(round, || times.passed()) {
            break;
        }
        let body = pattern.of(round, plan.size);
        times.resume();
        let mut message = to.begin(PING).await?;
        message.send(body).await?;
        message.end().await?;
        let came = || (pongs.came.load(Ordering::Relaxed) > round).then_some(());
        endpoint.wait_until(came).await;
        times.lap();
        if pongs.right.load(Ordering::Relaxed) != round + 1 {
            bail!("the message back of {round} is not what it should be");
        }
        beat.count();
    }
    end(to, times.len()).await?;
    Ok((times.len(), Quantity::Latency(times.summary(2))))
}
