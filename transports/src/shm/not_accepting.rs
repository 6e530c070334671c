//! A test of a device while too many descriptors that were passed to it wait to be closed.

use std::thread;

use super::Shm;
use crate::device::Device;
use crate::sys::unix::tests::{closing_thread_alone, keep_closing_thread_busy, let_all_in};

use doorbell_core::encap::PathId;
use doorbell_core::nic::{Flow, Inbox};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Malformed, Packet};

struct Nobody;

impl Inbox for Nobody {
    fn packet<P: Payload>(&mut self, _: Flow<'_>, _: &Packet<P>) {}
    fn malformed(&mut self, _: Malformed) {}
    fn gone(&mut self, _: PathId) {}
}

#[test]
fn a_device_takes_in_nobody_while_too_much_waits_to_be_closed_and_says_so() {
    let _alone = closing_thread_alone();
    let_all_in();
    let name = |end| format!("test/shut/{}/{end}", std::process::id());
    let [mut called, mut caller] = ["called", "caller"].map(|end| Shm::join(&name(end)).unwrap());
    let to = called.address().clone();
    let busy = keep_closing_thread_busy();
    assert!(matches!(caller.reach(&to), Ok(None)));
    called.attend();
    assert!(matches!(caller.reach(&to), Ok(None)), "it has no answer yet");
    let trouble = called.trouble().expect("it says so").to_string();
    assert!(trouble.contains("256 descriptors") && trouble.contains(&name("called")), "{trouble}");
    // Callers that wait do not keep the driver awake.
    let ready = |device: &Shm| device.watch.ready().1 > 0;
    assert!(!ready(&called));
    drop(busy);
    while caller.reach(&to).expect("it is there").is_none() {
        // The steps of a driver that sleeps and is woken by the timer.
        called.arm(None).expect("armed");
        called.receive(&mut Nobody);
        called.disarm();
        thread::yield_now();
    }
    assert_eq!(called.trouble(), None);
}
