//! Memory is granted through wrappers as without them.

use doorbell_core::encap::PathId;
use doorbell_core::nic::Way;
use doorbell_transports::shm::Shm;
use doorbell_transports::wrap::{Faults, Faulty, Recorder, Traced};
use doorbell_transports::{Device, SharedMemory};

/// A wrapper said that its device's peers can map memory, and that they can't when it was asked to
/// grant some.
#[test]
fn a_wrapped_device_grants_memory_if_it_says_that_it_can() {
    let [one, other] = Shm::pair().expect("a pair");
    grants(Traced::new(one), Traced::new(other));
    let [one, other] = Shm::pair().expect("a pair");
    let recorded = |device| Recorder::new(device, Vec::new()).expect("memory takes all");
    grants(recorded(one), recorded(other));
    let [one, other] = Shm::pair().expect("a pair");
    let faulty = |device| Faulty::new(device, Faults::NONE, 1).expect("no fault at all");
    grants(faulty(one), faulty(other));
}

fn grants(mut one: impl Device, mut other: impl Device) {
    assert!(one.capabilities().mapping);
    let way = one.reach(other.address()).expect("a peer").expect("at once");
    let Way::Link(link) = way else { panic!("a link of shared memory") };
    let memory = SharedMemory::new(64).expect("memory");
    one.grant(link, 42, &memory).expect("granted");
    let grant = other.granted().expect("it was sent");
    memory.region().store(8, 5).expect("a word");
    assert_eq!((grant.tag, grant.memory.load(8)), (42, Ok(5)));
    assert!(other.grant(PathId(99), 1, &memory).is_err());
}
