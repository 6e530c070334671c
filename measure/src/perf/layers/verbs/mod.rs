//! The NIC, as a program on Tokio uses it: sends, writes, reads, atomic operations, mapped memory.
//!
//! Each end is a runtime on this one thread, in which the NIC was opened. A wait makes the NIC's
//! progress and spins, unless the command says otherwise. The timed code allocates nothing, and
//! reads the clock once a round.

mod asked;
mod contents;
mod end;
mod guard;
mod idle;
mod map;
mod ping_pong;
mod stream;

use anyhow::Context;

use crate::perf::ends::peer::Peer;
use crate::perf::figures::{Figures, Quantity};
use crate::perf::plan::test::Verb;
use crate::perf::{Place, Plan};
pub use end::{End, listen, open, progress};
pub use guard::{Beat, Guard};

/// Runs one end of a test of the NIC.
pub fn run(
    verb: Verb,
    plan: &Plan,
    peer: &mut Peer,
    place: &Place<'_>,
) -> anyhow::Result<Option<Figures>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("a runtime")?.block_on(play(verb, plan, peer, place))
}

async fn play(
    verb: Verb,
    plan: &Plan,
    peer: &mut Peer,
    place: &Place<'_>,
) -> anyhow::Result<Option<Figures>> {
    let leads = peer.leads();
    let nic = end::open(plan, place)?;
    let guard = Guard::over(&nic, peer)?;
    let listener = guard.run(end::listen(&nic, leads)).await?;
    let mut end = End::new(nic, listener, guard.beat(), plan, peer)?;
    let found = guard.run(async {
        end.surround(plan).await?;
        match verb {
            Verb::WriteLat | Verb::SendLat | Verb::WriteImmLat => {
                ping_pong::run(verb, &mut end, plan, peer).await
            }
            Verb::MapLat => map::run(&mut end, plan, peer).await,
            Verb::IdleCpu => idle::run(&mut end, plan, peer).await,
            Verb::SendBw | Verb::WriteBw | Verb::WriteImmBw | Verb::ReadBw => {
                stream::run(verb, &mut end, plan, peer).await
            }
            Verb::WriteDoneLat | Verb::ReadLat | Verb::CasLat | Verb::FaaLat => {
                asked::run(verb, &mut end, plan, peer).await
            }
        }
    });
    let found: Option<(u64, Quantity)> = found.await?;
    let device = Some(end.nic.capabilities().name);
    Ok(found.map(|(iters, found)| Figures { device, iters, found }))
}
