//! Two processes, one of which may be killed; and what is left of a device.

use std::fs;

use doorbell_core::encap::{Path, PathId};
use doorbell_transports::{Address, Device};

use super::bench::{Bench, Side};
use super::packets::{Pair, Seen, path_to, push, send, sleep, take};
use super::sleep::next;
use crate::child::{self, Child};
use crate::rig::until;

/// Reaches the child, which has told where it is.
fn reach_child(near: &mut impl Device, child: &mut Child) -> Path {
    let address: Address = child.hear().parse().expect("an address, as text");
    path_to(near, &address)
}

/// Sends back what comes, along the way back, until it was so much.
fn echo(device: &mut impl Device, count: usize) {
    let (mut seen, mut answered) = (Seen::default(), 0);
    while answered < count {
        next(device, &mut seen);
        let path = seen.back.expect("a packet has come").path(PathId(1));
        for &(number, len) in &seen.packets[answered..] {
            until("room for an answer", || {
                let pushed = push(device, &path, number, len).is_ok();
                device.flush();
                pushed.then_some(())
            });
        }
        answered = seen.packets.len();
    }
    seen.in_order();
}

/// Has a peer echo so many packets, a few of them under way at a time.
fn converse(device: &mut impl Device, path: &Path, count: usize) {
    const UNDER_WAY: usize = 16;
    let longest = device.capabilities().mtu.bytes();
    let (mut seen, mut sent) = (Seen::default(), 0);
    while seen.packets.len() < count {
        while sent < count && sent < seen.packets.len() + UNDER_WAY {
            let len = [8, 64, longest, 0][sent / 5 % 4];
            push(device, path, sent as u32, len).expect("there is room for a few");
            sent += 1;
        }
        device.flush();
        next(device, &mut seen);
    }
    seen.in_order();
    assert_eq!(seen.packets.len(), count);
}

/// What leaves one process arrives in the other, and the answers come back.
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

/// A peer that is killed in the middle of a write leaves behind what it had sent whole, no half a
/// packet, on a link the news that it is gone, once, and its place to whoever comes next.
pub fn a_peer_that_is_killed_is_gone_and_its_place_can_be_taken<D: Device>(bench: &Bench<'_, D>) {
    if bench.is_child() {
        let mut far = bench.open(Side::Far);
        child::tell(far.address());
        let mut seen = Seen::default();
        next(&mut far, &mut seen);
        let path = seen.back.expect("a packet has come").path(PathId(1));
        let longest = far.capabilities().mtu.bytes();
        for number in 0.. {
            while push(&mut far, &path, number, number as usize % longest).is_err() {
                far.flush();
                take(&mut far, &mut seen);
            }
        }
    }
    let mut near = bench.open(Side::Near);
    let lossless = near.capabilities().lossless;
    for enough in [1, 100, 3_000] {
        let mut child = bench.start();
        let path = reach_child(&mut near, &mut child);
        send(&mut near, &path, 0, 8);
        let mut seen = Seen::default();
        while seen.packets.len() < enough {
            next(&mut near, &mut seen);
        }
        assert!(!child.kill().success());
        while lossless && seen.gone.is_empty() {
            near.arm(None).expect("it can be slept on");
            while take(&mut near, &mut seen) > 0 {}
            if seen.gone.is_empty() {
                sleep(&mut near);
            }
            near.disarm();
        }
        while take(&mut near, &mut seen) > 0 {}
        let gone: Vec<_> = if lossless { vec![path.id()] } else { Vec::new() };
        assert_eq!(seen.gone, gone);
        // What it leaves behind is neither full nor in the way; who sends there is told again.
        near.flush();
        let _ = push(&mut near, &path, 1, 8);
        near.flush();
        take(&mut near, &mut seen);
        assert!(seen.gone[gone.len()..].iter().all(|&link| lossless && link == path.id()));
        seen.in_order();
    }
}

/// The descriptors and shared mappings of this process.
fn held() -> (usize, usize) {
    let descriptors = fs::read_dir("/proc/self/fd").expect("a process has descriptors").count();
    let maps = fs::read_to_string("/proc/self/maps").expect("a process has mappings");
    let shared = |line: &&str| line.split(' ').nth(1).is_some_and(|flags| flags.ends_with('s'));
    (descriptors, maps.lines().filter(shared).count())
}

/// Does something in a process of its own, where it must leave nothing behind from the second time
/// on.
fn leaves_nothing(mut does: impl FnMut()) {
    does();
    let before = held();
    for _ in 0..10 {
        does();
    }
    assert_eq!(held(), before, "descriptors and mappings");
}

/// Packets of one conversation.
const FEW: usize = 100;

/// Opened and closed again and again, each time at the same place.
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

/// As devices of one process: made, used, and dropped, one end before the other.
pub fn ends_that_were_joined_leave_nothing_behind<D: Device>(bench: &Bench<'_, D>) {
    if !bench.is_child() {
        return bench.start().end();
    }
    leaves_nothing(|| {
        let mut pair = Pair::new(bench.pair());
        let mut seen = Seen::default();
        for number in 0..FEW {
            send(&mut pair.near, &pair.to_far, number as u32, 8);
            pair.receive(&mut seen, number + 1);
        }
        let Pair { near, mut far, .. } = pair;
        drop(near);
        until("hearing that the other end is gone", || {
            take(&mut far, &mut seen);
            (!seen.gone.is_empty() || !far.capabilities().lossless).then_some(())
        });
    });
}
