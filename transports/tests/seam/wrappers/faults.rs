//! Faults strike as they were told to, and NICs cope.

use std::time::Duration;

use doorbell_transports::Device;
use doorbell_transports::shm::Shm;
use doorbell_transports::wrap::{FaultCounts, Faults, FaultsError, Faulty};

use crate::wrappers::in_memory::InMemory;
use crate::wrappers::nics::exchange;

/// Has 300 messages sent under faults, both ways.
fn struck(faults: Faults) -> [FaultCounts; 2] {
    let (one, other) = InMemory::pair().expect("two sockets");
    let one = Faulty::new(one, faults, 1).expect("faults that can be");
    let other = Faulty::new(other, faults, 2).expect("faults that can be");
    let (one, other) = exchange(one, other, 300);
    [one.counts(), other.counts()]
}

#[test]
fn nics_recover_from_every_fault_alone() {
    type Fault = (Faults, fn(&FaultCounts) -> u64);
    let faults: [Fault; 4] = [
        (Faults { loss: 0.05, ..Faults::NONE }, |struck| struck.lost),
        (Faults { duplication: 0.05, ..Faults::NONE }, |struck| struck.repeated),
        (Faults { corruption: 0.05, ..Faults::NONE }, |struck| struck.damaged),
        (Faults { reordering: 0.05, ..Faults::NONE }, |struck| struck.held),
    ];
    for (faults, counted) in faults {
        let [one, other] = struck(faults);
        assert!(counted(&one) + counted(&other) > 0, "{faults:?}: {one:?}, {other:?}");
    }
}

#[test]
fn nics_recover_from_all_faults_at_once() {
    let delay = Duration::from_micros(50);
    let [_, receiver] = struck(Faults {
        loss: 0.03,
        duplication: 0.03,
        corruption: 0.03,
        reordering: 0.03,
        delay,
        ..Faults::NONE
    });
    let FaultCounts { lost, repeated, damaged, held, .. } = receiver;
    assert!([lost, repeated, damaged, held].iter().all(|&count| count > 0), "{receiver:?}");
}

#[test]
fn a_lossless_device_can_be_late_and_stays_lossless() {
    let [one, other] = Shm::pair().expect("a pair");
    let faults = Faults { delay: Duration::from_micros(200), ..Faults::NONE };
    let late = |device| Faulty::new(device, faults, 1).expect("a delay");
    exchange(late(one), late(other), 300);
}

#[test]
fn a_lossless_device_refuses_what_nobody_above_would_notice() {
    for (fault, faults) in [
        ("loss", Faults { loss: 0.1, ..Faults::NONE }),
        ("duplication", Faults { duplication: 0.1, ..Faults::NONE }),
        ("corruption", Faults { corruption: 0.1, ..Faults::NONE }),
        ("reordering", Faults { reordering: 0.1, ..Faults::NONE }),
    ] {
        let [one, _] = Shm::pair().expect("a pair");
        let device = one.capabilities().name;
        let refused = Faulty::new(one, faults, 1).err();
        assert_eq!(refused, Some(FaultsError::Lossless { fault, device }));
    }
}

#[test]
fn what_is_no_probability_is_refused() {
    for found in [-0.1, 1.1, f64::INFINITY] {
        let (one, _) = InMemory::pair().expect("two sockets");
        let refused = Faulty::new(one, Faults { loss: found, ..Faults::NONE }, 1).err();
        assert_eq!(refused, Some(FaultsError::NoProbability { fault: "loss", found }));
    }
}
