//! What was sent arrives although its sender ends at once, in order.
//!
//! A sender dropped its queue pairs with all that the NIC had not sent yet, or that the peer had
//! not acknowledged: of eight messages of 50 bytes, none to all eight arrived.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use doorbell_am::{Endpoint, Event, Handlers, Notice};
use doorbell_kit::child::{self, Child};
use tokio::runtime::{Builder, Runtime};

const COUNTED: Notice<u64> = Notice::new("counted");

/// The numbers and lengths of messages: few and short ones, such that fill several packets, and
/// more than the sender has credits for at first.
const AMOUNTS: [(u64, usize); 4] = [(1, 8), (8, 50), (8, 4000), (300, 100)];

/// The ways in which a process ends in order.
const WAYS: [&str; 3] = ["closes", "drops", "returns"];

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Sends messages to an endpoint, and ends the process at once: in the way that is given.
fn sends(part: &str) -> ! {
    let words: Vec<_> = part.split(' ').collect();
    let [way, device, name, count, len] = words[..] else { panic!("{part} is no part") };
    let runtime = runtime();
    let kept = runtime.block_on(async {
        let near = Endpoint::open(device, Handlers::new()).await.expect("the device is there");
        let peer = near.connect(name).await.expect("the peer is there");
        let len: usize = len.parse().expect("a length");
        for number in 0..count.parse().expect("a count") {
            peer.notify_with(COUNTED, number, &vec![7; len]).await.expect("the peer is there");
        }
        match way {
            "closes" => near.close().await.expect("the peer takes all"),
            "returns" => return Some(near),
            _ => {}
        }
        None
    });
    drop(runtime);
    drop(kept);
    std::process::exit(0)
}

fn all_arrive(test: &'static str, device: &str) {
    if let Some(part) = child::part() {
        sends(&part);
    }
    for (count, len) in AMOUNTS {
        for way in WAYS {
            runtime().block_on(async {
                let sum = Arc::new(AtomicU64::new(0));
                let adds = sum.clone();
                let handlers = Handlers::new().on(COUNTED, move |notice, number| {
                    assert_eq!(notice.payload().len(), len);
                    // In the order in which they were sent.
                    assert_eq!(adds.fetch_add(1, Ordering::Relaxed), number);
                });
                let far = Endpoint::open(device, handlers).await.expect("the device is there");
                let mut events = far.events();
                let part = format!("{way} {device} {} {count} {len}", far.name());
                let child = Child::start(test, &part, None);
                while !matches!(events.recv().await, Ok(Event::Gone(..))) {}
                let sum = sum.load(Ordering::Relaxed);
                assert_eq!(sum, count, "{way}: messages of {len} bytes");
                child.end();
            });
        }
    }
}

#[test]
fn messages_over_shared_memory_arrive_although_their_sender_ends() {
    all_arrive(
        "promises::ending::messages_over_shared_memory_arrive_although_their_sender_ends",
        "shm",
    );
}

#[test]
fn messages_over_udp_arrive_although_their_sender_ends() {
    all_arrive(
        "promises::ending::messages_over_udp_arrive_although_their_sender_ends",
        "udp:127.0.0.1:0",
    );
}
