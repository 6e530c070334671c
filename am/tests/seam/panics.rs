//! Handlers that panic, at whichever moment.

use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use doorbell_am::{Endpoint, Handlers, Peer, ReplyId, RequestId, Undeliverable};
use tokio::sync::mpsc::unbounded_channel;

use crate::common::{everywhere, mapped, undeliverable};

const ADD: RequestId<(u64, u64)> = RequestId::new(0, "add");
const PANIC: RequestId<u64> = RequestId::new(1, "panic");
const ASK: RequestId<u64> = RequestId::new(2, "ask");
const SUM: ReplyId<u64> = ReplyId::new(0, "sum");

fn adding() -> Handlers {
    Handlers::new().request(ADD, |request, (a, b)| request.reply(SUM, a + b))
}

/// Panics when it is dropped, unless its thread panics already.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("as it should");
        }
    }
}

/// More calls than there are credits: none may be lost, and the endpoint goes on.
async fn all_are_told(peer: &Peer, why: Undeliverable) {
    for number in 0..20 {
        let told = undeliverable(peer.call(PANIC, number).await);
        assert_eq!(told, why, "call {number}");
    }
    assert_eq!(peer.call(ADD, (1, 2)).await.expect("it goes on").arguments(SUM), Ok(3));
}

/// The request is dropped when the closure returns, and the future panics without it.
#[test]
fn a_caller_is_told_that_an_asynchronous_handler_panicked_whoever_held_the_request() {
    everywhere(|over| async move {
        for holds in [false, true] {
            let far = adding().request_async(PANIC, move |request, number| {
                let held = holds.then_some(request);
                async move {
                    let _held = held;
                    if number % 2 == 0 {
                        tokio::task::yield_now().await;
                    }
                    panic!("as it should");
                }
            });
            let (_near, peer, far) = mapped(over, Handlers::new(), far).await;
            all_are_told(&peer, Undeliverable::Panicked).await;
            assert_eq!(far.bundle().statistics().panics, 20);
        }
    });
}

#[test]
fn a_caller_is_told_that_the_closure_panicked_before_there_was_a_future() {
    everywhere(|over| async move {
        let far = adding().request_async(PANIC, |_request, number| {
            assert!(number > 1000, "as it should");
            async {}
        });
        let (_near, peer, far) = mapped(over, Handlers::new(), far).await;
        all_are_told(&peer, Undeliverable::Panicked).await;
        assert_eq!(far.bundle().statistics().panics, 20);
    });
}

#[test]
fn an_asynchronous_handler_that_drops_its_request_is_under_way_until_its_future_ends() {
    everywhere(|over| async move {
        let ended = Arc::new(AtomicU64::new(0));
        let counts = ended.clone();
        let far = adding().request_async(PANIC, move |_request, _| {
            let counts = counts.clone();
            async move {
                (0..3_u8).for_each(drop);
                tokio::task::yield_now().await;
                counts.fetch_add(1, Ordering::Relaxed);
            }
        });
        let (_near, peer, _far) = mapped(over, Handlers::new(), far).await;
        for number in 1..20 {
            let told = undeliverable(peer.call(PANIC, number).await);
            assert_eq!(told, Undeliverable::Unanswered);
            assert_eq!(ended.load(Ordering::Relaxed), number, "it is told of its end");
        }
    });
}

/// Each request must have one answer, or the credits would not be right.
#[test]
fn a_handler_that_panics_after_its_reply_has_replied() {
    everywhere(|over| async move {
        let far = adding()
            .request(PANIC, |request, number| {
                request.reply(SUM, number);
                panic!("as it should");
            })
            .request_async(ASK, |request, number| async move {
                request.reply(SUM, number);
                tokio::task::yield_now().await;
                panic!("as it should");
            });
        let (_near, peer, far) = mapped(over, Handlers::new(), far).await;
        for id in [PANIC, ASK] {
            for number in 0..20 {
                let told = peer.call(id, number).await.expect("it has replied");
                assert_eq!(told.arguments(SUM), Ok(number));
            }
        }
        while far.bundle().statistics().panics < 40 {
            tokio::task::yield_now().await;
        }
        let credits: Vec<_> = (0..8).map(|_| peer.try_credit().expect("it is there")).collect();
        assert!(credits.iter().all(Option::is_some), "all eight are back");
        assert!(peer.try_credit().expect("it is there").is_none(), "and no more");
    });
}

#[test]
fn a_handler_whose_panic_panics_again_when_it_is_dropped_is_contained() {
    everywhere(|over| async move {
        let far = adding()
            .request(PANIC, |_, _| panic_any(Bomb))
            .request_async(ASK, |_, _| async { panic_any(Bomb) });
        let (_near, peer, far) = mapped(over, Handlers::new(), far).await;
        all_are_told(&peer, Undeliverable::Panicked).await;
        let told = undeliverable(peer.call(ASK, 0).await);
        assert_eq!(told, Undeliverable::Panicked);
        assert_eq!(far.bundle().statistics().panics, 21);
    });
}

/// A closed endpoint's handlers are dropped by the thread that polls next, with what they own.
#[test]
fn a_handler_that_panics_when_it_is_dropped_does_not_end_the_others_of_its_bundle() {
    everywhere(|over| async move {
        let bundle = crate::common::bundle(over);
        let config = doorbell_am::EndpointConfig::default;
        let bomb = Bomb;
        let holds = Handlers::new().request(PANIC, move |_, _| {
            let _ = &bomb;
        });
        let stays =
            Endpoint::builder().config(config()).on_bundle(&bundle, adding()).await.expect("room");
        let goes =
            Endpoint::builder().config(config()).on_bundle(&bundle, holds).await.expect("room");
        let near = crate::common::endpoint(over, Handlers::new()).await;
        let peer = near.map(0, stays.name(), doorbell_am::Tag(1)).await.expect("it is there");
        drop(goes);
        for number in 0..20 {
            let told = peer.call(ADD, (1, number)).await.expect("it goes on");
            assert_eq!(told.arguments(SUM), Ok(number + 1));
        }
    });
}

#[test]
fn handlers_of_replies_and_of_what_comes_back_that_panic_are_contained() {
    everywhere(|over| async move {
        let (told, mut came) = unbounded_channel();
        let back = told.clone();
        let near = Handlers::new()
            .reply(SUM, move |_, number| {
                told.send(number).expect("it is awaited");
                panic!("as it should");
            })
            .returned(move |_| {
                back.send(7).expect("it is awaited");
                panic_any(Bomb);
            });
        let (near, peer, _far) = mapped(over, near, adding()).await;
        for number in 0..20 {
            peer.request(ADD, (1, number)).await.expect("there are credits");
            assert_eq!(came.recv().await, Some(number + 1));
            peer.request(ASK, number).await.expect("there are credits");
            assert_eq!(came.recv().await, Some(7));
        }
        assert_eq!(peer.call(ADD, (1, 2)).await.expect("it goes on").arguments(SUM), Ok(3));
        assert_eq!(near.bundle().statistics().panics, 40);
    });
}
