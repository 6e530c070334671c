//! How long callers wait.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use doorbell_am::{
    Bundle, BundleConfig, CallError, Credits, Endpoint, EndpointConfig, Handlers, Kept, Peer,
    ReplyId, RequestId, SendError, Tag, WaitedFor,
};
use doorbell_verbs::{Config, Nic};

use crate::common::{endpoint, endpoint_with, everywhere, mapped, of_eight_credits};

const ADD: RequestId<(u64, u64)> = RequestId::new(0, "add");
const KEEP: RequestId<u64> = RequestId::new(1, "keep");
const SUM: ReplyId<u64> = ReplyId::new(0, "sum");

const SOON: Duration = Duration::from_millis(20);

type AllKept = Arc<Mutex<Vec<Kept>>>;

/// Handlers of which one keeps what comes, and does not answer.
fn handlers() -> (Handlers, AllKept) {
    let kept = AllKept::default();
    let keeps = kept.clone();
    let handlers = Handlers::new()
        .request(ADD, |request, (a, b)| request.reply(SUM, a + b))
        .request(KEEP, move |request, _| keeps.lock().expect("nobody failed").push(request.keep()));
    (handlers, kept)
}

/// Sees to it that all credits are there, and no more.
async fn all_credits_are_back(peer: &Peer) {
    let mut credits = Vec::new();
    for _ in 0..8 {
        credits.push(peer.credit().await.expect("it is there"));
    }
    assert!(peer.try_credit().expect("it is there").is_none());
}

#[test]
fn a_call_that_has_no_answer_within_its_time_says_so_and_is_given_up() {
    everywhere(|over| async move {
        let (handlers, kept) = handlers();
        let (_near, peer, far) = mapped(over, Handlers::new(), handlers).await;
        for _ in 0..3 {
            for number in 0..8 {
                match peer.within(SOON).call(KEEP, number).await {
                    Err(CallError::Deadline { call, within, waited_for: WaitedFor::Answer }) => {
                        assert_eq!((call.index(), call.handler(), within), (Some(1), "keep", SOON));
                        assert_eq!(call.peer(), far.name().to_string());
                    }
                    other => panic!("{other:?}"),
                }
            }
            // What comes too late is another's answer to nobody.
            for kept in kept.lock().expect("nobody failed").drain(..) {
                kept.reply(SUM, 1);
            }
            all_credits_are_back(&peer).await;
            let told = peer.within(Duration::MAX).call(ADD, (1, 2)).await.expect("as before");
            assert_eq!(told.arguments(SUM), Ok(3));
        }
    });
}

#[test]
fn a_call_that_has_no_credit_within_its_time_says_who_has_them() {
    everywhere(|over| async move {
        let (handlers, kept) = handlers();
        let (_near, peer, _far) = mapped(over, Handlers::new(), handlers).await;
        let hasty = peer.within(SOON);
        for number in 0..8 {
            hasty.call(KEEP, number).await.expect_err("it is not answered");
        }
        let all = Credits { under_way: 8, given_up: 8 };
        match hasty.call(ADD, (1, 2)).await {
            Err(CallError::Deadline { waited_for: WaitedFor::Credit(credits), .. }) => {
                assert_eq!(credits, all);
            }
            other => panic!("{other:?}"),
        }
        match hasty.request(ADD, (1, 2)).await {
            Err(SendError::NoCredit { within: SOON, credits, .. }) => assert_eq!(credits, all),
            other => panic!("{other:?}"),
        }
        kept.lock().expect("nobody failed").clear();
        all_credits_are_back(&peer).await;
        let told = hasty.within(Duration::MAX).call(ADD, (1, 2)).await.expect("as before");
        assert_eq!(told.arguments(SUM), Ok(3));
    });
}

#[test]
fn the_time_of_calls_is_the_endpoints_unless_they_have_one_of_their_own() {
    everywhere(|over| async move {
        let (handlers, kept) = handlers();
        let far = endpoint(over, handlers).await;
        let config = EndpointConfig { deadline: Some(SOON), ..of_eight_credits() };
        let near = endpoint_with(over, Handlers::new(), config).await;
        let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
        let late = [near.call(0, KEEP, 1).await, peer.call(KEEP, 1).await];
        assert!(late.iter().all(|late| matches!(late, Err(CallError::Deadline { .. }))));
        let other = peer.within(Duration::MAX);
        let call = tokio::spawn(async move { other.call(KEEP, 2).await });
        tokio::time::sleep(3 * SOON).await;
        kept.lock().expect("nobody failed").drain(..).for_each(|kept| kept.reply(SUM, 7));
        let told = call.await.expect("it does not fail").expect("it waits");
        assert_eq!(told.arguments(SUM), Ok(7));
    });
}

/// Regression: a caller spun for as long as answers to other calls came.
#[test]
fn a_call_ends_in_its_time_beside_others_that_are_answered_all_the_time() {
    everywhere(|over| async move {
        let (handlers, _kept) = handlers();
        let (_near, peer, _far) = mapped(over, Handlers::new(), handlers).await;
        let others = peer.clone();
        let others = tokio::spawn(async move {
            loop {
                others.call(ADD, (1, 2)).await.expect("it is answered");
            }
        });
        let late = peer.within(SOON).call(KEEP, 1).await;
        assert!(matches!(late, Err(CallError::Deadline { .. })), "{late:?}");
        others.abort();
    });
}

/// The timer is the bundle's runtime's.
#[test]
fn a_thread_without_a_runtime_waits_no_longer_than_its_calls_have() {
    everywhere(|over| async move {
        let (handlers, _kept) = handlers();
        let (near, peer, _far) = mapped(over, Handlers::new(), handlers).await;
        let thread = tokio::task::spawn_blocking(move || {
            std::thread::spawn(move || {
                near.bundle().block_on(peer.within(SOON).call(KEEP, 1)).map(drop)
            })
            .join()
        });
        let late = thread.await.expect("it is joined").expect("it does not fail");
        assert!(matches!(late, Err(CallError::Deadline { .. })), "{late:?}");
    });
}

/// Calls in a runtime without timers, which panics where a timer is made. A thread that loses its
/// processor for long may have another one run its NIC, and sleep: so some calls may have timers.
#[test]
fn calls_that_are_answered_while_their_callers_spin_have_no_timers() {
    const CALLS: u64 = 1000;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    runtime.expect("a runtime").block_on(async {
        let own = std::process::id();
        let bundle = |end: &str| {
            let config = Config { spin: Duration::from_secs(60), ..Config::default() };
            let nic = Nic::builder()
                .config(config)
                .open_blocking(&format!("shm:am-timer-{own}/{end}"))
                .expect("a name");
            Bundle::new(&nic, &BundleConfig::default()).expect("room")
        };
        let (near, far) = (bundle("near"), bundle("far"));
        let (handlers, _) = handlers();
        let config = || EndpointConfig { deadline: Some(SOON), ..of_eight_credits() };
        let far =
            Endpoint::builder().config(config()).on_bundle(&far, handlers).await.expect("room");
        let near = Endpoint::builder()
            .config(config())
            .on_bundle(&near, Handlers::new())
            .await
            .expect("room");
        let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
        let mut timers = 0;
        for number in 0..CALLS {
            let peer = peer.clone();
            // A task's panic ends the task alone.
            match tokio::spawn(async move { peer.call(ADD, (number, 2)).await }).await {
                Ok(told) => {
                    assert_eq!(told.expect("it is answered").arguments(SUM), Ok(number + 2));
                }
                Err(_) => timers += 1,
            }
        }
        assert!(timers < CALLS / 10, "{timers} calls had timers");
    });
}
