//! The device alone: packets without a protocol, there and back, and one way.

mod arrivals;
mod link;
mod ping_pong;
mod shape;
mod sleep;

use doorbell_transports::{AnyDevice, Device};

use crate::perf::Plan;
use crate::perf::ends::peer::Peer;
use crate::perf::figures::Figures;
use crate::perf::plan::test::Test;
use crate::perf::shared::stream;
use link::{Link, Seat};

/// Runs one end of a test of frames over a device, compiled for its kind.
pub fn run(plan: &Plan, peer: &mut Peer, device: &str) -> anyhow::Result<Option<Figures>> {
    let (device, seat) = Seat::take(device, plan)?;
    match device {
        AnyDevice::Packet(device) => run_over(device, seat, plan, peer),
        AnyDevice::PacketV2(device) => run_over(device, seat, plan, peer),
        AnyDevice::Shm(device) => run_over(device, seat, plan, peer),
        AnyDevice::Udp(device) => run_over(device, seat, plan, peer),
    }
}

fn run_over(
    device: impl Device,
    seat: Seat,
    plan: &Plan,
    peer: &mut Peer,
) -> anyhow::Result<Option<Figures>> {
    let mut link = Link::find(device, seat, plan, peer)?;
    match plan.test {
        Test::FrameBw => stream::run(&mut link, plan, peer),
        Test::WakeLat => sleep::wake(&mut link, plan, peer),
        Test::IdleCpu => sleep::idle(&mut link, plan, peer),
        Test::BystanderLat => sleep::bystander(&mut link, plan, peer),
        _ => ping_pong::run(&mut link, plan, peer),
    }
}
