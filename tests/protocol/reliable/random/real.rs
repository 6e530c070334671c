//! The same programs over real devices: nothing goes wrong but what does on the machine that this
//! runs on, and time is the world's.

use doorbell_core::nic::Numbering;
use doorbell_kit::effort;
use doorbell_kit::lab::{self, Cable, End, Lab};
use doorbell_simulation::{Fabric, Faults};
use doorbell_transports::packet::Packet;
use doorbell_transports::packet_v2::{PacketV2, Settings};
use doorbell_transports::shm::Shm;
use doorbell_transports::udp::Udp;
use doorbell_transports::{AnyDevice, Capabilities, Device};

use super::many::number;
use super::program::{Net, Program};
use super::run::{config, run_on};
use super::strategy::program;

/// Runs programs over pairs of devices. They are of two nodes, and of packets that the devices can
/// carry; `DOORBELL_SEED` gives the first, and `DOORBELL_SEQUENCES` their number: 20 if it is not
/// set, or 100 in a thorough run.
fn agree_with_the_model(mut pair: impl FnMut() -> [AnyDevice; 2]) {
    let first = number("DOORBELL_SEED");
    let count = number("DOORBELL_SEQUENCES").map_or(effort(20, 100), |count| count as usize);
    let count = if first.is_some() { 1 } else { count };
    let longest = pair()[0].capabilities().mtu;
    let fitting = (first.unwrap_or(0)..).map(|seed| (seed, program::<Program>(seed)));
    let fitting = fitting.filter(|(_, program)| {
        program.nodes == 2 && program.pairs.iter().flatten().all(|end| end.mtu <= longest)
    });
    for (seed, mut program) in fitting.take(count) {
        let devices = pair();
        let Capabilities { lossless, labels, .. } = *devices[0].capabilities();
        if !labels {
            program.pairs.iter_mut().flatten().for_each(|end| end.paths = 1);
        }
        program.net = Net { lossless, mapped: false, faults: Faults::NONE, ..program.net };
        let fabric = Fabric::over(program.luck, config(&program), devices);
        if let Err(why) = run_on(&program, fabric).result {
            panic!("seed {seed} (DOORBELL_SEED={seed} runs it again): {why}\n{program}");
        }
    }
}

/// The same over a cable.
fn over_a_cable(lab: &Lab, mtu: u32, segmentation: bool, open: impl Fn(&End) -> AnyDevice) {
    let Cable { near, far } = lab.cable("a0", "b0", mtu).expect("a cable");
    lab.near.offload("a0", "tx-udp-segmentation", segmentation).expect("it is switched");
    lab.far.offload("b0", "tx-udp-segmentation", segmentation).expect("it is switched");
    agree_with_the_model(|| [open(&near), lab.far.within(|| open(&far))]);
}

fn packet(end: &End) -> AnyDevice {
    let opened = Packet::open(&end.interface, Numbering::default());
    AnyDevice::Packet(opened.expect("the interface is there"))
}

fn packet_v2(end: &End) -> AnyDevice {
    let opened = PacketV2::open(&end.interface, Settings::default());
    AnyDevice::PacketV2(opened.expect("the interface is there"))
}

fn udp(end: &End) -> AnyDevice {
    let opened = Udp::open((end.ipv6, 4791).into());
    AnyDevice::Udp(opened.expect("the address is there"))
}

#[test]
fn programs_over_raw_ethernet_agree_with_the_model() {
    lab::test(|lab| over_a_cable(lab, 9000, true, packet));
}

#[test]
fn programs_over_raw_ethernet_of_small_frames_agree_with_the_model() {
    lab::test(|lab| over_a_cable(lab, 1500, true, packet));
}

#[test]
fn programs_over_raw_ethernet_by_roce_v2_agree_with_the_model() {
    lab::test(|lab| over_a_cable(lab, 9000, true, packet_v2));
}

#[test]
fn programs_over_raw_ethernet_by_roce_v2_uncut_agree_with_the_model() {
    lab::test(|lab| over_a_cable(lab, 1500, false, packet_v2));
}

#[test]
fn programs_over_udp_agree_with_the_model() {
    lab::test(|lab| over_a_cable(lab, 9000, true, udp));
}

#[test]
fn programs_over_shared_memory_agree_with_the_model() {
    agree_with_the_model(|| Shm::pair().expect("a pair").map(AnyDevice::Shm));
}
