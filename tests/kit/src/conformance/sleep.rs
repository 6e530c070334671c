//! Sleeping, and waking for what there is to wake for.

use std::hint::spin_loop;
use std::thread;
use std::time::Duration;

use doorbell_transports::Device;

use super::bench::Bench;
use super::packets::{Pair, Seen, send, sleep, take};
use crate::rig::is_ready;
use crate::sys::readable;

/// Takes what has come, until that was a packet, or all. Whether it was a packet.
fn look(device: &mut impl Device, seen: &mut Seen) -> bool {
    let before = seen.packets.len();
    while seen.packets.len() == before {
        if take(device, seen) == 0 {
            return false;
        }
    }
    true
}

/// Takes packets, asleep until there is one. Whether it had to sleep for it.
pub(super) fn next(device: &mut impl Device, seen: &mut Seen) -> bool {
    let (mut found, mut slept) = (look(device, seen), false);
    while !found {
        device.arm(None).expect("it can be slept on");
        // What came before it was armed wakes nobody.
        found = look(device, seen);
        if !found {
            sleep(device);
            slept = true;
        }
        device.disarm();
        found = found || look(device, seen);
    }
    slept
}

/// Two that wake each other in turn, with pauses that let the packet come at any moment of the
/// other's going to sleep.
pub fn ten_thousand_sleeps_end<D: Device>(bench: &Bench<'_, D>) {
    const SLEEPS: u64 = 10_000;
    /// Ends the other side.
    const LAST: usize = 0;
    let Pair { mut near, mut far, to_far, to_near } = Pair::new(bench.pair());
    let pause = |number: u32| {
        for _ in 0..number.wrapping_mul(0x9E37_79B1) >> 21 {
            spin_loop();
        }
    };
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut seen = Seen::default();
            loop {
                next(&mut far, &mut seen);
                let &(number, len) = seen.packets.last().expect("one has come");
                if len == LAST {
                    break;
                }
                pause(!number);
                send(&mut far, &to_near, number, len);
            }
        });
        let (mut seen, mut slept, mut number) = (Seen::default(), 0, 0);
        while slept < SLEEPS {
            pause(number);
            send(&mut near, &to_far, number, 8);
            slept += u64::from(next(&mut near, &mut seen));
            number += 1;
            assert!(number < 100 * SLEEPS as u32, "only {slept} sleeps in {number} rounds");
        }
        seen.in_order();
        assert_eq!(seen.packets.len(), number as usize);
        send(&mut near, &to_far, number, LAST);
    });
    assert!(near.statistics().sleeps >= SLEEPS, "{:?}", near.statistics());
}

/// Frames and times make it readable while it is armed, and nothing else ever does.
pub fn a_device_is_ready_only_while_it_is_armed<D: Device>(bench: &Bench<'_, D>) {
    let Pair { mut near, mut far, to_far, .. } = Pair::new(bench.pair());
    let mut seen = Seen::default();
    for number in 0..100 {
        assert!(!is_ready(&far), "disarmed, and nothing has come");
        far.arm(None).expect("it can be slept on");
        assert_eq!(take(&mut far, &mut seen), 0);
        assert!(!is_ready(&far), "armed, and nothing has come");
        send(&mut near, &to_far, 3 * number, 8);
        sleep(&mut far);
        far.disarm();
        assert!(!is_ready(&far), "disarmed, and something waits");
        send(&mut near, &to_far, 3 * number + 1, 8);
        assert!(!is_ready(&far), "disarmed, and something comes");
        // Armed late: what has come before is found by looking.
        far.arm(None).expect("it can be slept on");
        while seen.packets.len() < 3 * number as usize + 2 {
            if take(&mut far, &mut seen) == 0 {
                sleep(&mut far);
            }
        }
        send(&mut near, &to_far, 3 * number + 2, 8);
        sleep(&mut far);
        far.disarm();
        next(&mut far, &mut seen);
    }
    seen.in_order();
    assert_eq!(seen.packets.len(), 300);
}

/// The time that was given when it was armed wakes, not before it has come, and only once.
pub fn a_sleep_ends_when_it_was_to<D: Device>(bench: &Bench<'_, D>) {
    let (_, mut far) = bench.pair();
    for millis in [0, 1, 5] {
        let end = far.now() + Duration::from_millis(millis);
        far.arm(Some(end)).expect("it can be slept on");
        while take(&mut far, &mut Seen::default()) > 0 {}
        sleep(&mut far);
        assert!(far.now() >= end, "woken before its time");
        far.disarm();
        assert!(!is_ready(&far), "what has woken it is over");
    }
    // A time that was set is not one of the next sleep.
    far.arm(Some(far.now() + Duration::from_millis(1))).expect("it can be slept on");
    far.disarm();
    far.arm(None).expect("it can be slept on");
    while take(&mut far, &mut Seen::default()) > 0 {}
    let woken = readable(far.readiness(), Duration::from_millis(20));
    assert!(!woken, "a time of an earlier sleep");
    far.disarm();
}
