//! Tests with two processes, one of which may be killed, and tests of what a device leaves behind.

use std::fs;

use doorbell_core::encap::{Path, PathId};
use doorbell_transports::{Address, Device};

use super::bench::{Bench, Side};
use super::packets::{Pair, Received, path_to, push, send, sleep, take};
use super::sleep::next;
use crate::child::{self, Child};
use crate::rig::until;

/// Finds the path to the child, which has sent its address.
fn reach_child(near: &mut impl Device, child: &mut Child) -> Path {
    let address: Address = child.hear().parse().expect("an address, as text");
    path_to(near, &address)
}

/// Sends each packet back along the way by which it came, until `count` packets have come.
fn echo(device: &mut impl Device, count: usize) {
    let (mut received, mut answered) = (Received::default(), 0);
    while answered < count {
        next(device, &mut received);
        let path = received.back.expect("a packet has come").path(PathId(1));
        for &(number, len) in &received.packets[answered..] {
            until("room for an answer", || {
                let pushed = push(device, &path, number, len).is_ok();
                device.flush();
                pushed.then_some(())
            });
        }
        answered = received.packets.len();
    }
    received.in_order();
}

/// Has a peer echo `count` packets, a few of them under way at a time.
fn converse(device: &mut impl Device, path: &Path, count: usize) {
    const UNDER_WAY: usize = 16;
    let longest = device.capabilities().mtu.bytes();
    let (mut received, mut sent) = (Received::default(), 0);
    while received.packets.len() < count {
        while sent < count && sent < received.packets.len() + UNDER_WAY {
            let len = [8, 64, longest, 0][sent / 5 % 4];
            push(device, path, sent as u32, len).expect("there is room for a few");
            sent += 1;
        }
        device.flush();
        next(device, &mut received);
    }
    received.in_order();
    assert_eq!(received.packets.len(), count);
}

/// Tests that packets from one process arrive in the other, and the answers come back.
pub fn packets_cross_between_two_processes<D: Device>(bench: &Bench<'_, D>) {
    const COUNT: usize = 20_000;
    if bench.is_child() {
        let mut far = bench.open(Side::Far);
        child::tell(far.address());
        return echo(&mut far, COUNT);
    }
    let mut near = bench.open(Side::Near);
    let mut child = bench.start();
    let path = reach_child(&mut near, &mut child);
    converse(&mut near, &path, COUNT);
    child.end();
}

/// Tests that a peer that is killed in the middle of a write leaves only whole packets. On a link,
/// the other end is told once that the peer has gone. Another process can take the peer's place.
pub fn a_peer_that_is_killed_is_gone_and_its_place_can_be_taken<D: Device>(bench: &Bench<'_, D>) {
    if bench.is_child() {
        let mut far = bench.open(Side::Far);
        child::tell(far.address());
        let mut received = Received::default();
        next(&mut far, &mut received);
        let path = received.back.expect("a packet has come").path(PathId(1));
        let longest = far.capabilities().mtu.bytes();
        for number in 0.. {
            while push(&mut far, &path, number, number as usize % longest).is_err() {
                far.flush();
                take(&mut far, &mut received);
            }
        }
    }
    let mut near = bench.open(Side::Near);
    let lossless = near.capabilities().lossless;
    for enough in [1, 100, 3_000] {
        let mut child = bench.start();
        let path = reach_child(&mut near, &mut child);
        send(&mut near, &path, 0, 8);
        let mut received = Received::default();
        while received.packets.len() < enough {
            next(&mut near, &mut received);
        }
        assert!(!child.kill().success());
        while lossless && received.gone.is_empty() {
            near.arm(None).expect("it can be slept on");
            while take(&mut near, &mut received) > 0 {}
            if received.gone.is_empty() {
                sleep(&mut near);
            }
            near.disarm();
        }
        while take(&mut near, &mut received) > 0 {}
        let gone: Vec<_> = if lossless { vec![path.id()] } else { Vec::new() };
        assert_eq!(received.gone, gone);
        // The remains of the dead peer don't fill the device, and a later send to the peer may
        // report its end again.
        near.flush();
        let _ = push(&mut near, &path, 1, 8);
        near.flush();
        take(&mut near, &mut received);
        assert!(received.gone[gone.len()..].iter().all(|&link| lossless && link == path.id()));
        received.in_order();
    }
}

/// The number of descriptors and shared mappings of this process.
fn open_resources() -> (usize, usize) {
    let descriptors = fs::read_dir("/proc/self/fd").expect("a process has descriptors").count();
    let maps = fs::read_to_string("/proc/self/maps").expect("a process has mappings");
    let shared = |line: &&str| line.split(' ').nth(1).is_some_and(|flags| flags.ends_with('s'));
    (descriptors, maps.lines().filter(shared).count())
}

/// Calls a function repeatedly, which must leave no descriptor and no mapping behind from the
/// second call on.
fn leaves_nothing(mut does: impl FnMut()) {
    does();
    let before = open_resources();
    for _ in 0..10 {
        does();
    }
    assert_eq!(open_resources(), before, "descriptors and mappings");
}

/// The packets of one exchange with the peer.
const FEW: usize = 100;

/// Tests that a device that is opened and closed repeatedly at the same place leaves nothing
/// behind.
pub fn a_device_that_was_opened_leaves_nothing_behind<D: Device>(bench: &Bench<'_, D>) {
    if bench.is_child() {
        return leaves_nothing(|| {
            let mut far = bench.open(Side::Far);
            child::tell(far.address());
            echo(&mut far, FEW);
            assert_eq!(child::listen().as_deref(), Some("done"));
        });
    }
    let mut near = bench.open(Side::Near);
    let mut child = bench.start();
    for _ in 0..11 {
        let path = reach_child(&mut near, &mut child);
        converse(&mut near, &path, FEW);
        child.say("done");
    }
    child.end();
}

/// Tests that two devices of one process that are made, used, and dropped, one after the other,
/// leave nothing behind.
pub fn ends_that_were_joined_leave_nothing_behind<D: Device>(bench: &Bench<'_, D>) {
    if !bench.is_child() {
        return bench.start().end();
    }
    leaves_nothing(|| {
        let mut pair = Pair::new(bench.pair());
        let mut received = Received::default();
        for number in 0..FEW {
            send(&mut pair.near, &pair.to_far, number as u32, 8);
            pair.receive(&mut received, number + 1);
        }
        let Pair { near, mut far, .. } = pair;
        drop(near);
        until("hearing that the other end is gone", || {
            take(&mut far, &mut received);
            (!received.gone.is_empty() || !far.capabilities().lossless).then_some(())
        });
    });
}
