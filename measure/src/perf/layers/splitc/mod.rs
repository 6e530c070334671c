//! Performance tests of Split-C, as a program on Tokio uses it: accesses to the other process's
//! memory, stores, barriers, and tables that both processes share.
//!
//! The two ends of a test are the processes of a world, and the end that leads has rank 0. A test
//! consists of [pieces](member::Member::pieces). While the clock stands between two pieces, the
//! data that was moved is checked where it is, and the next piece is agreed on.

mod barrier;
mod gather;
mod get;
mod histogram;
mod latency;
mod member;
mod put;
mod random;
mod ring;
mod store;
mod stream;

use anyhow::{Context, bail};
use doorbell_splitc::{Config, World};
use doorbell_verbs::Nic;
use serde_json::json;

use super::verbs::{Guard, open, progress};
use crate::perf::ends::peer::Peer;
use crate::perf::figures::{Figures, Quantity};
use crate::perf::plan::test::SplitC;
use crate::perf::{Place, Plan};
use member::Member;

/// Runs one end of a test, and returns the figures at the end that leads.
pub fn run(
    test: SplitC,
    plan: &Plan,
    peer: &mut Peer,
    place: &Place<'_>,
) -> anyhow::Result<Option<Figures>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("a runtime")?.block_on(play(test, plan, peer, place))
}

async fn play(
    test: SplitC,
    plan: &Plan,
    peer: &mut Peer,
    place: &Place<'_>,
) -> anyhow::Result<Option<Figures>> {
    let nic = open(plan, place)?;
    let guard = Guard::over(&nic, peer)?;
    let (addresses, key) = meet(&nic, peer)?;
    let config = Config {
        key,
        carrier: plan.carrier,
        credits: plan.credits,
        progress: progress(plan, place),
        ..Config::default()
    };
    let rank = usize::from(!peer.leads());
    let joined = async { Ok(World::join_on(&nic, rank, &addresses, &config).await?) };
    let world = guard.run(joined).await?;
    let member = Member { world: world.clone(), plan, beat: guard.beat() };
    let found = guard.run(async {
        let found = match test {
            SplitC::GetLat | SplitC::PutLat => latency::run(test, &member).await?,
            SplitC::GetBw => get::run(&member).await?,
            SplitC::PutBw => put::run(&member).await?,
            SplitC::StoreBw => store::run(&member).await?,
            SplitC::BarrierLat => barrier::run(&member).await?,
            SplitC::Histogram => histogram::run(&member).await?,
            SplitC::Gather => gather::run(&member).await?,
        };
        world.leave().await?;
        Ok(found)
    });
    let found: Option<(u64, Quantity)> = found.await?;
    // The other process may still need this one to serve it.
    peer.meet(|| {
        world.poll();
        Ok(())
    })?;
    let device = Some(nic.capabilities().name);
    Ok(found.map(|(iters, found)| Figures { device, iters, found }))
}

/// Exchanges the addresses of the NICs with the other end, and numbers that both draw. Returns the
/// addresses in the order of ranks, and the key of the world that follows from both numbers.
pub fn meet(nic: &Nic, peer: &mut Peer) -> anyhow::Result<([String; 2], u64)> {
    let address = nic.address().to_string();
    let drawn = doorbell_job::secret();
    let mine =
        json!({ "device": nic.capabilities().name, "address": address, "key": drawn.clone() });
    let theirs = peer.swap_while(&mine, || {
        nic.turn();
        Ok(())
    })?;
    if theirs["device"] != mine["device"] {
        let (there, here) = (&theirs["device"], &mine["device"]);
        bail!("the other end's device is {there}, and this one's {here}");
    }
    let other = theirs["address"].as_str().context("the other end's address")?.to_owned();
    let number =
        |text: &str| text.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let keys = [&drawn, theirs["key"].as_str().unwrap_or_default()].map(number);
    let [Some(own), Some(others)] = keys else { bail!("the other end has drawn no key") };
    let addresses = if peer.leads() { [address, other] } else { [other, address] };
    Ok((addresses, own ^ others))
}
