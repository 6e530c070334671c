//! Frames of others, and in pieces.

use doorbell_core::wire::Mac;
use doorbell_kit::{lab, reach};
use doorbell_transports::{AnyDevice, Device};

use crate::raw::common::{RAW, Seen, Tap, open, pair, send_to, take};

/// A frame as one device sends it to another, seen from where it goes: to be sent once more from
/// where it came from, with changes.
fn a_frame(near: &mut AnyDevice, far: &mut AnyDevice, tap: &Tap) -> Vec<u8> {
    let path = reach(near, far);
    while tap.next().is_some() {}
    send_to(near, &path, pair(), 1, 32);
    take(far, 1);
    tap.next().expect("it was sent")
}

/// What a device makes of a frame: how many packets, and how many that are none.
fn received(device: &mut AnyDevice) -> (usize, usize) {
    let mut seen = Seen::default();
    while device.receive(&mut seen) > 0 {}
    (seen.packets.len(), seen.malformed.len())
}

#[test]
fn a_frame_that_is_cut_or_changed_anywhere_is_no_packet() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).unwrap();
        for name in RAW {
            let mut near = open(name, "a0").unwrap();
            let mut far = lab.far.within(|| open(name, "b0")).unwrap();
            let tap = Tap::new("a0");
            let frame = a_frame(&mut near, &mut far, &tap);
            tap.send(&frame);
            assert_eq!(received(&mut far), (1, 0), "unchanged it is one");
            for len in 14..frame.len() {
                tap.send(&frame[..len]);
                assert_eq!(received(&mut far).0, 0, "{name}: {len} of {} bytes", frame.len());
            }
            let mut refused = 0;
            for at in 0..frame.len() {
                let mut changed = frame.clone();
                changed[at] ^= 0x55;
                tap.send(&changed);
                let (packets, malformed) = received(&mut far);
                refused += malformed;
                // What routers change is not covered, nor is Ethernet's source.
                assert!(packets == 0 || may_change(name, at), "{name}: byte {at}");
            }
            assert!(refused >= 32, "at least the payload is looked at: {refused}");
            // Ethernet pads short frames.
            tap.send(&[&frame[..], &[0; 18]].concat());
            assert_eq!(received(&mut far), (1, 0), "{name}: padded");
        }
    });
}

/// Whether a byte of a frame may change on its way: the source; in IPv6 or a GRH, traffic class,
/// flow label and hop limit; the UDP checksum; congestion bits.
fn may_change(name: &str, at: usize) -> bool {
    let bth = 14 + 40 + if name == "packet" { 0 } else { 8 };
    matches!(at, 6..12 | 14..18 | 21) || at == bth + 4 || name != "packet" && matches!(at, 60 | 61)
}

/// The kernel shows frames of a virtual network on the one beneath, too, without their tag.
#[test]
fn frames_of_a_virtual_network_are_not_of_the_one_beneath() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).unwrap();
        let mut near = open("packet", "a0").unwrap();
        let mut far = lab.far.within(|| open("packet", "b0")).unwrap();
        let tap = Tap::new("a0");
        let frame = a_frame(&mut near, &mut far, &tap);
        let tagged = |network: u8| {
            let (addresses, rest) = frame.split_at(12);
            [addresses, &[0x81, 0, 0, network], rest].concat()
        };
        tap.send(&tagged(5));
        assert_eq!(received(&mut far), (0, 0), "of network 5");
        // Network 0 is none: the tag is there for its priority.
        tap.send(&tagged(0));
        assert_eq!(received(&mut far), (1, 0), "of a priority");
    });
}

#[test]
fn frames_for_others_are_not_taken_and_those_from_oneself_do_no_harm() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).unwrap();
        for name in RAW {
            let mut near = open(name, "a0").unwrap();
            let mut far = lab.far.within(|| open(name, "b0")).unwrap();
            let tap = Tap::new("a0");
            let frame = a_frame(&mut near, &mut far, &tap);
            let to = |to: Mac, from: &[u8]| [&to.0, from, &frame[12..]].concat();
            let own = Mac(*frame.first_chunk().expect("a frame"));
            for other in [Mac([0xFF; 6]), Mac([2, 0, 0, 0, 0, 1]), Mac([0x33, 0x33, 0, 0, 0, 1])] {
                tap.send(&to(other, &frame[6..12]));
                assert_eq!(received(&mut far), (0, 0), "{name}: to {other}");
            }
            // Its headers say whom it is from; Ethernet's address is only where to answer.
            tap.send(&to(own, &own.0));
            assert_eq!(received(&mut far), (1, 0), "{name}: as if from itself");
        }
    });
}

/// No frame that anyone can make is more than dropped.
#[test]
fn noise_is_dropped() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 9000).unwrap();
        for name in RAW {
            let mut near = open(name, "a0").unwrap();
            let mut far = lab.far.within(|| open(name, "b0")).unwrap();
            let tap = Tap::new("a0");
            let frame = a_frame(&mut near, &mut far, &tap);
            let mut state = 1u64;
            let mut random = || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 33) as usize
            };
            for _ in 0..5_000 {
                // So much of it is right that some pass the filter.
                let right = [14, 21, 54, 62, frame.len() - 4][random() % 5];
                let len = right + random() % 9000;
                let mut noise = frame[..right].to_vec();
                noise.extend((right..len.min(9000)).map(|_| random() as u8));
                tap.send(&noise);
                assert_eq!(received(&mut far).0, 0, "{name}: {right} of {len} bytes are right");
            }
            tap.send(&frame);
            assert_eq!(received(&mut far), (1, 0), "{name}");
        }
    });
}
