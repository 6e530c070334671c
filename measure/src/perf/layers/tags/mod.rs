//! Tagged messages, as a program on Tokio sends and receives them: there and back, as a stream into
//! receives that are posted ahead, and as a stream that no receive waits for.
//!
//! The end that leads sends, and the other receives. The last message of a test says how many there
//! were, and is answered with how many came, and how many of them were wrong.

mod end;
mod latency;
mod stream;

use anyhow::Context;
use doorbell_am::{Bundle, BundleConfig};
use doorbell_messages::Endpoint;
use serde_json::json;

use super::verbs::{Guard, open};
use crate::perf::ends::peer::Peer;
use crate::perf::figures::{Figures, Quantity};
use crate::perf::plan::test::Tags;
use crate::perf::{Place, Plan};
use end::{End, Messages};

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
    let endpoint = guard.run(async { Ok(builder.on_bundle(&bundle).await?) }).await?;
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
        let (iters, found): (u64, Quantity) = found.await?;
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
