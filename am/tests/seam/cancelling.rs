//! Calls that are dropped, and what becomes of their handlers.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use doorbell_am::{
    CallError, EndpointConfig, Handlers, Kept, Peer, ReplyId, RequestId, Tag, Undeliverable,
};
use tokio::runtime::Handle;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinHandle;

use crate::common::{endpoint, endpoint_with, everywhere, mapped, of_eight_credits, undeliverable};

const FAST: RequestId<u64> = RequestId::new(0, "fast");
const SLOW: RequestId<u64> = RequestId::new(1, "slow");
const KEEP: RequestId<u64> = RequestId::new(2, "keep");
const TOLD: ReplyId<u64> = ReplyId::new(0, "told");

/// Less than the patience of endpoints, and more than anything takes that waits for no handler.
const BOUND: Duration = Duration::from_secs(15);

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(600);

/// Counts how many handlers run.
#[derive(Clone, Default)]
struct Running(Arc<AtomicU64>);

impl Running {
    fn one(&self) -> Self {
        self.0.fetch_add(1, Ordering::Relaxed);
        self.clone()
    }

    async fn comes_to(&self, count: u64) {
        while self.0.load(Ordering::Relaxed) != count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// The end of a handler, however it came.
struct Ends(Running);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn handlers(running: &Running) -> Handlers {
    let running = running.clone();
    Handlers::new().request(FAST, |request, number| request.reply(TOLD, number)).request_async(
        SLOW,
        move |request, number| {
            let ends = Ends(running.one());
            async move {
                let _ends = ends;
                tokio::time::sleep(LONG).await;
                request.reply(TOLD, number);
            }
        },
    )
}

/// Takes all credits, and gives them back.
async fn all_credits_are_back(peer: &Peer, count: usize) {
    let mut credits = Vec::new();
    for _ in 0..count {
        credits.push(peer.credit().await.expect("it is there"));
    }
    assert!(peer.try_credit().expect("it is there").is_none(), "more than {count} credits");
}

/// Calls a slow handler with some numbers, each in a task of its own.
fn calls(
    peer: &Peer,
    id: RequestId<u64>,
    numbers: Range<u64>,
) -> Vec<JoinHandle<Result<(), CallError>>> {
    let call = |number| {
        let peer = peer.clone();
        tokio::spawn(async move { peer.call(id, number).await.map(drop) })
    };
    numbers.map(call).collect()
}

/// Drops as many calls as there are credits at first, when their handlers run.
async fn drop_eight(peer: &Peer, id: RequestId<u64>, running: &Running) {
    let tasks = calls(peer, id, 0..8);
    running.comes_to(8).await;
    tasks.iter().for_each(JoinHandle::abort);
    for task in tasks {
        assert!(task.await.is_err_and(|end| end.is_cancelled()));
    }
}

#[test]
fn a_dropped_call_ends_its_asynchronous_handler_and_gives_its_credit_back() {
    everywhere(|over| async move {
        let running = Running::default();
        let (_near, peer, _far) = mapped(over, Handlers::new(), handlers(&running)).await;
        drop_eight(&peer, SLOW, &running).await;
        let told = peer.call(FAST, 7).await.expect("a credit comes back");
        assert_eq!(told.arguments(TOLD), Ok(7));
        running.comes_to(0).await;
        all_credits_are_back(&peer, 8).await;
    });
}

/// Regression: the task that asks about calls slept for as long as the handler of a request that is
/// no call may take, and did not notice calls that came meanwhile.
#[test]
fn a_dropped_call_gives_its_credit_back_beside_a_request_that_is_kept_for_long() {
    everywhere(|over| async move {
        let running = Running::default();
        let (_near, peer, _far) = mapped(over, Handlers::new(), handlers(&running)).await;
        peer.request(SLOW, 0).await.expect("it is there");
        running.comes_to(1).await;
        let calls = calls(&peer, SLOW, 1..8);
        running.comes_to(8).await;
        calls.iter().for_each(JoinHandle::abort);
        // Less than the patience, in which the request without an answer would come back.
        let told = peer.within(BOUND).call(FAST, 7).await;
        assert_eq!(told.expect("a credit comes back").arguments(TOLD), Ok(7));
        running.comes_to(1).await;
    });
}

/// A map asked by the link that there was, and waited for a credit until one of the handlers had
/// ended.
#[test]
fn a_peer_whose_handlers_hold_all_credits_is_mapped_at_another_place() {
    everywhere(|over| async move {
        let (keeps, mut kept) = unbounded_channel::<Kept>();
        let far = Handlers::new().request(KEEP, move |request, _| {
            keeps.send(request.keep()).unwrap_or_else(|_| panic!("it is awaited"));
        });
        let (near, peer, far) = mapped(over, Handlers::new(), far).await;
        let calls = calls(&peer, KEEP, 0..8);
        let mut held = Vec::new();
        while held.len() < 8 {
            held.push(kept.recv().await.expect("it came"));
        }
        assert!(peer.try_credit().expect("it is there").is_none());
        for place in [1, 2] {
            // By the same tag, as the peer is mapped already, and by none.
            let tag = (place == 1).then_some(Tag(1));
            let mapped = tokio::time::timeout(BOUND, near.map(place, far.name(), tag)).await;
            mapped.expect("it needs no credit of the calls'").expect("it is there");
        }
        calls.iter().for_each(JoinHandle::abort);
    });
}

#[test]
fn handlers_of_calls_end_with_their_peer_and_those_of_requests_do_not() {
    everywhere(|over| async move {
        let running = Running::default();
        let (near, peer, _far) = mapped(over, Handlers::new(), handlers(&running)).await;
        peer.request(SLOW, 1).await.expect("it is there");
        let calls = peer.clone();
        let call = tokio::spawn(async move { calls.call(SLOW, 2).await });
        running.comes_to(2).await;
        drop((near, peer));
        call.abort();
        drop(call.await);
        running.comes_to(1).await;
    });
}

#[test]
fn a_handler_whose_caller_has_no_more_patience_is_ended() {
    everywhere(|over| async move {
        let running = Running::default();
        let patience = Duration::from_millis(20);
        let brief = EndpointConfig { patience, ..of_eight_credits() };
        let near = endpoint_with(over, Handlers::new(), brief).await;
        let far = endpoint(over, handlers(&running)).await;
        let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
        for number in 0..10 {
            assert_eq!(undeliverable(peer.call(SLOW, number).await), Undeliverable::NoReply);
        }
        running.comes_to(0).await;
        all_credits_are_back(&peer, 8).await;
    });
}

#[test]
fn handlers_that_peers_leave_behind_are_not_heaped_up_without_bound() {
    everywhere(|over| async move {
        let running = Running::default();
        let few = EndpointConfig { tasks: 13, ..of_eight_credits() };
        let far = endpoint_with(over, handlers(&running), few).await;
        for number in 0..13 {
            let near = endpoint(over, Handlers::new()).await;
            let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
            peer.request(SLOW, number).await.expect("it is there");
            peer.call(FAST, number).await.expect("it is behind that");
        }
        let near = endpoint(over, Handlers::new()).await;
        let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
        assert_eq!(undeliverable(peer.call(SLOW, 13).await), Undeliverable::Busy);
        peer.call(FAST, 13).await.expect("it goes on");
        running.comes_to(13).await;
    });
}

/// A kept request can't be taken away from its holder, but the holder can ask whether it is
/// awaited.
#[test]
fn a_kept_request_of_a_dropped_call_says_that_nobody_awaits_it_and_holds_its_credit() {
    everywhere(|over| async move {
        let running = Running::default();
        let (keeps, mut kept) = unbounded_channel::<Kept>();
        let counts = running.clone();
        let far = handlers(&running).request(KEEP, move |request, _| {
            counts.one();
            keeps.send(request.keep()).unwrap_or_else(|_| panic!("it is awaited"));
        });
        let (_near, peer, _far) = mapped(over, Handlers::new(), far).await;
        let call = peer.clone();
        let call = tokio::spawn(async move { call.call(KEEP, 1).await });
        let awaited = kept.recv().await.expect("it came");
        drop_eight_kept(&peer, &running).await;
        let mut dropped = Vec::new();
        for _ in 0..7 {
            dropped.push(kept.recv().await.expect("it came"));
        }
        while dropped.iter().any(Kept::is_awaited) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(awaited.is_awaited());
        assert!(peer.try_credit().expect("it is there").is_none());
        awaited.reply(TOLD, 3);
        let told = call.await.expect("it does not fail").expect("it is answered");
        assert_eq!(told.arguments(TOLD), Ok(3));
        drop(dropped);
        all_credits_are_back(&peer, 8).await;
    });
}

/// Drops seven calls whose requests are kept, beside one that is under way already.
async fn drop_eight_kept(peer: &Peer, running: &Running) {
    let tasks: Vec<_> = (0..7)
        .map(|number| {
            let peer = peer.clone();
            tokio::spawn(async move { peer.call(KEEP, number).await.map(drop) })
        })
        .collect();
    running.comes_to(8).await;
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
}

struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

/// Handlers that answer at once, soon, and late.
fn of_all_kinds() -> Handlers {
    Handlers::new().request(FAST, |request, number| request.reply(TOLD, number)).request_async(
        SLOW,
        |request, number| async move {
            match number % 32 {
                0 => tokio::time::sleep(LONG).await,
                1..4 => tokio::time::sleep(Duration::from_millis(number % 5)).await,
                _ => (),
            }
            for _ in 0..number % 7 {
                tokio::task::yield_now().await;
            }
            request.reply(TOLD, number);
        },
    )
}

/// Calls a peer, and drops each call after some polls, or when it is answered.
async fn storms(peer: Peer, seed: u64, count: u64) {
    let mut draw = Draw(seed);
    for _ in 0..count {
        let number = draw.next();
        let id = if number.is_multiple_of(3) { FAST } else { SLOW };
        let polls = draw.next() % 40;
        let after = async {
            for _ in 0..polls {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            told = peer.call(id, number) => {
                let told = told.expect("it is answered");
                assert_eq!(told.arguments(TOLD), Ok(number), "it is another call's answer");
            }
            () = after => {}
        }
    }
}

#[test]
fn a_storm_of_dropped_calls_each_way_leaves_everything_as_it_was() {
    everywhere(|over| async move {
        let (near, peer, far) = mapped(over, of_all_kinds(), of_all_kinds()).await;
        let back = far.map(0, near.name(), Tag(1)).await.expect("it is there");
        let before = Handle::current().metrics().num_alive_tasks();
        let storms: Vec<_> = (1..=4)
            .flat_map(|seed| [(seed, &peer), (seed + 10, &back)])
            .map(|(seed, peer)| tokio::spawn(storms(peer.clone(), seed, 250)))
            .collect();
        for storm in storms {
            storm.await.expect("it does not fail");
        }
        tokio::join!(all_credits_are_back(&peer, 8), all_credits_are_back(&back, 8));
        for end in [&near, &far] {
            assert!(end.most_receives() <= 17, "{} receives", end.most_receives());
            let counted = end.bundle().statistics();
            assert_eq!((counted.malformed, counted.panics), (0, 0));
        }
        while Handle::current().metrics().num_alive_tasks() > before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}
