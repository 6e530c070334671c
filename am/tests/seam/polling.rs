//! Programs that say themselves when handlers run.

use std::future::Future;
use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

use doorbell_am::{Bundle, BundleConfig, Endpoint, Handlers, Name, Peer, Request, Tag};
use doorbell_kit::{PATIENCE, until};
use doorbell_verbs::{Config, Nic, Progress};
use tokio::sync::oneshot;

use crate::common::{ADD, GO_ON, SUM, messages, runtime};

/// Serves sums at once, except for the first: that is answered on command, and then the other side
/// is asked to go on.
fn adding(
    nic: &Nic,
    (names, other): (mpsc::Sender<Name>, mpsc::Receiver<Name>),
    (mapped, told): (oneshot::Sender<()>, oneshot::Receiver<()>),
    end: oneshot::Receiver<()>,
) {
    runtime().block_on(async {
        let (keeps, kept) = oneshot::channel();
        let mut keeps = Some(keeps);
        let handlers = Handlers::new().request(ADD, move |request, (a, b)| match keeps.take() {
            Some(keeps) => drop(keeps.send((request.keep(), a + b))),
            None => request.reply(SUM, a + b),
        });
        let bundle = Bundle::new(nic, &BundleConfig::default()).expect("room");
        let endpoint = Endpoint::on_bundle(&bundle, handlers).await.expect("room");
        names.send(endpoint.name().clone()).expect("it is awaited");
        let other = other.recv().expect("a name");
        let peer = endpoint.map(0, &other, Tag(1)).await.expect("it is there");
        mapped.send(()).expect("it is awaited");
        let (request, sum) = kept.await.expect("it is asked");
        told.await.expect("it is told");
        request.reply(SUM, sum);
        peer.request(GO_ON, ()).await.expect("it is there");
        let _ = end.await;
    });
}

/// Calls on another thread than the one that runs a handler, and returns the answer.
fn asks_when_told(peer: &Peer, told: &mpsc::Receiver<()>) -> u64 {
    told.recv().expect("the handler runs");
    let answer = async { tokio::time::timeout(PATIENCE, peer.call(ADD, (20, 2))).await };
    let answer = runtime().block_on(answer).expect("it does not hang");
    answer.expect("it is answered").arguments(SUM).expect("a sum")
}

/// A task finds the answer to its call, and in the same look the answer to a call of another task,
/// which was begun in between and has the same number.
#[test]
fn a_call_number_that_is_used_again_during_a_look_belongs_to_the_new_call() {
    let own = std::process::id();
    let progress = Progress::Dedicated { core: None };
    let config = Config { time_wait: Duration::from_millis(5), ..Config::default() };
    // A thread that brings the answer while the handler runs.
    let near = Config { progress, ..config.clone() };
    let near = Nic::builder()
        .config(near)
        .open_blocking(&format!("shm:am-number-{own}/near"))
        .expect("a name");
    let far = Nic::builder()
        .config(config)
        .open_blocking(&format!("shm:am-number-{own}/far"))
        .expect("a name");
    let (tells_far, far_name) = mpsc::channel();
    let (tells_near, near_name) = mpsc::channel();
    let (ends, end) = oneshot::channel();
    let (maps, mapped) = oneshot::channel();
    let (tells, is_told) = oneshot::channel();
    let names = (tells_far, near_name);
    let far = std::thread::spawn(move || adding(&far, names, (maps, is_told), end));
    let (goes_on, told) = mpsc::channel();
    let nic = near.clone();
    let received = move || messages(&nic);
    let comes = received.clone();
    let handlers = Handlers::new().request(GO_ON, move |_, ()| {
        let before = comes();
        goes_on.send(()).expect("it is awaited");
        until("the other's answer", || (comes() > before).then_some(()));
    });
    let sums = runtime().block_on(async {
        let bundle = Bundle::new(&near, &BundleConfig::default()).expect("room");
        let endpoint = Endpoint::on_bundle(&bundle, handlers).await.expect("room");
        tells_near.send(endpoint.name().clone()).expect("it is awaited");
        let far = far_name.recv().expect("a name");
        let peer = endpoint.map(0, &far, Tag(1)).await.expect("it is there");
        mapped.await.expect("it is there");
        let other = peer.clone();
        let other = tokio::task::spawn_blocking(move || asks_when_told(&other, &told));
        let before = received();
        let mut call = std::pin::pin!(peer.call(ADD, (1, 2)));
        let begun = std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context)));
        assert!(begun.await.is_pending(), "nothing has come");
        tells.send(()).expect("it is awaited");
        // On this thread nobody looks until both have.
        until("an answer and a request", || (received() >= before + 2).then_some(()));
        let sum = call.await.expect("it is answered").arguments(SUM);
        (sum, other.await.expect("a sum"))
    });
    let _ = ends.send(());
    far.join().expect("it ends");
    assert_eq!(sums, (Ok(3), 22));
}

/// A task that polls does not hold a NIC that a thread runs. So its handlers keep the thread from
/// nothing, and may even wait for the NIC.
#[test]
fn a_handler_that_is_polled_does_not_hold_up_the_thread_that_runs_the_nic() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let program = async {
        let own = std::process::id();
        let config = Config { time_wait: Duration::from_millis(5), ..Config::default() };
        // A thread that sleeps leaves the NIC to whoever would take it.
        let progress = Progress::Dedicated { core: None };
        let dedicated = Config { progress, spin: Duration::ZERO, ..config.clone() };
        let near = Nic::builder()
            .config(config)
            .open(&format!("shm:am-polling-{own}/near"))
            .await
            .expect("a name");
        let far = Nic::builder()
            .config(dedicated)
            .open(&format!("shm:am-polling-{own}/far"))
            .await
            .expect("a name");
        let bundle = |nic| Bundle::new(nic, &BundleConfig::default()).expect("room");
        let (here, there) = (bundle(&near), bundle(&far));
        let asks = move |request: Request<'_>, (a, b)| {
            assert!(far.statistics().nic.received > 0, "it came by that");
            request.reply(SUM, a + b);
        };
        let adds = Handlers::new().request(ADD, asks);
        let adds = Endpoint::on_bundle(&there, adds).await.expect("room");
        let asks = Endpoint::on_bundle(&here, Handlers::new()).await.expect("room");
        let peer = asks.map(0, adds.name(), Tag(1)).await.expect("it is there");
        let polls = async {
            loop {
                there.poll(true);
                tokio::task::yield_now().await;
            }
        };
        let calls = async {
            for number in 0..2000 {
                let reply = peer.call(ADD, (number, 2)).await.expect("it is answered");
                assert_eq!(reply.arguments(SUM), Ok(number + 2));
            }
        };
        tokio::select! {
            () = calls => {}
            () = polls => {}
        }
        assert_eq!(there.statistics().panics, 0);
    };
    let bounded = async { tokio::time::timeout(PATIENCE, program).await };
    runtime.expect("a runtime").block_on(bounded).expect("it does not hang");
}
