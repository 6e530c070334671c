//! The device alone: packets without a protocol, there and back, and one way.

mod arrivals;
mod link;
mod ping_pong;
mod shape;
mod sleep;

pub use sleep::processor_time;

use super::Plan;
use super::peer::Peer;
use super::report::Figures;
use super::stream;
use super::test::Test;
use link::Link;

/// Runs one end of a test of frames over a device.
pub fn run(plan: &Plan, peer: &mut Peer, device: &str) -> anyhow::Result<Option<Figures>> {
    let mut link = Link::open(device, plan, peer)?;
    match plan.test {
        Test::FrameBw => stream::run(&mut link, plan, peer),
        Test::WakeLat => sleep::wake(&mut link, plan, peer),
        Test::IdleCpu => sleep::idle(&mut link, plan, peer),
        Test::BystanderLat => sleep::bystander(&mut link, plan, peer),
        _ => ping_pong::run(&mut link, plan, peer),
    }
}
