//! Tests of traffic: packets arrive complete, in order, and are counted.

use std::fs;

use doorbell_core::encap::PathId;
use doorbell_core::wire::Mac;
use doorbell_transports::{Address, Device, ReachError};

use super::bench::Bench;
use super::packets::{Pair, Received, push, send, take};
use crate::rig::until;

/// Tests that packets of each payload from none to the MTU arrive, one after the other.
pub fn packets_of_every_length_arrive_whole_and_in_order<D: Device>(bench: &Bench<'_, D>) {
    let mut pair = Pair::new(bench.pair());
    let mut received = Received::default();
    for (number, len) in (0..).zip(0..=pair.longest()) {
        send(&mut pair.near, &pair.to_far, number, len);
        pair.receive(&mut received, len + 1);
    }
    let expected: Vec<_> = (0..).zip(0..=pair.longest()).collect();
    assert!(received.packets == expected);
}

/// More packets than any device holds while its peer receives nothing: half a gigabyte of the
/// longest.
const TOO_MANY: u32 = 1 << 17;

/// The length of a packet in a burst: stretches of equal lengths, so that runs occur, and now and
/// then another length.
fn length(number: u32, longest: usize) -> usize {
    match number % 100 {
        0..60 => 64,
        60..63 => number as usize % (longest + 1),
        63..90 => longest,
        _ => 0,
    }
}

/// The number of frames that the system has dropped between two interfaces of this machine because
/// the processors were busy. No device counts those.
fn dropped_by_the_system() -> u64 {
    let all = fs::read_to_string("/proc/net/softnet_stat").unwrap_or_default();
    let dropped = |line: &str| u64::from_str_radix(line.split(' ').nth(1)?, 16).ok();
    all.lines().filter_map(dropped).sum()
}

/// Tests a sender that is faster than its peer. A lossless device is full, and has room again when
/// the peer has received something. Other devices drop packets, and count them.
pub fn bursts_wait_for_room_and_what_is_lost_is_counted<D: Device>(bench: &Bench<'_, D>) {
    let mut pair = Pair::new(bench.pair());
    let (lossless, longest) = (pair.near.capabilities().lossless, pair.longest());
    let (mut received, dropped) = (Received::default(), dropped_by_the_system());
    let (mut number, mut waited) = (0, 0);
    for _ in 0..8 {
        let last = number + if lossless { TOO_MANY } else { 3_000 };
        let full = loop {
            if number == last {
                break false;
            }
            if push(&mut pair.near, &pair.to_far, number, length(number, longest)).is_ok() {
                number += 1;
                continue;
            }
            // A flush makes room in the sender's own buffer, but not in the peer's.
            pair.near.flush();
            if push(&mut pair.near, &pair.to_far, number, length(number, longest)).is_err() {
                break true;
            }
            number += 1;
        };
        pair.near.flush();
        assert_eq!(full, lossless, "it is full when the peer looks away, if it can't lose");
        waited += usize::from(full);
        if full {
            pair.receive(&mut received, number as usize);
        } else {
            while take(&mut pair.far, &mut received) > 0 {}
        }
    }
    // A packet that is sent alone arrives, behind all others.
    let last = number;
    let arrived = until("what is sent last", || {
        number += u32::from(push(&mut pair.near, &pair.to_far, number, 8).is_ok());
        pair.near.flush();
        take(&mut pair.near, &mut Received::default());
        take(&mut pair.far, &mut received);
        received.numbers().position(|number| number >= last)
    });
    received.in_order();
    let sent = received.packets[arrived].0 as usize;
    let lost = sent - arrived;
    let counted = pair.near.statistics().refused + pair.far.statistics().overrun;
    let elsewhere = dropped_by_the_system() - dropped;
    let found = format!(
        "{sent} packets sent, {lost} lost; frames that the devices have counted: {counted}, and the \
         system: {elsewhere}; {waited} times full"
    );
    assert!(lost == 0 || !lossless && counted + elsewhere > 0, "{found}");
    println!("{found}");
}

/// Tests that no packet of small bursts is lost, and both ends count the same.
pub fn what_is_counted_is_what_was_sent<D: Device>(bench: &Bench<'_, D>) {
    const BURSTS: u32 = 200;
    const BURST: u32 = 16;
    let mut pair = Pair::new(bench.pair());
    let before = [pair.near.statistics(), pair.far.statistics()];
    let (mut received, mut bytes) = (Received::default(), 0);
    for burst in 0..BURSTS {
        for number in burst * BURST..(burst + 1) * BURST {
            let len = length(number, pair.longest());
            push(&mut pair.near, &pair.to_far, number, len).expect("there is room for a few");
            bytes += len as u64;
        }
        pair.near.flush();
        pair.receive(&mut received, ((burst + 1) * BURST) as usize);
    }
    received.in_order();
    let (near, far) = (pair.near.statistics(), pair.far.statistics());
    let sent = near.frames_sent - before[0].frames_sent;
    let packets = near.packets_sent - before[0].packets_sent;
    let run = u64::from(pair.near.capabilities().run);
    assert_eq!(packets, u64::from(BURSTS * BURST));
    assert!(sent <= packets && sent >= packets.div_ceil(run), "{sent} frames, {packets} packets");
    assert!(near.bytes_sent - before[0].bytes_sent >= bytes);
    // The network may segment the frames that were sent, but no further than into packets.
    let received = far.frames_received - before[1].frames_received;
    assert!((sent..=packets).contains(&received), "{sent} sent, {received} received");
    assert!(far.bytes_received - before[1].bytes_received >= bytes);
    let lost = [near, far].map(|end| (end.refused, end.overrun, end.strangers));
    assert_eq!(lost, [(0, 0, 0); 2]);
}

/// Tests that an address of another kind of device is an error with a text about that, and that an
/// address without a device is an error in the end, or a path on which packets vanish.
pub fn addresses_of_others_and_of_nobody_are_errors<D: Device>(bench: &Bench<'_, D>) {
    let mut pair = Pair::new(bench.pair());
    let others = [Address::Shm("nobody".into()), Address::Packet(Mac([2; 6]))];
    let other = others.iter().find(|other| {
        std::mem::discriminant(*other) != std::mem::discriminant(pair.near.address())
    });
    let other = other.expect("one of two is of another kind");
    let error = pair.near.reach(other).expect_err("an address of another kind");
    assert!(matches!(error, ReachError::Kind { .. }), "{error}");
    assert!(error.to_string().contains(&other.to_string()), "{error}");

    let Some(nobody) = bench.nobody() else { return };
    let found = until("hearing that nobody is there", || {
        take(&mut pair.near, &mut Received::default());
        pair.near.reach(nobody).transpose()
    });
    match found {
        Err(error) => assert!(error.to_string().contains(&nobody.to_string()), "{error}"),
        Ok(way) => {
            let path = way.path(PathId(7));
            for number in 0..100 {
                send(&mut pair.near, &path, number, 8);
            }
        }
    }
    // The peer is still reached afterwards.
    let mut received = Received::default();
    send(&mut pair.near, &pair.to_far, 500, 8);
    pair.receive(&mut received, 1);
    assert_eq!(received.packets, [(500, 8)]);
}
