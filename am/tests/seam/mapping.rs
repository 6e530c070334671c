//! What `map` has returned works until that entry is unmapped, whatever others map and unmap
//! meanwhile.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use doorbell_am::{Bundle, BundleConfig, ConnectError, Endpoint, Handlers, Name, Tag, Unwelcome};
use doorbell_verbs::{Config, Nic};

use crate::common::{ADD, ALL, Over, SUM, everywhere, runtime};

/// An endpoint that adds, on a NIC that is configured as a program does that says nothing.
async fn adding(over: Over, name: &str) -> Endpoint {
    adding_on(over, name, Config::default()).await
}

async fn adding_on(over: Over, name: &str, config: Config) -> Endpoint {
    let device = match over {
        Over::Shm => format!("shm:am-mapping-{}/{name}", std::process::id()),
        Over::Udp => "udp:127.0.0.1:0".to_owned(),
    };
    let nic = Nic::builder().config(config).open(&device).await.expect("nobody else has that name");
    let bundle = Bundle::new(&nic, &BundleConfig::default()).expect("room");
    let adds = Handlers::new().request(ADD, |request, (a, b)| request.reply(SUM, a + b));
    Endpoint::on_bundle(&bundle, adds).await.expect("room")
}

/// Maps a peer, calls it, and unmaps it again, so often. Each call is answered.
async fn cycles(own: &Endpoint, index: usize, name: &Name, count: u64) {
    for cycle in 0..count {
        call_mapped(own, index, name, cycle).await;
        own.unmap(index).await.expect("it is mapped");
    }
}

async fn call_mapped(own: &Endpoint, index: usize, name: &Name, cycle: u64) {
    let tell = |what, why: &dyn std::fmt::Display| -> ! {
        panic!("{what} at {index} in cycle {cycle}: {why}")
    };
    let peer = own.map(index, name, Tag(1)).await.unwrap_or_else(|why| tell("map", &why));
    let sum = peer.call(ADD, (cycle, 2)).await.unwrap_or_else(|why| tell("call", &why));
    assert_eq!(sum.arguments(SUM), Ok(cycle + 2));
}

/// Polls a future so often, and drops it then.
async fn polled<F: Future>(future: F, times: usize) -> Option<F::Output> {
    let (mut future, mut left) = (pin!(future), times);
    std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    })
    .await
}

const CYCLES: u64 = 150;

#[test]
fn two_tasks_that_map_the_same_peer_at_two_places_have_all_their_calls_answered() {
    everywhere(|over| async move {
        let (own, far) = (Arc::new(adding(over, "two-a").await), adding(over, "two-b").await);
        let tasks = [0, 1].map(|index| {
            let (own, name) = (own.clone(), far.name().clone());
            tokio::spawn(async move { cycles(&own, index, &name, CYCLES).await })
        });
        for task in tasks {
            task.await.expect("its calls are answered");
        }
    });
}

#[test]
fn two_endpoints_that_map_each_other_have_all_their_calls_answered() {
    everywhere(|over| async move {
        let ends = [adding(over, "each-a").await, adding(over, "each-b").await].map(Arc::new);
        let names = [1, 0].map(|other: usize| ends[other].name().clone());
        let tasks =
            ends.clone().into_iter().zip(names).map(|(own, name)| {
                tokio::spawn(async move { cycles(&own, 0, &name, CYCLES).await })
            });
        for task in Vec::from_iter(tasks) {
            task.await.expect("its calls are answered");
        }
    });
}

#[test]
fn a_peer_is_mapped_again_while_an_unmap_that_was_dropped_goes_on() {
    everywhere(|over| async move {
        let (own, far) = (adding(over, "dropped-a").await, adding(over, "dropped-b").await);
        for cycle in 0..CYCLES {
            call_mapped(&own, 0, far.name(), cycle).await;
            polled(own.unmap(0), 1 + cycle as usize % 5).await;
        }
    });
}

#[test]
fn a_map_that_is_dropped_leaves_what_others_map() {
    everywhere(|over| async move {
        let (own, far) = (Arc::new(adding(over, "midway-a").await), adding(over, "midway-b").await);
        let (other, name) = (own.clone(), far.name().clone());
        let drops = tokio::spawn(async move {
            for cycle in 0..CYCLES as usize {
                if polled(other.map(1, &name, Tag(1)), cycle % 40).await.is_some() {
                    other.unmap(1).await.expect("it is mapped");
                }
                tokio::task::yield_now().await;
            }
        });
        cycles(&own, 0, far.name(), CYCLES).await;
        drops.await.expect("it ends");
    });
}

/// Queue pairs that rest for a while when a connection is over, so that a program that maps and
/// unmaps fast has as many of those as there may be.
#[test]
fn a_program_that_maps_and_unmaps_faster_than_queue_pairs_rest_waits_for_one() {
    for over in ALL {
        runtime().block_on(async {
            let time_wait = Duration::from_millis(60);
            let few = || Config { queue_pairs: 8, time_wait, ..Config::default() };
            let own = adding_on(over, "many-a", few()).await;
            let far = adding_on(over, "many-b", few()).await;
            cycles(&own, 0, far.name(), 60).await;
            // Without any that rest, there is nothing to wait for.
            let mut names = Vec::new();
            for number in 0..8 {
                names.push(adding(over, &format!("many-{number}")).await);
            }
            for (index, far) in names.iter().enumerate() {
                own.map(index, far.name(), Tag(1)).await.expect("there is a queue pair");
            }
            let refused = own.map(8, far.name(), Tag(1)).await.map(|_| ());
            assert!(matches!(refused, Err(ConnectError::NoRoom { .. })), "{refused:?}");
        });
    }
}

#[test]
fn an_endpoint_that_accepts_no_more_keeps_its_peers_and_says_why_it_refuses_others() {
    everywhere(|over| async move {
        let far = adding(over, "no-more-a").await;
        let (there, late) = (adding(over, "no-more-b").await, adding(over, "no-more-c").await);
        call_mapped(&there, 0, far.name(), 1).await;
        far.accept_no_more();
        let refused = late.connect(far.name()).await.expect_err("it accepts nobody");
        assert!(
            matches!(refused, ConnectError::Unwelcome { why: Unwelcome::Refused(_), .. }),
            "{refused:?}"
        );
        assert!(
            refused
                .to_string()
                .ends_with("refuses: it is shutting down, and accepts no further peers"),
            "{refused}"
        );
        // One that has connected is found, and needs no other connection.
        call_mapped(&there, 1, far.name(), 2).await;
        // It may still connect itself.
        call_mapped(&far, 0, late.name(), 3).await;
    });
}
