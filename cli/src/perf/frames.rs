//! The device alone: packets without a protocol, there and back, and one way.

mod checker;
mod link;
mod ping_pong;
mod stream;

use super::Plan;
use super::peer::Peer;
use super::report::Figures;
use super::test::Test;
use link::Link;

/// Runs a test of frames over a device.
pub fn run(plan: &Plan, peer: &mut Peer, device: &str) -> anyhow::Result<Option<Figures>> {
    let link = Link::open(device, plan, peer)?;
    match plan.test {
        Test::FrameBw => stream::run(link, plan, peer),
        _ => ping_pong::run(link, plan, peer),
    }
}
