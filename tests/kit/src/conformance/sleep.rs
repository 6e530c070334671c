//! Tests of sleeping on a device, and of what wakes the sleeper.

use std::hint::spin_loop;
use std::thread;
use std::time::Duration;

use doorbell_transports::Device;

use super::bench::Bench;
use super::packets::{Pair, Received, send, sleep, take};
use crate::rig::is_ready;
use crate::sys::readable;

/// Receives until a packet has come, or nothing is left. Returns whether a packet has come.
fn look(device: &mut impl Device, received: &mut Received) -> bool {
    let before = received.packets.len();
    while received.packets.len() == before {
        if take(device, received) == 0 {
            return false;
        }
    }
    true
}

/// Receives packets, and sleeps until there is one. Returns whether this has slept.
pub(super) fn next(device: &mut impl Device, received: &mut Received) -> bool {
    let (mut found, mut slept) = (look(device, received), false);
    while !found {
        device.arm(None).expect("it can be slept on");
        // Packets that came before the device was armed wake nobody.
        found = look(device, received);
        if !found {
            sleep(device);
            slept = true;
        }
        device.disarm();
        found = found || look(device, received);
    }
    slept
}

/// Tests that two devices wake each other in turn, with pauses by which the packet comes at any
/// moment of the other's falling asleep.
pub fn ten_thousand_sleeps_end<D: Device>(bench: &Bench<'_, D>) {
    const SLEEPS: u64 = 10_000;
    /// The length of the packet that ends the other side.
    const LAST: usize = 0;
    let Pair { mut near, mut far, to_far, to_near } = Pair::new(bench.pair());
    let pause = |number: u32| {
        for _ in 0..number.wrapping_mul(0x9E37_79B1) >> 21 {
            spin_loop();
        }
    };
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut received = Received::default();
            loop {
                next(&mut far, &mut received);
                let &(number, len) = received.packets.last().expect("one has come");
                if len == LAST {
                    break;
                }
                pause(!number);
                send(&mut far, &to_near, number, len);
            }
        });
        let (mut received, mut slept, mut number) = (Received::default(), 0, 0);
        while slept < SLEEPS {
            pause(number);
            send(&mut near, &to_far, number, 8);
            slept += u64::from(next(&mut near, &mut received));
            number += 1;
            assert!(number < 100 * SLEEPS as u32, "only {slept} sleeps in {number} rounds");
        }
        received.in_order();
        assert_eq!(received.packets.len(), number as usize);
        send(&mut near, &to_far, number, LAST);
    });
    assert!(near.statistics().sleeps >= SLEEPS, "{:?}", near.statistics());
}

/// Tests that frames and times make the readiness readable while the device is armed, and nothing
/// else does.
pub fn a_device_is_ready_only_while_it_is_armed<D: Device>(bench: &Bench<'_, D>) {
    let Pair { mut near, mut far, to_far, .. } = Pair::new(bench.pair());
    let mut received = Received::default();
    for number in 0..100 {
        assert!(!is_ready(&far), "disarmed, and nothing has come");
        far.arm(None).expect("it can be slept on");
        assert_eq!(take(&mut far, &mut received), 0);
        assert!(!is_ready(&far), "armed, and nothing has come");
        send(&mut near, &to_far, 3 * number, 8);
        sleep(&mut far);
        far.disarm();
        assert!(!is_ready(&far), "disarmed, and something waits");
        send(&mut near, &to_far, 3 * number + 1, 8);
        assert!(!is_ready(&far), "disarmed, and something comes");
        // The device is armed late, so packets that have come before are found by receiving.
        far.arm(None).expect("it can be slept on");
        while received.packets.len() < 3 * number as usize + 2 {
            if take(&mut far, &mut received) == 0 {
                sleep(&mut far);
            }
        }
        send(&mut near, &to_far, 3 * number + 2, 8);
        sleep(&mut far);
        far.disarm();
        next(&mut far, &mut received);
    }
    received.in_order();
    assert_eq!(received.packets.len(), 300);
}

/// Tests that the time that was given to `arm` wakes the sleeper once, and not before it has come.
pub fn a_sleep_ends_when_it_was_to<D: Device>(bench: &Bench<'_, D>) {
    let (_, mut far) = bench.pair();
    for millis in [0, 1, 5] {
        let end = far.now() + Duration::from_millis(millis);
        far.arm(Some(end)).expect("it can be slept on");
        while take(&mut far, &mut Received::default()) > 0 {}
        sleep(&mut far);
        assert!(far.now() >= end, "woken before its time");
        far.disarm();
        assert!(!is_ready(&far), "what has woken it is over");
    }
    // The time of an earlier sleep does not end the next one.
    far.arm(Some(far.now() + Duration::from_millis(1))).expect("it can be slept on");
    far.disarm();
    far.arm(None).expect("it can be slept on");
    while take(&mut far, &mut Received::default()) > 0 {}
    let woken = readable(far.readiness(), Duration::from_millis(20));
    assert!(!woken, "a time of an earlier sleep");
    far.disarm();
}
