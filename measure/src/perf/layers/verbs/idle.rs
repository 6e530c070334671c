//! The processor time of a program that is connected and waits for a message that does not come.

use std::time::Instant;

use anyhow::{Context, bail};
use doorbell_verbs::{QueuePairConfig, Region, Rights};
use serde_json::json;

use super::end::End;
use crate::perf::ends::peer::Peer;
use crate::perf::figures::Quantity;
use crate::perf::shared::processor_time::processor_time;
use crate::perf::{Amount, Plan};

/// Returns the share of a processor that an idle end uses, of the two ends the larger. The share
/// includes what this command does while it waits: it looks at the other end ten times a second.
pub async fn run(
    end: &mut End,
    plan: &Plan,
    peer: &mut Peer,
) -> anyhow::Result<Option<(u64, Quantity)>> {
    let Amount::For(time) = plan.amount else { bail!("idle_nic_cpu is for a time: --seconds") };
    let memory = end.domain.register(Region::new(8), Rights::REMOTE)?;
    let own = end.domain.queue_pair(&QueuePairConfig::default())?;
    let (pair, _) = end.join(own, &memory).await?;
    // A task of its own, because a wait that is polled for another reason, here the timer, looks
    // for its message and spins.
    let mut waits = tokio::spawn(async move { pair.receive().await });
    let (began, before) = (Instant::now(), processor_time()?);
    while began.elapsed() < time {
        let step = (time - began.elapsed()).min(time / 8);
        tokio::select! {
            came = &mut waits => bail!("nobody sends, and this came: {:?}", came?),
            () = tokio::time::sleep(step) => end.beat.count(),
        }
    }
    let share = (processor_time()? - before).as_secs_f64() / began.elapsed().as_secs_f64();
    end.part(peer)?;
    waits.abort();
    let theirs = peer.swap(&json!(share))?.as_f64().context("the other end's share")?;
    Ok(end.leads.then_some((0, Quantity::Share(share.max(theirs)))))
}
