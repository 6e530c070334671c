//! Who is asked first whether a frame is its own.

use doorbell_core::encap::Path;
use doorbell_core::nic::Numbering;
use doorbell_kit::child;
use doorbell_kit::lab::{self, Lab};
use doorbell_kit::{is_ready, reach, sleep, until};
use doorbell_transports::{AnyDevice, Device, Spec};

use crate::raw::common::{RAW, Seen, listening, open, pair, send_to, sockets, take};

/// More frames than a device takes before it first looks who is in front.
const MANY: usize = 5000;

/// Devices on the other interface that were opened later than the first.
fn others(name: &str) -> Vec<AnyDevice> {
    let spec: Spec = format!("{name}:b0").parse().expect("a device");
    let other = |tag| spec.open(Numbering { tag, ..Numbering::default() });
    (2..5).map(|tag| other(tag).expect("the interface is there")).collect()
}

/// Brings a packet across, each eighth time to somebody asleep.
fn bring_one(near: &mut AnyDevice, far: &mut AnyDevice, path: &Path, number: usize) {
    let sleeps = number.is_multiple_of(8);
    if sleeps {
        far.arm(None).expect("one may sleep");
        assert_eq!(far.receive(&mut Seen::default()), 0);
    }
    send_to(near, path, pair(), 1, number % 500);
    if sleeps {
        sleep(far);
        far.disarm();
    }
    assert_eq!(take(far, 1).packets, [(pair(), 0)]);
}

/// Runs on an interface of the lab's other side, with a device there and one on this side.
fn across(lab: &Lab, name: &str, run: impl FnOnce(&mut AnyDevice, AnyDevice, &Path)) {
    let mut near = open(name, "a0").unwrap();
    lab.far.within(|| {
        let mut far = open(name, "b0").unwrap();
        let path = reach(&mut near, &mut far);
        run(&mut near, far, &path);
    });
}

fn comes_to_the_front(near: &mut AnyDevice, mut far: AnyDevice, path: &Path, name: &str) {
    let others = others(name);
    let before = listening();
    assert_eq!(before.len(), 1 + others.len());
    let mut numbers = 0..;
    until("the front", || {
        bring_one(near, &mut far, path, numbers.next()?);
        let now = listening();
        // It is the last, and the socket by which it listened first is gone.
        (now.len() == before.len() && now[..3] == before[1..]).then_some(())
    });
    let counted = far.statistics();
    (0..MANY).for_each(|number| bring_one(near, &mut far, path, number));
    assert_eq!(far.receive(&mut Seen::default()), 0, "nothing came twice");
    assert_eq!(far.statistics().frames_received, counted.frames_received + MANY as u64);
    assert_eq!(far.statistics().overrun, 0);
}

/// What each test has: an interface on either side.
fn with_a_cable(run: impl FnOnce(&Lab)) {
    lab::test(|lab| {
        lab.cable("a0", "b0", 9000).unwrap();
        run(lab);
    });
}

#[test]
fn a_busy_device_of_roce_v1_comes_to_the_front() {
    with_a_cable(|lab| {
        across(lab, "packet", |near, far, path| comes_to_the_front(near, far, path, "packet"));
    });
}

#[test]
fn a_busy_device_of_roce_v2_comes_to_the_front() {
    with_a_cable(|lab| {
        across(lab, "packet-v2", |near, far, path| {
            comes_to_the_front(near, far, path, "packet-v2");
        });
    });
}

/// Brings packets across until the device has two sockets.
fn reach_overlap(near: &mut AnyDevice, far: &mut AnyDevice, path: &Path, before: usize) {
    let mut numbers = 0..;
    until("two sockets", || {
        bring_one(near, far, path, numbers.next()?);
        (listening().len() == before + 1).then_some(())
    });
}

/// Who sleeps is woken a few times, to close the old socket, and not for what was taken before.
fn arrives_asleep(near: &mut AnyDevice, mut far: AnyDevice, path: &Path, name: &str) {
    let others = others(name);
    reach_overlap(near, &mut far, path, 1 + others.len());
    let mut wakes = 0;
    while listening().len() > 1 + others.len() {
        far.arm(None).expect("one may sleep");
        assert_eq!(far.receive(&mut Seen::default()), 0);
        sleep(&far);
        far.disarm();
        assert_eq!(far.receive(&mut Seen::default()), 0);
        wakes += 1;
    }
    assert!((1..60).contains(&wakes), "it woke {wakes} times");
    far.arm(None).expect("one may sleep");
    assert!(!is_ready(&far), "nothing has come");
    far.disarm();
    (0..MANY).for_each(|number| bring_one(near, &mut far, path, number));
}

#[test]
fn a_device_that_falls_asleep_on_its_way_arrives() {
    child::alone(|| {
        with_a_cable(|lab| {
            for name in RAW {
                across(lab, name, |near, far, path| arrives_asleep(near, far, path, name));
            }
        });
    });
}

/// Who polls from another namespace would open a socket there.
#[test]
fn a_device_that_is_polled_from_elsewhere_stays_where_it_is() {
    with_a_cable(|lab| {
        let mut near = open("packet", "a0").unwrap();
        let mut far = lab.far.within(|| open("packet", "b0").unwrap());
        let path = reach(&mut near, &mut far);
        let others = lab.far.within(|| others("packet"));
        let before = lab.far.within(sockets);
        assert_eq!(before.len(), 1 + others.len());
        (0..2 * MANY).for_each(|number| bring_one(&mut near, &mut far, &path, number));
        assert_eq!((lab.far.within(sockets), sockets().len()), (before, 1));
    });
}

/// It opens no other socket where there is nobody else.
#[test]
fn a_device_that_is_alone_stays_where_it_is() {
    with_a_cable(|lab| {
        for name in RAW {
            across(lab, name, |near, mut far, path| {
                let before = listening();
                for number in 0..2 * MANY {
                    bring_one(near, &mut far, path, number);
                    assert_eq!(listening(), before);
                }
            });
        }
    });
}

/// Drops a device after so many frames, wherever that finds it.
fn leaves_nothing(near: &mut AnyDevice, mut far: AnyDevice, path: &Path, frames: usize) {
    let _others = others("packet");
    let there = sockets();
    (0..frames).for_each(|number| bring_one(near, &mut far, path, number));
    drop(far);
    assert_eq!(sockets(), there[1..], "after {frames} frames");
}

/// Whatever it was about to do.
#[test]
fn a_device_that_is_dropped_on_its_way_leaves_nothing_behind() {
    child::alone(|| {
        with_a_cable(|lab| {
            for more in (0..13).map(|power| 1 << power) {
                across(lab, "packet", |near, far, path| {
                    leaves_nothing(near, far, path, MANY - 1000 + more);
                });
            }
        });
    });
}
