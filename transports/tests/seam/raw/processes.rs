//! Several processes on one interface.

use doorbell_core::encap::PathId;
use doorbell_kit::child::{self, Child};
use doorbell_kit::lab::{self, Lab};
use doorbell_kit::{reach, until};
use doorbell_transports::{Address, Device};

use crate::raw::common::{Seen, open, pair_of, send_to, take, v1, v2};

const PROCESSES: u32 = 4;

/// How many packets each is sent: no two the same number.
fn share(tag: u32) -> u32 {
    100 + 10 * tag
}

/// One of the processes: opens its device, tells where it is, and takes what comes until it is told
/// that this was all.
fn member(device: &mut impl Device, tag: u32) {
    child::tell(device.address());
    let mut seen = Seen::default();
    let mut own = 0;
    until("all packets", || {
        device.receive(&mut seen);
        own = seen.packets.iter().filter(|(pair, _)| *pair == pair_of(tag)).count();
        (own == share(tag) as usize).then_some(())
    });
    child::tell("complete");
    child::listen();
    while device.receive(&mut seen) > 0 {}
    let numbers: Vec<_> = seen.packets.iter().map(|(_, number)| *number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "process {tag} got {seen:?}");
    assert_eq!((seen.packets.len(), seen.malformed.len()), (own, 0), "process {tag}");
    // Those of the others did not even come as far as here.
    let counted = device.statistics();
    assert!(counted.frames_received <= own as u64 && counted.overrun == 0, "{counted:?}");
}

/// Whether this is one of the processes, which has then done its part.
fn is_member(name: &str) -> bool {
    let Some(part) = child::part() else { return false };
    let tag = part.parse().expect("a number");
    match name {
        "packet" => member(&mut v1("b0", tag), tag),
        _ => member(&mut v2("b0", None).expect("the interface is there"), tag),
    }
    true
}

/// Sends to processes of this test, each its share.
fn each_gets_its_own(lab: &Lab, test: &str, name: &str) {
    lab.cable("a0", "b0", 9000).unwrap();
    let start = |tag: u32| Child::start(test, &tag.to_string(), Some(&lab.far));
    let mut members: Vec<_> = (1..=PROCESSES).map(start).collect();
    let mut near = open(name, "a0").unwrap();
    let mut path_to = |(member, number): (&mut Child, u32)| {
        let address: Address = member.hear().parse().expect("an address");
        let way = until("a way", || {
            near.receive(&mut Seen::default());
            near.reach(&address).expect("it is there")
        });
        way.path(PathId(number))
    };
    let paths: Vec<_> = members.iter_mut().zip(0..).map(&mut path_to).collect();
    for (tag, path) in (1..).zip(&paths) {
        send_to(&mut near, path, pair_of(tag), share(tag), 64);
    }
    members.iter_mut().for_each(|member| assert_eq!(member.hear(), "complete"));
    members.iter_mut().for_each(|member| member.say("that was all"));
    members.into_iter().for_each(Child::end);
}

#[test]
fn four_of_roce_v1_share_an_interface_and_its_address() {
    let test = "raw::processes::four_of_roce_v1_share_an_interface_and_its_address";
    if !is_member("packet") {
        lab::test(|lab| each_gets_its_own(lab, test, "packet"));
    }
}

#[test]
fn four_of_roce_v2_share_an_interface() {
    let test = "raw::processes::four_of_roce_v2_share_an_interface";
    if !is_member("packet-v2") {
        lab::test(|lab| each_gets_its_own(lab, test, "packet-v2"));
    }
}

/// To queue pair 1 everybody listens.
#[test]
fn what_is_for_queue_pair_1_is_for_every_process() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 9000).unwrap();
        let mut near = v1("a0", 1);
        let mut all = lab.far.within(|| [1, 2, 3].map(|tag| v1("b0", tag)));
        let path = reach(&mut near, &mut all[0]);
        send_to(&mut near, &path, doorbell_core::wire::Qpn::GSI, 5, 64);
        for device in &mut all {
            assert_eq!(take(device, 5).packets.len(), 5);
        }
    });
}
