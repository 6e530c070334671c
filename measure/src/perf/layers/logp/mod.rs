//! The parameters of LogP for each layer. One end sends requests, and the other end answers each.
//!
//! `rounds` measures with a requester, which `verbs`, `am` and `splitc` each make for their layer,
//! and returns what `known` describes.

mod am;
mod rounds;
mod splitc;
mod verbs;

use anyhow::Context;

use super::verbs::{Guard, open};
use crate::perf::ends::peer::Peer;
use crate::perf::figures::{Figures, Quantity};
use crate::perf::plan::test::Layer;
use crate::perf::{Place, Plan};

/// Runs one end of a measurement.
pub fn run(
    layer: Layer,
    plan: &Plan,
    peer: &mut Peer,
    place: &Place<'_>,
) -> anyhow::Result<Option<Figures>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("a runtime")?.block_on(async {
        let nic = open(plan, place)?;
        let guard = Guard::over(&nic, peer)?;
        let capabilities = *nic.capabilities();
        let found = match layer {
            Layer::Verbs => verbs::run(nic, &guard, plan, peer).await?,
            Layer::Am => am::run(&nic, &guard, plan, peer).await?,
            Layer::SplitC => splitc::run(&nic, &guard, plan, peer, place).await?,
        };
        Ok(found.map(|(iters, known)| Figures {
            device: Some(capabilities.name),
            iters,
            found: Quantity::LogP(Box::new(known), capabilities),
        }))
    })
}
