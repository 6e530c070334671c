//! Going to sleep, and being woken.

use doorbell_core::encap::PathId;
use doorbell_core::nic::Outbox;
use doorbell_transports::shm::Shm;
use doorbell_transports::{Device, SharedMemory};
use std::time::Duration;

use crate::shm::common::*;

/// Sleeps until something has come. How often it slept.
fn wait(device: &mut Shm, heard: &mut Heard) -> u64 {
    let mut slept = 0;
    loop {
        device.arm(None).expect("armed");
        let found = turn(device, heard);
        if found == 0 && heard.gone.is_empty() {
            sleep(device);
            slept += 1;
        }
        device.disarm();
        if found > 0 || !heard.gone.is_empty() {
            return slept;
        }
    }
}

/// Answers each packet with the same, for so many rounds, asleep in between and after a while that
/// is a little different each time.
fn answer(mut device: Shm, link: PathId, rounds: u32, begins: bool) -> u64 {
    let (mut heard, mut slept, mut random) = (Heard::default(), 0, Random(begins.into()));
    if begins {
        send(&mut device, link, 0, b"begin");
    }
    for round in 0..rounds {
        slept += wait(&mut device, &mut heard);
        // Whoever answers the last one leaves.
        assert!(heard.gone.is_empty() || round + 1 == rounds);
        for (_, number, _) in heard.packets.drain(..) {
            assert_eq!(number, round);
        }
        for _ in 0..random.below(3000) {
            std::hint::spin_loop();
        }
        send(&mut device, link, round + u32::from(begins), b"again");
    }
    slept
}

#[test]
fn of_ten_thousand_sleeps_none_is_slept_through() {
    const ROUNDS: u32 = 10_000;
    let [(a, to_b), (b, to_a)] = pair();
    let other = std::thread::spawn(move || answer(b, to_a, ROUNDS, false));
    let slept = answer(a, to_b, ROUNDS, true) + other.join().expect("no panic");
    assert!(slept > u64::from(ROUNDS) / 2, "it slept {slept} times only");
}

#[test]
fn progress_wakes_a_writer_who_sleeps() {
    let [(mut a, to_b), (mut b, _)] = pair();
    let mut heard = Heard::default();
    for number in 0..1000 {
        let ticket = send(&mut a, to_b, number, b"to be settled");
        a.arm(None).expect("armed");
        assert_eq!(turn(&mut a, &mut heard), 0);
        assert!(!is_ready(&a));
        assert_eq!(turn(&mut b, &mut heard), 1);
        assert_eq!(turn(&mut b, &mut heard), 0);
        sleep(&a);
        a.disarm();
        assert_eq!(a.delivered(to_b), ticket);
    }
}

#[test]
fn who_polls_is_not_woken_and_an_armed_sleeper_once() {
    let [(mut a, to_b), (mut b, _)] = pair();
    let mut heard = Heard::default();
    for number in 0..100 {
        send(&mut a, to_b, number, b"seen by polling");
        assert!(!is_ready(&b));
        assert_eq!(turn(&mut b, &mut heard), 1);
    }
    b.arm(None).expect("armed");
    assert_eq!(turn(&mut b, &mut heard), 0);
    assert!(!is_ready(&b));
    send(&mut a, to_b, 0, b"the first wakes");
    assert!(is_ready(&b));
    b.disarm();
    assert!(!is_ready(&b));
    assert_eq!(turn(&mut b, &mut heard), 1);
    // Armed again, with nothing left of what woke it.
    b.arm(None).expect("armed");
    assert_eq!(turn(&mut b, &mut heard), 0);
    assert!(!is_ready(&b));
}

#[test]
fn a_sleeper_is_woken_by_time_by_a_stranger_who_calls_and_by_one_who_leaves() {
    let mut a = Shm::join(&name("a")).expect("a name");
    let mut heard = Heard::default();
    let soon = a.now() + Duration::from_millis(1);
    a.arm(Some(soon)).expect("armed");
    sleep(&a);
    a.disarm();
    assert!(a.now() >= soon);

    let mut b = Shm::join(&name("b")).expect("a name");
    let (address_a, address_b) = (a.address().clone(), b.address().clone());
    a.arm(None).expect("armed");
    assert_eq!(turn(&mut a, &mut heard), 0);
    assert!(matches!(b.reach(&address_a), Ok(None)));
    sleep(&a);
    a.disarm();
    let to_a = reach_with(&mut b, &address_a, || {}).expect("a link, which a has granted");
    let to_b = reach_with(&mut a, &address_b, || {}).expect("the same");

    a.arm(None).expect("armed");
    assert_eq!(turn(&mut a, &mut heard), 0);
    send(&mut b, to_a, 1, b"the first by a new link");
    sleep(&a);
    a.disarm();
    assert_eq!(turn(&mut a, &mut heard), 1);

    a.arm(None).expect("armed");
    assert_eq!(turn(&mut a, &mut heard), 0);
    drop(b);
    sleep(&a);
    a.disarm();
    turn(&mut a, &mut heard);
    assert_eq!(heard.gone, [to_b]);
    assert_eq!(a.delivered(to_b), 0);
}

/// What came while a device was armed is taken by a look at the sockets, and then nothing would
/// wake.
#[test]
fn whoever_is_armed_is_woken_by_what_a_look_took() {
    let mut a = Shm::join(&name("a")).expect("a name");
    let mut b = Shm::join(&name("b")).expect("a name");
    let address_a = a.address().clone();
    let mut heard = Heard::default();
    a.arm(None).expect("armed");
    assert!(matches!(b.reach(&address_a), Ok(None)));
    // Enough looks for one at the sockets: still armed, it takes the call.
    let to_a = reach_with(&mut b, &address_a, || {
        turn(&mut a, &mut heard);
    })
    .expect("a link");
    assert!(is_ready(&a));
    a.disarm();

    a.arm(None).expect("armed");
    assert_eq!(turn(&mut a, &mut heard), 0);
    send(&mut b, to_a, 1, b"rings the bell");
    for _ in 0..5000 {
        turn(&mut a, &mut heard);
    }
    assert_eq!(heard.packets.len(), 1);
    send(&mut b, to_a, 2, b"rings no more");
    sleep(&a);
    a.disarm();
    assert_eq!(turn(&mut a, &mut heard), 1);
}

/// To grant memory is to hear what the peer says, too: the bell that was to end the sleep was
/// taken, and not rung again.
#[test]
fn whoever_is_armed_and_grants_memory_is_woken_all_the_same() {
    let [(mut a, to_b), (mut b, to_a)] = pair();
    let (memory, mut heard) = (SharedMemory::new(64).expect("memory"), Heard::default());
    a.arm(None).expect("armed");
    assert_eq!(turn(&mut a, &mut heard), 0);
    send(&mut b, to_a, 1, b"rings the bell");
    a.grant(to_b, 1, &memory).expect("granted");
    assert!(is_ready(&a));
    a.disarm();
    assert_eq!(turn(&mut a, &mut heard), 1);
}

/// To look whether something was granted, as a NIC does in each turn, takes what is to wake the
/// sleeper, and sets the timer instead. To be armed anew, for an earlier time-out, set it back.
#[test]
fn whoever_is_armed_anew_is_woken_by_what_a_look_took() {
    let [(mut a, to_b), (mut b, _)] = pair();
    b.arm(None).expect("armed");
    assert_eq!(turn(&mut b, &mut Heard::default()), 0);
    send(&mut a, to_b, 0, b"wake up");
    assert!(b.granted().is_none());
    b.arm(Some(b.now() + Duration::from_secs(3600))).expect("armed");
    sleep(&b);
    b.disarm();
    assert_eq!(turn(&mut b, &mut Heard::default()), 1);
    // That is over then.
    b.arm(Some(b.now() + Duration::from_secs(3600))).expect("armed");
    assert!(!is_ready(&b));
}
