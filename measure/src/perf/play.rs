//! One end of a test, from the agreement with the other end to the printed figures.

use serde_json::json;

use super::plan::Plan;
use crate::perf::ends::peer::Peer;
use crate::perf::layers::{am, bytestream, frames, groups, logp, rpc};
use crate::perf::layers::{sockets, splitc, streams, tags, verbs};
use crate::perf::plan::args::Args;
use crate::perf::plan::place::Place;
use crate::perf::plan::test::Test;
use crate::perf::report;

/// Runs one end of a test: agrees with the other end, measures, and prints the figures.
pub fn play(args: &Args, plan: &Plan, peer: &mut Peer, place: &Place<'_>) -> anyhow::Result<()> {
    peer.agree(plan)?;
    let figures = match plan.test {
        Test::Verbs(verb) => verbs::run(verb, plan, peer, place),
        Test::Am(test) => am::run(test, plan, peer, place),
        Test::BytestreamBw => bytestream::run(plan, peer, place),
        Test::Rpc(test) => rpc::run(test, plan, peer, place),
        Test::Tags(test) => tags::run(test, plan, peer, place),
        Test::Groups(test) => groups::run(test, plan, peer, place),
        Test::Streams(test) => streams::run(test, plan, peer, place),
        Test::SplitC(test) => splitc::run(test, plan, peer, place),
        Test::LogP(layer) => logp::run(layer, plan, peer, place),
        test if test.is_of_the_kernel() => sockets::run(plan, peer, place.here),
        _ => frames::run(plan, peer, place.device),
    };
    if let Some(figures) = figures? {
        report::print(plan, &figures, args.form())?;
    }
    // Whatever the other end found wrong, it has not said this.
    peer.swap(&json!("all checked")).map(drop)
}
