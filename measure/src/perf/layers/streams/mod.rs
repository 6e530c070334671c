//! Messages as streams: one there and one back, and many one way.

mod handlers;
mod latency;
mod matched;
mod matching;
mod rate;

use std::sync::Arc;

use anyhow::Context;
use doorbell_messages::streams::{Endpoint, EndpointBuilder};
use doorbell_verbs::Nic;

use super::following::{Told, follow, meet};
use super::verbs::{Guard, open};
use crate::perf::ends::peer::Peer;
use crate::perf::figures::{Figures, Quantity};
use crate::perf::plan::test::Streams;
use crate::perf::{Place, Plan};
use handlers::follower;
use matching::Matching;

/// Runs one end of a test.
pub fn run(
    test: Streams,
    plan: &Plan,
    peer: &mut Peer,
    place: &Place<'_>,
) -> anyhow::Result<Option<Figures>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("a runtime")?.block_on(play(test, plan, peer, place))
}

async fn play(
    test: Streams,
    plan: &Plan,
    peer: &mut Peer,
    place: &Place<'_>,
) -> anyhow::Result<Option<Figures>> {
    let nic = open(plan, place)?;
    let guard = Guard::over(&nic, peer)?;
    let device = Some(nic.capabilities().name);
    if matches!(test, Streams::TagLat | Streams::TagBw) {
        return play_matched(test, plan, peer, &nic, &guard).await;
    }
    if !peer.leads() {
        let told = Arc::new(Told::default());
        let endpoint = opened(follower(plan, &told), plan, &nic, &guard).await?;
        meet(&endpoint.name().to_string(), peer, &nic)?;
        follow(&guard, &told).await?;
        peer.meet(|| turn(&endpoint))?;
        return Ok(None);
    }
    let (builder, pongs) = latency::leader(plan);
    let endpoint = opened(builder, plan, &nic, &guard).await?;
    let name = meet(&endpoint.name().to_string(), peer, &nic)?;
    let beat = guard.beat();
    let found = guard.run(async {
        let to = endpoint.connect(name.as_str()).await?;
        match test {
            Streams::Lat => latency::run(&endpoint, &to, pongs, plan, &beat).await,
            Streams::Bw => rate::messages(&to, plan, &beat).await,
            Streams::PieceBw => rate::pieces(&to, plan, &beat).await,
            Streams::TagLat | Streams::TagBw => unreachable!("these are tests of the layer above"),
        }
    });
    let (iters, found): (u64, Quantity) = found.await?;
    peer.meet(|| turn(&endpoint))?;
    Ok(Some(Figures { device, iters, found }))
}

/// Runs one end of a test of the layer that stands on streams.
async fn play_matched(
    test: Streams,
    plan: &Plan,
    peer: &mut Peer,
    nic: &Nic,
    guard: &Guard,
) -> anyhow::Result<Option<Figures>> {
    let (matching, beat) = (Matching::default(), guard.beat());
    let endpoint = opened(matching.on(Endpoint::builder()), plan, nic, guard).await?;
    if !peer.leads() {
        matched::post_ahead(&matching, plan);
    }
    let name = meet(&endpoint.name().to_string(), peer, nic)?;
    let follows = !peer.leads();
    let found = guard.run(async {
        let to = endpoint.connect(name.as_str()).await?;
        match test {
            _ if follows => {
                let back = test == Streams::TagLat;
                matched::follow(&endpoint, &to, &matching, plan, back, &beat).await?;
                Ok(None)
            }
            Streams::TagLat => {
                matched::latency(&endpoint, &to, &matching, plan, &beat).await.map(Some)
            }
            _ => matched::rate(&endpoint, &to, &matching, plan, &beat).await.map(Some),
        }
    });
    let found: Option<(u64, Quantity)> = found.await?;
    peer.meet(|| turn(&endpoint))?;
    let device = Some(nic.capabilities().name);
    Ok(found.map(|(iters, found)| Figures { device, iters, found }))
}

async fn opened(
    builder: EndpointBuilder,
    plan: &Plan,
    nic: &Nic,
    guard: &Guard,
) -> anyhow::Result<Endpoint> {
    let builder = builder.endpoint(|endpoint| endpoint.credits(plan.credits));
    guard.run(async { Ok(builder.on(nic).await?) }).await
}

fn turn(endpoint: &Endpoint) -> anyhow::Result<()> {
    endpoint.bundle().poll(true);
    Ok(())
}
