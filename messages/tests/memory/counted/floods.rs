//! Floods of messages that nobody receives yet: nothing is lost, and memory is bounded.

use doorbell_kit::child::{self, Child};
use doorbell_messages::{Endpoint, Match};
use futures_util::future::join_all;

use crate::ends::{body, check};
use crate::{ALLOCATED, alone};

/// How many messages come.
const COUNT: u64 = 100_000;

/// The memory that they may take.
const WINDOW: usize = 1 << 20;

/// Sends the flood, and tells when all of it was handed over, from another process.
async fn floods(name: &str, len: usize) {
    let near = Endpoint::builder().window(WINDOW).open(device(name)).await.expect("it opens");
    let peer = near.connect(name).await.expect("it is there");
    let sends: Vec<_> = (0..COUNT / 10).map(|_| peer.send(3, body(3, len))).collect();
    join_all(sends).await.into_iter().for_each(|sent| sent.expect("it was received"));
    assert_eq!(tokio::task::block_in_place(child::listen).as_deref(), Some("flood"));
    let sends: Vec<_> = (0..COUNT).map(|number| peer.send(1, body(number, len))).collect();
    child::tell("all sent");
    join_all(sends).await.into_iter().for_each(|sent| sent.expect("it was received"));
    peer.send_synchronously(2, "the end").await.expect("it was received");
}

fn device(name: &str) -> &'static str {
    if name.starts_with("shm") { "shm" } else { "udp:127.0.0.1:0" }
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("threads can be started")
}

/// Has another process flood an endpoint with messages of a length.
fn is_flooded(test: &str, device: &str, len: usize) {
    if let Some(name) = child::part() {
        return runtime().block_on(floods(&name, len));
    }
    let _alone = alone();
    runtime().block_on(async {
        let far = Endpoint::builder().window(WINDOW).open(device).await.expect("it opens");
        let mut child = Child::start(test, &far.name().to_string(), None);
        // What the connection takes, with the receives that a busy peer has, is there before.
        for _ in 0..COUNT / 10 {
            check(&far.receive(Match::exactly(3)).await.expect("it was sent"), 3, len);
        }
        let before = ALLOCATED.bytes();
        child.say("flood");
        let child = tokio::task::spawn_blocking(move || {
            assert_eq!(child.hear(), "all sent");
            child
        });
        let child = child.await.expect("it tells");
        for number in 0..COUNT {
            if number % 1000 == 0 {
                // Messages that are kept held the buffers in which they had come, and those without
                // bytes took several times what they counted for. What goes beyond the window
                // is for the buffers in which packets come, and the spare part of tables.
                let holds = ALLOCATED.bytes() - before;
                let most = 4 * WINDOW as isize;
                assert!(holds < most, "{holds} bytes before message {number}");
            }
            check(&far.receive(Match::exactly(1)).await.expect("it was sent"), number, len);
        }
        assert_eq!(far.receive(Match::any()).await.expect("it was sent").body, "the end");
        assert!(far.probe(Match::any()).is_none());
        tokio::task::spawn_blocking(|| child.end()).await.expect("it ends well");
    });
}

#[test]
fn over_shared_memory_a_flood_of_empty_messages_is_bounded_and_in_order() {
    let test =
        "counted::floods::over_shared_memory_a_flood_of_empty_messages_is_bounded_and_in_order";
    is_flooded(test, "shm", 0);
}

#[test]
fn over_shared_memory_a_flood_of_longer_messages_is_bounded_and_in_order() {
    let test =
        "counted::floods::over_shared_memory_a_flood_of_longer_messages_is_bounded_and_in_order";
    is_flooded(test, "shm", 1200);
}

#[test]
fn over_sockets_a_flood_of_messages_of_a_quarter_of_a_packet_is_bounded_and_in_order() {
    let test = "counted::floods::over_sockets_a_flood_of_messages_of_a_quarter_of_a_packet_is_bounded_and_in_order";
    is_flooded(test, "udp:127.0.0.1:0", 1100);
}

#[test]
fn over_sockets_a_flood_of_short_messages_is_bounded_and_in_order() {
    let test = "counted::floods::over_sockets_a_flood_of_short_messages_is_bounded_and_in_order";
    is_flooded(test, "udp:127.0.0.1:0", 60);
}
