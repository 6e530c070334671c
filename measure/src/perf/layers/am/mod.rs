//! Active Messages, as a program on Tokio uses them: calls, and requests one way.
//!
//! What is short goes as words, and is checked word by word; what is not, as a payload of which the
//! number is a word.

mod bulk;
mod call;
mod calls;
mod messages;
mod stream;

use std::sync::Arc;

use anyhow::{Context, bail};
use doorbell_am::{
    Bundle, BundleConfig, Endpoint, EndpointConfig, Flow, Handlers, Name, Peer as Mapped, Policy,
    ReplyId, RequestId, SegmentMemory, Tag, Words,
};
use doorbell_verbs::{Region, SharedMemory};

use super::following::{Told, follow, meet};
use super::verbs::{Beat, Guard, open};
use crate::perf::ends::peer::Peer;
use crate::perf::figures::{Figures, Quantity};
use crate::perf::plan::test::Am;
use crate::perf::{Carriage, Place, Plan};
use messages::{Messages, Said, words_of_each};

/// The request to an idle endpoint.
const ECHO: RequestId<u64> = RequestId::new(0, "echo");
/// The reply of an idle endpoint.
const ECHOED: ReplyId<u64> = ReplyId::new(0, "echoed");

/// The tag that peers must show.
const TAG: Tag = Tag(0x0D00_12BE);

/// Runs one end of a test.
pub fn run(
    test: Am,
    plan: &Plan,
    peer: &mut Peer,
    place: &Place<'_>,
) -> anyhow::Result<Option<Figures>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("a runtime")?;
    // Handlers of the shortest have types, as programs have them.
    match words_of_each(test, plan.size) {
        Some(1) => runtime.block_on(play::<[u64; 1]>(test, plan, peer, place)),
        Some(2) => runtime.block_on(play::<[u64; 2]>(test, plan, peer, place)),
        Some(8) => runtime.block_on(play::<[u64; 8]>(test, plan, peer, place)),
        _ => runtime.block_on(play::<Words>(test, plan, peer, place)),
    }
}

async fn play<A: Said>(
    test: Am,
    plan: &Plan,
    peer: &mut Peer,
    place: &Place<'_>,
) -> anyhow::Result<Option<Figures>> {
    let nic = open(plan, place)?;
    let guard = Guard::over(&nic, peer)?;
    let messages = Messages::<A>::new(test, plan);
    let told = Arc::new(Told::default());
    let lands = !peer.leads() && test == Am::BulkBw;
    let (room, run) = (bulk::room(plan), nic.capabilities().run);
    let maps = nic.capabilities().mapping && plan.map;
    let memory = match (lands, maps) {
        (true, true) => Some(SharedMemory::new(room).context("memory to be mapped")?.into()),
        (true, false) => Some(Region::new(room).into()),
        _ => None,
    };
    let segment = memory.as_ref().map(SegmentMemory::region);
    let handlers = match (peer.leads(), &segment) {
        (true, _) => Handlers::new(),
        (false, None) if test == Am::CallBw => calls::handlers::<A>(plan, &told),
        (false, None) => messages.handlers(&told),
        (false, Some(segment)) => bulk::handlers(segment, plan, run, &told),
    };
    let bundle = Bundle::new(&nic, &BundleConfig::default())?;
    let config = EndpointConfig {
        admits: TAG.into(),
        credits: plan.credits,
        first_credits: plan.credits,
        payload: plan.size.clamp(4096, 1 << 20),
        places: 1 + plan.connections,
        policy: policy(plan),
        flow: flow(plan),
        segment: memory,
        ..EndpointConfig::default()
    };
    let endpoint = guard
        .run(async { Ok(Endpoint::builder().config(config).on_bundle(&bundle, handlers).await?) })
        .await?;
    let idle = if peer.leads() { None } else { neighbour(&endpoint, &guard, plan).await? };
    let name: Name = meet(&endpoint.name().to_string(), peer, &nic)?.parse()?;
    let device = Some(nic.capabilities().name);
    if !peer.leads() {
        follow(&guard, &told).await?;
        peer.meet(|| turn(&bundle))?;
        drop(idle);
        return Ok(None);
    }
    let beat = guard.beat();
    let found = guard.run(async {
        let mapped: Mapped = endpoint.map(0, &name, TAG).await?;
        beat.count();
        surround(&endpoint, &name, plan, &beat).await?;
        match test {
            Am::Lat | Am::MediumLat => call::run(&mapped, &messages, plan, &beat).await,
            Am::CallLat => call::run_typed(&mapped, &messages, plan, &beat).await,
            Am::CallBw => calls::run::<A>(&mapped, plan, &beat).await,
            Am::Bw | Am::MixedBw => stream::run(&mapped, &messages, plan, &beat).await,
            Am::BulkBw => bulk::run(&mapped, plan, run, &beat).await,
        }
    });
    let (iters, found): (u64, Quantity) = found.await?;
    peer.meet(|| turn(&bundle))?;
    Ok(Some(Figures { device, iters, found }))
}

/// The name of the idle endpoint beside another of this name.
fn beside(name: &Name) -> Name {
    Name::at(name.address(), name.service().0.wrapping_add(1))
}

/// The endpoint at the end that follows which is idle, but for calls at the beginning. Its number
/// might be another's, as far as one knows: so each time that it is mapped it has a connection of
/// its own.
async fn neighbour(
    endpoint: &Endpoint,
    guard: &Guard,
    plan: &Plan,
) -> anyhow::Result<Option<Endpoint>> {
    if plan.connections == 0 {
        return Ok(None);
    }
    let config = EndpointConfig {
        service: Some(beside(endpoint.name()).service().0),
        admits: TAG.into(),
        receives: 64 + 2 * plan.connections,
        ..EndpointConfig::default()
    };
    let echo = Handlers::new().request(ECHO, |request, word| request.reply(ECHOED, word));
    let bundle = endpoint.bundle();
    guard
        .run(async { Ok(Some(Endpoint::builder().config(config).on_bundle(&bundle, echo).await?)) })
        .await
}

/// Maps that again and again, and each time has a call answered.
async fn surround(
    endpoint: &Endpoint,
    name: &Name,
    plan: &Plan,
    beat: &Beat,
) -> anyhow::Result<()> {
    for number in 1..=plan.connections {
        let peer = endpoint.map(number, &beside(name), TAG).await?;
        if peer.call(ECHO, number as u64).await?.arguments(ECHOED)? != number as u64 {
            bail!("idle peer {number} has not answered what it should have");
        }
        beat.count();
    }
    Ok(())
}

fn turn(bundle: &Bundle) -> anyhow::Result<()> {
    bundle.poll(true);
    Ok(())
}

/// How an endpoint carries messages.
pub fn policy(plan: &Plan) -> Policy {
    match plan.policy {
        Carriage::Together => Policy::Together,
        Carriage::Apart => Policy::Apart,
        Carriage::PerSize => Policy::PerSize,
    }
}

/// Decides what holds up a sender that is too fast for its peer: credits, or the NIC.
pub fn flow(plan: &Plan) -> Flow {
    plan.nic_credits.map_or(Flow::Credits, |receives| Flow::Nic { receives })
}
