//! A device of RoCE v1 that is alone on its interface, and does without a filter while it is busy.

use std::fs;

use doorbell_core::encap::Path;
use doorbell_core::nic::{Numbering, Outbox};
use doorbell_core::wire::Mac;
use doorbell_kit::lab::{self, Lab};
use doorbell_kit::{is_filtered, is_ready, reach, sleep, until};
use doorbell_transports::packet::Packet as V1;
use doorbell_transports::{AnyDevice, Device};

use crate::raw::common::{Seen, Tap, listening, open, pair, pair_of, push, take, v1};

/// The tag of a process that is not there, or comes later.
const OTHER: u32 = 9;
/// Far more frames than a device takes before it looks who else is there.
const MANY: usize = 20_000;

/// Of each socket of this namespace that is asked about frames, whether it has a filter.
fn filters() -> Vec<bool> {
    listening().into_iter().map(has_filter).collect()
}

/// Whether this process's socket of that number has one; if it is just being closed, that is as
/// good.
fn has_filter(inode: u64) -> bool {
    let is = |fd: &fs::DirEntry| {
        fs::read_link(fd.path()).is_ok_and(|to| to.as_os_str() == &*format!("socket:[{inode}]"))
    };
    let all = fs::read_dir("/proc/self/fd").expect("what is open can be listed");
    let Some(found) = all.flatten().find(is) else { return true };
    let fd = found.file_name().to_str().and_then(|name| name.parse().ok()).expect("a number");
    is_filtered(fd).unwrap_or(true)
}

/// Two devices, each on an interface of its own.
struct Cable<'l> {
    lab: &'l Lab,
    near: AnyDevice,
    far: AnyDevice,
    path: Path,
    /// The number of the last packets: no frame is like one before.
    number: u32,
}

impl Cable<'_> {
    /// Sends a packet to a process of the far interface.
    fn sends(&mut self, tag: u32) -> u32 {
        self.number += 1;
        push(&mut self.near, &self.path, (pair_of(tag), self.number), 16);
        self.near.flush();
        self.number
    }

    /// Brings a packet across, and nothing else.
    fn bring(&mut self) {
        let number = self.sends(Numbering::default().tag);
        assert_eq!(take(&mut self.far, 1).packets, [(pair(), number)]);
    }

    /// Keeps the far device busy until each socket of its namespace has a filter, or not.
    fn busy_until(&mut self, expected: &[bool]) {
        until("other filters", || {
            (0..100).for_each(|_| self.bring());
            (filters() == expected).then_some(())
        });
    }

    /// How many frames the far device has seen that were not its own.
    fn strangers(&mut self) -> u64 {
        self.far.statistics().strangers
    }

    /// Another process of its interface.
    fn another(&self) -> V1 {
        self.lab.far.within(|| v1("b0", OTHER))
    }
}

/// Runs in the far namespace, where a device looks who else is there.
fn across(name: &str, run: impl FnOnce(Cable<'_>)) {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).unwrap();
        let mut near = open(name, "a0").unwrap();
        lab.far.within(|| {
            let mut far = open(name, "b0").unwrap();
            let path = reach(&mut near, &mut far);
            run(Cable { lab, near, far, path, number: 0 });
        });
    });
}

#[test]
fn who_is_busy_and_alone_has_no_filter_until_a_frame_is_anothers() {
    across("packet", |mut cable| {
        assert_eq!(filters(), [true], "it was not busy yet");
        for strangers in 0..2 {
            cable.busy_until(&[false]);
            assert_eq!(cable.strangers(), strangers);
            // The kernel drops the second.
            (0..2).for_each(|_| {
                cable.sends(OTHER);
                cable.bring();
            });
            assert_eq!((filters(), cable.strangers()), (vec![true], strangers + 1));
        }
    });
}

#[test]
fn who_finds_another_has_a_filter_until_that_is_gone() {
    across("packet", |mut cable| {
        cable.busy_until(&[false]);
        let mut other = cable.another();
        cable.busy_until(&[true, true]);
        let number = cable.sends(OTHER);
        assert_eq!(take(&mut other, 1).packets, [(pair_of(OTHER), number)]);
        drop(other);
        cable.busy_until(&[false]);
        assert_eq!(cable.strangers(), 0);
    });
}

#[test]
fn who_came_later_than_another_keeps_its_filter() {
    across("packet", |mut cable| {
        let _other = cable.another();
        // It is in front of that when it looks.
        cable.far = open("packet", "b0").unwrap();
        for _ in 0..MANY {
            cable.bring();
            assert_eq!(filters(), [true, true]);
        }
    });
}

/// The protocol that it asks for is everybody's.
#[test]
fn roce_v2_keeps_its_filter() {
    across("packet-v2", |mut cable| {
        for _ in 0..MANY {
            cable.bring();
            assert_eq!(filters(), [true]);
        }
    });
}

#[test]
fn a_sleeper_is_not_woken_by_what_is_for_others() {
    across("packet", |mut cable| {
        cable.busy_until(&[false]);
        cable.far.arm(None).expect("one may sleep");
        assert_eq!(filters(), [true]);
        assert_eq!(cable.far.receive(&mut Seen::default()), 0);
        cable.sends(OTHER);
        assert!(!is_ready(&cable.far), "that is not for it");
        let own = cable.sends(Numbering::default().tag);
        sleep(&cable.far);
        cable.far.disarm();
        assert_eq!(take(&mut cable.far, 1).packets, [(pair(), own)]);
    });
}

/// The kernel shows them to who has no filter.
#[test]
fn frames_for_other_stations_and_of_virtual_networks_are_not_taken() {
    across("packet", |mut cable| {
        let tap = cable.lab.near.within(|| Tap::new("a0"));
        cable.bring();
        let frame = tap.next().expect("it was sent");
        let (addresses, rest) = frame.split_at(12);
        let stations = [Mac([0xFF; 6]), Mac([2, 0, 0, 0, 0, 1]), Mac([0x33, 0x33, 0, 0, 0, 1])];
        let to = |station: Mac| [&station.0, &addresses[6..], rest].concat();
        let tagged = [addresses, &[0x81, 0, 0, 5], rest].concat();
        for (strangers, frame) in stations.map(to).into_iter().chain([tagged]).enumerate() {
            cable.busy_until(&[false]);
            assert_eq!(cable.strangers(), strangers as u64);
            tap.send(&frame);
            cable.bring();
        }
        assert_eq!(cable.strangers(), 4);
    });
}
