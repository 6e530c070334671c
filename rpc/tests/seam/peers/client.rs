//! Clients that die or stop, as their server sees it.

use std::time::{Duration, Instant};

use doorbell_kit::child::{self, Child};
use doorbell_rpc::{Channel, Request};
use futures_util::{StreamExt, stream};

use crate::peers::common::{
    ENDLESS, FOREVER, KEEP_ALIVE, LONG, Over, SINK, Seen, after, client, many, server,
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Killed,
    Stopped,
}

/// The part of a process that calls and streams until it is killed.
async fn calls(name: &str) -> ! {
    let client = client(Channel::builder(), name).await;
    let mut endless = client.server_streaming(ENDLESS, ()).await.expect("it streams").into_inner();
    assert_eq!(endless.message().await.expect("it streams"), Some(0));
    let forever = client.unary(FOREVER, ());
    // A number, and no end.
    let numbers = stream::iter([1_u64]).chain(stream::pending());
    let sink = client.client_streaming(SINK, Request::new(numbers));
    let _ = tokio::join!(forever, sink);
    unreachable!("nobody answers");
}

async fn ends(test: &str, over: Over, end: End) {
    if let Some(name) = child::part() {
        calls(&name).await;
    }
    let seen = Seen::default();
    let server = server(&seen).keep_alive(KEEP_ALIVE).sessions(8, Duration::from_secs(1));
    let server = server.open(&over.fixed()).await.expect("nobody has it");
    let before = server.nic().statistics().objects;
    let mut child = Child::start(test, &server.name().to_string(), None);
    many(&seen.begun, 3).await;
    assert_eq!(server.running(), 3);
    // Until what was sent is acknowledged: nothing is under way to the client then.
    while server.running() != 3 || server.nic().statistics().nic.completed == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    match end {
        End::Killed => assert!(!child.kill().success()),
        End::Stopped => child.stop(),
    }
    let ended = Instant::now();
    many(&seen.ended, 3).await;
    println!("{over:?}: dropped after {:?}", ended.elapsed());
    if over == Over::Udp {
        after(ended, KEEP_ALIVE / 2 - Duration::from_millis(1));
    }
    // Nothing is left of the client when its time to come again is over.
    let nothing_left = async {
        while server.running() != 0
            || server.sessions() != 0
            || server.nic().statistics().objects != before
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, nothing_left).await.unwrap_or_else(|_| {
        let objects = server.nic().statistics().objects;
        panic!("{before:?} before, and left are {objects:?}, {} sessions", server.sessions());
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn over_udp_handlers_of_a_client_that_is_killed_are_dropped_and_nothing_is_left_of_it() {
    let test = "peers::client::over_udp_handlers_of_a_client_that_is_killed_are_dropped_and_nothing_is_\
                left_of_it";
    ends(test, Over::Udp, End::Killed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_udp_handlers_of_a_client_that_is_stopped_are_dropped_and_nothing_is_left_of_it() {
    let test = "peers::client::over_udp_handlers_of_a_client_that_is_stopped_are_dropped_and_nothing_is_\
                left_of_it";
    ends(test, Over::Udp, End::Stopped).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_shared_memory_handlers_of_a_client_that_is_killed_are_dropped_at_once() {
    let test =
        "peers::client::over_shared_memory_handlers_of_a_client_that_is_killed_are_dropped_at_once";
    ends(test, Over::Shm, End::Killed).await;
}
