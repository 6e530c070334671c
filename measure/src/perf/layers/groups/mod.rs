//! Groups of two members: their collectives, ping-pongs and kernels, over tagged messages and, to
//! compare with, over TCP sockets by the same algorithms.

mod collectives;
mod kernels;
mod ping_pong;
mod receiving;
mod rounds;
mod tcp;

use anyhow::{Context, bail};
use doorbell_am::{Bundle, BundleConfig, Name};
use doorbell_messages::Endpoint;
use doorbell_messages::collectives::{Group, Links};
use serde_json::json;

use super::sockets;
use super::verbs::{Guard, open};
use crate::perf::ends::peer::Peer;
use crate::perf::figures::{Figures, Quantity, Row};
use crate::perf::plan::test::Groups;
use crate::perf::{Place, Plan};
use tcp::Sockets;

/// The device that stands for the kernel's sockets.
pub const TCP: &str = "tcp";

/// Runs one end of a test.
pub fn run(
    test: Groups,
    plan: &Plan,
    peer: &mut Peer,
    place: &Place<'_>,
) -> anyhow::Result<Option<Figures>> {
    if place.device.split(':').next() == Some(TCP) {
        return over_sockets(test, plan, peer, place);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("a runtime")?.block_on(over_messages(test, plan, peer, place))
}

async fn over_messages(
    test: Groups,
    plan: &Plan,
    peer: &mut Peer,
    place: &Place<'_>,
) -> anyhow::Result<Option<Figures>> {
    let nic = open(plan, place)?;
    let guard = Guard::over(&nic, peer)?;
    let bundle = Bundle::new(&nic, &BundleConfig::default())?;
    let mut builder = Endpoint::builder();
    if let Some(bytes) = plan.block {
        builder = builder.block(bytes);
    }
    if let Some(blocks) = plan.blocks {
        builder = builder.blocks(blocks);
    }
    let endpoint = guard.run(async { Ok(builder.on_bundle(&bundle).await?) }).await?;
    let own = endpoint.name().clone();
    let other = peer.swap_while(&json!(own.to_string()), || {
        bundle.poll(true);
        Ok(())
    })?;
    let other: Name = other.as_str().context("the other end's name is no text")?.parse()?;
    let leads = peer.leads();
    let names = if leads { [own, other] } else { [other, own] };
    let beat = guard.beat();
    let found = guard.run(async {
        let group = Group::join(endpoint, usize::from(!leads), &names).await?;
        let rows = match test {
            Groups::Receiving => receiving::by_messages(&group, plan).await?,
            test => measured(test, plan, &group, &|| beat.count()).await?,
        };
        group.leave().await;
        Ok(rows)
    });
    let rows = found.await?;
    peer.meet(|| {
        bundle.poll(true);
        Ok(())
    })?;
    let device = Some(nic.capabilities().name);
    Ok(leads.then_some(Figures { device, iters: rows.len() as u64, found: Quantity::Rows(rows) }))
}

fn over_sockets(
    test: Groups,
    plan: &Plan,
    peer: &mut Peer,
    place: &Place<'_>,
) -> anyhow::Result<Option<Figures>> {
    let (stream, leads) = (sockets::tcp(peer, place.here)?, peer.leads());
    let rows = match test {
        Groups::Receiving => receiving::by_sockets(stream, leads, plan)?,
        test => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.context("a runtime")?.block_on(async {
                let group = Group::over(Sockets::new(stream, usize::from(!leads)));
                measured(test, plan, &group, &|| {}).await
            })?
        }
    };
    let device = Some(TCP);
    Ok(leads.then_some(Figures { device, iters: rows.len() as u64, found: Quantity::Rows(rows) }))
}

async fn measured<L: Links>(
    test: Groups,
    plan: &Plan,
    group: &Group<L>,
    beat: &dyn Fn(),
) -> anyhow::Result<Vec<Row>> {
    match test {
        Groups::PingPong => ping_pong::run(group, plan, beat).await,
        Groups::Collectives => collectives::run(group, plan, beat).await,
        Groups::Nas => kernels::run(group, beat).await,
        Groups::Receiving => bail!("this is measured over links of its own"),
    }
}
