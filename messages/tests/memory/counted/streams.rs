//! Peers of streams that have an endpoint hold more than they may.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use doorbell_am::{self as am, Handlers, Kept, RequestId};
use doorbell_kit::effort;
use doorbell_messages::streams::{Endpoint, StreamId};

use crate::{ALLOCATED, alone};

const BEGIN: RequestId<[u64; 2]> = RequestId::new(1, "streams begin");
const FAILED: RequestId<[u64; 2]> = RequestId::new(5, "streams failed");

/// The bit of a packet's word with which the message ends.
const ENDS: u64 = 1 << 8;

const REST: StreamId = StreamId::new("rest");

fn run(test: impl Future<Output = ()>) {
    let _alone = alone();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().expect("a runtime").block_on(test);
}

// The failure of each message was kept until there was a credit, and its slot was free before.
#[test]
fn failures_of_messages_are_bounded_although_their_sender_gives_no_credits() {
    static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());
    run(async {
        let server = Endpoint::open("shm").await.expect("it opens");
        let keeps = Handlers::new()
            .request(FAILED, |request, _| KEPT.lock().expect("nobody panics").push(request.keep()));
        let stranger = am::Endpoint::open("shm", keeps).await.expect("it opens");
        let peer = stranger.connect(server.name()).await.expect("the server is there");
        let mut before = 0;
        for number in 0..effort(100_000, 2_000_000) {
            if peer.request(BEGIN, [ENDS, 12345]).await.is_err() {
                break; // The stranger was cut off.
            }
            if number < 1000 {
                before = ALLOCATED.bytes(); // Memory that is taken once is there from here on.
                continue;
            }
            let holds = ALLOCATED.bytes() - before;
            assert!(holds < 2 << 20, "{holds} bytes are held after message {number}");
        }
        KEPT.lock().expect("nobody panics").clear();
    });
}

// Each byte was kept in the packet in which it had come.
#[test]
fn a_rest_that_comes_in_packets_of_a_byte_takes_little_more_than_its_bytes() {
    const MOST: usize = 100_000;
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    run(async {
        let server = Endpoint::builder().handler(REST, |mut message| async move {
            TAKEN.store(message.receive_rest(MOST).await?.len(), Ordering::Relaxed);
            Ok(())
        });
        let server = server.open("shm").await.expect("it opens");
        let client = Endpoint::open("shm").await.expect("it opens");
        let peer = client.connect(server.name()).await.expect("the server is there");
        let mut message = peer.begin(REST).await.expect("the server is there");
        let mut before = 0;
        for number in 0..MOST {
            message.send([7]).await.expect("it is taken");
            message.flush().await.expect("it is taken");
            if number < 5000 {
                before = ALLOCATED.bytes(); // Memory that is taken once is there from here on.
                continue;
            }
            // Some thousands of packets wait in the window until the handler takes them.
            let holds = ALLOCATED.bytes() - before;
            assert!(holds < 2 << 20, "{holds} bytes are held for {number}");
        }
        message.end_handled().await.expect("it is received");
        assert_eq!(TAKEN.load(Ordering::Relaxed), MOST);
    });
}

#[test]
fn a_receive_of_more_bytes_than_come_takes_a_mebibyte_ahead() {
    static HELD: AtomicUsize = AtomicUsize::new(0);
    run(async {
        let server = Endpoint::builder().handler(REST, |mut message| async move {
            let mut first = [0];
            message.receive_into(&mut first).await?;
            let before = ALLOCATED.bytes();
            let mut receives = Box::pin(message.receive(1 << 40));
            let polled = std::future::poll_fn(|context| {
                Poll::Ready(receives.as_mut().poll(context).is_pending())
            });
            assert!(polled.await, "not all of that has come");
            HELD.store((ALLOCATED.bytes() - before).max(0) as usize, Ordering::Relaxed);
            receives.await?;
            Ok(())
        });
        let server = server.open("shm").await.expect("it opens");
        let client = Endpoint::open("shm").await.expect("it opens");
        let peer = client.connect(server.name()).await.expect("the server is there");
        let mut message = peer.begin(REST).await.expect("the server is there");
        message.send([7; 100]).await.expect("it is taken");
        message.flush().await.expect("it is taken");
        while HELD.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        message.end_handled().await.expect_err("the message has ended before");
        let held = HELD.load(Ordering::Relaxed);
        assert!(held < (1 << 20) + 100_000, "{held} bytes are held for 99 that have come");
    });
}
