//! A device of RoCE v1 that is alone on its interface, and does without a filter while it is busy.

use doorbell_core::encap::Path;
use doorbell_core::wire::Mac;
use doorbell_kit::lab::{self, Lab};
use doorbell_kit::{is_ready, reach, sleep, until};
use doorbell_transports::packet::Packet as V1;
use doorbell_transports::{AnyDevice, Device};

use crate::common::{Seen, Tap, open, pair, pair_of, push, send_to, take, v1};

/// The tag of a process that is not there, or comes later.
const OTHER: u32 = 9;

/// Two devices, each alone on its interface.
struct Cable<'l> {
    lab: &'l Lab,
    near: AnyDevice,
    far: AnyDevice,
    path: Path,
    /// The number of the last packets: no frame is like one before.
    number: u32,
}

impl Cable<'_> {
    /// Whether the far device sees a packet that is for another process of its interface.
    fn sees_others(&mut self) -> bool {
        self.number += 1;
        let [other, own] = [pair_of(OTHER), pair()].map(|to| (to, self.number));
        [other, own].iter().for_each(|&packet| push(&mut self.near, &self.path, packet, 16));
        let mut seen = Seen::default();
        until("its own packet", || {
            self.far.receive(&mut seen);
            seen.packets.contains(&own).then_some(())
        });
        seen.packets.contains(&other)
    }

    /// Keeps the far device busy until it sees those packets, or no more of them.
    fn until_it_sees(&mut self, others: bool) {
        until("a change of what is filtered", || (self.sees_others() == others).then_some(()));
    }

    /// Another process of its interface.
    fn another(&self) -> V1 {
        self.lab.far.within(|| v1("b0", OTHER))
    }
}

/// Runs with the far device's thread in its namespace, of which it looks who else is there.
fn alone(run: impl FnOnce(Cable<'_>)) {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).unwrap();
        let mut near = open("packet", "a0").unwrap();
        lab.far.within(|| {
            let mut far = open("packet", "b0").unwrap();
            let path = reach(&mut near, &mut far);
            run(Cable { lab, near, far, path, number: 0 });
        });
    });
}

#[test]
fn others_are_filtered_unless_a_device_is_busy_and_alone() {
    alone(|mut cable| {
        assert!((0..100).all(|_| !cable.sees_others()), "it was not busy yet");
        cable.until_it_sees(true);
        let mut other = cable.another();
        cable.until_it_sees(false);
        // It gets its own, of which the first sees nothing.
        assert!(!take(&mut other, 1).packets.is_empty());
        assert!((0..100).all(|_| !cable.sees_others()), "it stays so");
        drop(other);
        cable.until_it_sees(true);
    });
}

#[test]
fn a_sleeper_is_not_woken_by_what_is_for_others() {
    alone(|mut cable| {
        cable.until_it_sees(true);
        let Cable { near, far, path, .. } = &mut cable;
        far.arm(None).expect("one may sleep");
        assert_eq!(far.receive(&mut Seen::default()), 0);
        send_to(near, path, pair_of(OTHER), 1, 16);
        assert!(!is_ready(far), "that is not for it");
        send_to(near, path, pair(), 1, 16);
        sleep(far);
        far.disarm();
        assert_eq!(take(far, 1).packets, [(pair(), 0)]);
        cable.until_it_sees(true);
    });
}

/// The kernel shows them to who has no filter.
#[test]
fn frames_for_other_stations_and_of_virtual_networks_are_not_taken() {
    alone(|mut cable| {
        cable.until_it_sees(true);
        let tap = cable.lab.near.within(|| Tap::new("a0"));
        send_to(&mut cable.near, &cable.path, pair(), 1, 16);
        take(&mut cable.far, 1);
        let frame = tap.next().expect("it was sent");
        let (addresses, rest) = frame.split_at(12);
        let counted = cable.far.statistics().frames_received;
        for other in [Mac([0xFF; 6]), Mac([2, 0, 0, 0, 0, 1]), Mac([0x33, 0x33, 0, 0, 0, 1])] {
            tap.send(&[&other.0, &addresses[6..], rest].concat());
        }
        tap.send(&[addresses, &[0x81, 0, 0, 5], rest].concat());
        assert!(cable.sees_others(), "it has no filter");
        assert_eq!(cable.far.statistics().frames_received, counted + 2, "but those two");
    });
}
