//! Programs that say themselves when handlers run.

use std::future::Future;
use std::sync::{Arc, OnceLock, mpsc};
use std::task::Poll;
use std::time::Duration;

use doorbell_am::{
    Bundle, BundleConfig, Endpoint, EndpointConfig, Event, Handlers, Name, Peer, ReplyId, Request,
    RequestId, Tag,
};
use doorbell_kit::{PATIENCE, until};
use doorbell_verbs::{Config, Nic, Progress};
use tokio::sync::oneshot;

const ADD: RequestId<(u64, u64)> = RequestId::new(0, "add");
const SUM: ReplyId<u64> = ReplyId::new(0, "sum");
const GO_ON: RequestId<()> = RequestId::new(1, "go on");

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Adds: at once, but for the first sum only when it is told to, and then asks the other to go on.
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
        let endpoint = bundle.endpoint(handlers, EndpointConfig::default()).await.expect("room");
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

/// What an answer is worth that comes while a handler runs, on a thread that another one runs on.
fn asks_when_told(peer: &Peer, told: &mpsc::Receiver<()>) -> u64 {
    told.recv().expect("the handler runs");
    let answer = async { tokio::time::timeout(PATIENCE, peer.call(ADD, (20, 2))).await };
    let answer = runtime().block_on(answer).expect("it does not hang");
    answer.expect("it is answered").arguments(SUM).expect("a sum")
}

/// Who looks finds the answer to his call, and in the same look that to another's, which was begun in
/// between and is known by the same number.
#[test]
fn a_number_that_serves_again_while_somebody_looks_is_the_others() {
    let own = std::process::id();
    let progress = Progress::Dedicated { core: None };
    let config = Config { time_wait: Duration::from_millis(5), ..Config::default() };
    // A thread that brings the answer while the handler runs.
    let near = Config { progress, ..config.clone() };
    let near = Nic::open(&format!("shm:am-number-{own}/near"), near).expect("a name");
    let far = Nic::open(&format!("shm:am-number-{own}/far"), config).expect("a name");
    let (tells_far, far_name) = mpsc::channel();
    let (tells_near, near_name) = mpsc::channel();
    let (ends, end) = oneshot::channel();
    let (maps, mapped) = oneshot::channel();
    let (tells, is_told) = oneshot::channel();
    let names = (tells_far, near_name);
    let far = std::thread::spawn(move || adding(&far, names, (maps, is_told), end));
    let (goes_on, told) = mpsc::channel();
    let nic = near.clone();
    let received = move || nic.statistics().nic.received;
    let comes = received.clone();
    let handlers = Handlers::new().request(GO_ON, move |_, ()| {
        let before = comes();
        goes_on.send(()).expect("it is awaited");
        until("the other's answer", || (comes() > before).then_some(()));
    });
    let sums = runtime().block_on(async {
        let bundle = Bundle::new(&near, &BundleConfig::default()).expect("room");
        let endpoint = bundle.endpoint(handlers, EndpointConfig::default()).await.expect("room");
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

/// Whoever polls has not the NIC in hand that a thread runs: so its handlers keep that from nothing, and
/// may even wait for the NIC.
#[test]
fn a_handler_that_is_polled_does_not_hold_up_the_thread_that_runs_the_nic() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let program = async {
        let own = std::process::id();
        let config = Config { time_wait: Duration::from_millis(5), ..Config::default() };
        // A thread that sleeps leaves the NIC to whoever would take it.
        let progress = Progress::Dedicated { core: None };
        let dedicated = Config { progress, spin: Duration::ZERO, ..config.clone() };
        let near = Nic::open(&format!("shm:am-polling-{own}/near"), config).expect("a name");
        let far = Nic::open(&format!("shm:am-polling-{own}/far"), dedicated).expect("a name");
        let bundle = |nic| Bundle::new(nic, &BundleConfig::default()).expect("room");
        let (here, there) = (bundle(&near), bundle(&far));
        let asks = move |request: Request<'_>, (a, b)| {
            assert!(far.statistics().nic.received > 0, "it came by that");
            request.reply(SUM, a + b);
        };
        let config = EndpointConfig::default;
        let adds = Handlers::new().request(ADD, asks);
        let adds = there.endpoint(adds, config()).await.expect("room");
        let asks = here.endpoint(Handlers::new(), config()).await.expect("room");
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

/// An endpoint that has two requests waiting at once at `near`, and one beside it that adds and says how
/// much had come there before it answers.
fn asking_twice(
    nic: &Nic,
    near: &Name,
    (names, before): (mpsc::Sender<Name>, impl Fn() + Send + 'static),
    (mapped, told): (oneshot::Sender<()>, oneshot::Receiver<()>),
    end: oneshot::Receiver<()>,
) {
    runtime().block_on(async {
        let adds =
            Handlers::new().request(GO_ON, |_, ()| {}).request(ADD, move |request, (a, b)| {
                before();
                request.reply(SUM, a + b);
            });
        let asks = Handlers::new().request(GO_ON, |_, ()| {}).request(ADD, |_, _| {});
        let bundle = Bundle::new(nic, &BundleConfig::default()).expect("room");
        let adds = bundle.endpoint(adds, EndpointConfig::default()).await.expect("room");
        let asks = bundle.endpoint(asks, EndpointConfig::default()).await.expect("room");
        let peer = asks.map(0, near, Tag(1)).await.expect("it is there");
        names.send(adds.name().clone()).expect("it is awaited");
        mapped.send(()).expect("it is awaited");
        told.await.expect("it is told");
        for _ in 0..2 {
            // Too long to share a send.
            peer.request_with(GO_ON, (), &[0; 2048]).await.expect("it is there");
        }
        let _ = end.await;
    });
}

/// What is looked at was there, or came meanwhile: so did the link that it came by.
#[test]
fn the_first_answer_by_a_link_that_was_made_while_a_handler_ran_is_heard() {
    let own = std::process::id();
    let progress = Progress::Dedicated { core: None };
    let config = Config { time_wait: Duration::from_millis(5), ..Config::default() };
    let dedicated = Config { progress, ..config.clone() };
    let near = Nic::open(&format!("shm:am-fresh-{own}/near"), dedicated).expect("a name");
    let far = Nic::open(&format!("shm:am-fresh-{own}/far"), config).expect("a name");
    let nic = near.clone();
    let received = move || nic.statistics().nic.received;
    let answers_after = Arc::new(OnceLock::new());
    let (goes_on, told) = mpsc::channel::<()>();
    let (comes, after) = (received.clone(), answers_after.clone());
    let mut goes_on = Some(goes_on);
    let asked = move |_: Request<'_>, ()| {
        if let Some(goes_on) = goes_on.take() {
            goes_on.send(()).expect("it is awaited");
            let answered = || after.get().filter(|&&before| comes() > before).copied();
            until("the answer by the new link", answered);
        }
    };
    let handlers = Handlers::new().request(GO_ON, asked).request(ADD, |_, _| {});
    let (tells_name, name) = mpsc::channel();
    let (maps, mapped) = oneshot::channel();
    let (tells, is_told) = oneshot::channel();
    let (ends, end) = oneshot::channel();
    runtime().block_on(async {
        let bundle = Bundle::new(&near, &BundleConfig::default()).expect("room");
        let endpoint = bundle.endpoint(handlers, EndpointConfig::default()).await.expect("room");
        let (own, counts) = (endpoint.name().clone(), received.clone());
        let counts = move || answers_after.set(counts()).expect("it is asked once");
        let asking = move || asking_twice(&far, &own, (tells_name, counts), (maps, is_told), end);
        let far = std::thread::spawn(asking);
        mapped.await.expect("it is there");
        let name = name.recv().expect("a name");
        let maps = std::thread::spawn(move || {
            told.recv().expect("the handler runs");
            let sum = async {
                let peer = endpoint.map(0, &name, Tag(1)).await.expect("it is there");
                peer.call(ADD, (20, 2)).await.expect("it is answered").arguments(SUM)
            };
            runtime().block_on(async { tokio::time::timeout(PATIENCE, sum).await })
        });
        let before = received();
        tells.send(()).expect("it is awaited");
        // On this thread nobody looks until both have come, and then both are looked at together.
        until("two requests", || (received() >= before + 2).then_some(()));
        let sum = tokio::task::spawn_blocking(|| maps.join().expect("it ends")).await;
        assert_eq!(sum.expect("it ends"), Ok(Ok(22)));
        let _ = ends.send(());
        far.join().expect("it ends");
    });
}

/// A peer that sends all that it may, and goes.
async fn comes_and_goes(name: &str, endpoint: &Endpoint, near: &Nic) {
    let mut events = endpoint.events();
    let config = Config { time_wait: Duration::from_millis(5), ..Config::default() };
    let nic = Nic::open(name, config).expect("a name");
    let bundle = Bundle::new(&nic, &BundleConfig::default()).expect("room");
    let handlers = Handlers::new().request(GO_ON, |_, ()| {}).request(ADD, |_, _| {});
    let own = bundle.endpoint(handlers, EndpointConfig::default()).await.expect("room");
    let peer = own.map(0, endpoint.name(), Tag(1)).await.expect("it is there");
    let before = near.statistics().nic.received;
    for number in 0..8 {
        // Too long to share a send.
        peer.request_with(ADD, (number, 7), &[0; 2048]).await.expect("it is there");
    }
    while near.statistics().nic.received < before + 8 {
        tokio::task::yield_now().await;
    }
    drop((peer, own, bundle, nic));
    while !matches!(events.recv().await.expect("it goes"), Event::Gone(..)) {}
}

/// Links that began and ended while a handler ran, which nobody looked at meanwhile: what had come by them
/// has used receives that are everybody's.
#[test]
fn receives_of_links_that_come_and_go_while_a_handler_runs_are_posted_again() {
    let own = std::process::id();
    let config = Config { time_wait: Duration::from_millis(5), ..Config::default() };
    let dedicated = Config { progress: Progress::Dedicated { core: None }, ..config.clone() };
    let near = Nic::open(&format!("shm:am-passing-{own}/near"), dedicated).expect("a name");
    let far = Nic::open(&format!("shm:am-passing-{own}/far"), config).expect("a name");
    let (enters, entered) = oneshot::channel();
    let (ends, end) = mpsc::channel::<()>();
    let mut enters = Some(enters);
    let waits = move |_: Request<'_>, ()| {
        enters.take().expect("it is asked once").send(()).expect("it is awaited");
        end.recv().expect("it is told");
    };
    let adds = |request: Request<'_>, (a, b)| request.reply(SUM, a + b);
    let handlers = Handlers::new().request(GO_ON, waits).request(ADD, adds);
    // What it takes with it when it ends lets the handler go.
    let program = async move {
        let bundle = |nic| Bundle::new(nic, &BundleConfig::default()).expect("room");
        let config = EndpointConfig::default();
        let endpoint = bundle(&near).endpoint(handlers, config).await.expect("room");
        let asks = Handlers::new().request(GO_ON, |_, ()| {}).request(ADD, |_, _| {});
        let asks = bundle(&far).endpoint(asks, EndpointConfig::default()).await.expect("room");
        let peer = asks.map(0, endpoint.name(), Tag(1)).await.expect("it is there");
        peer.request(GO_ON, ()).await.expect("it is there");
        entered.await.expect("it runs");
        // Two thirds of the receives that there are.
        for round in 0..3 {
            comes_and_goes(&format!("shm:am-passing-{own}/{round}"), &endpoint, &near).await;
        }
        ends.send(()).expect("it waits");
        for number in 0..100 {
            let sum = peer.call(ADD, (number, 2)).await.expect("there is a receive");
            assert_eq!(sum.arguments(SUM), Ok(number + 2));
        }
    };
    // The handler keeps one of these threads.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
    let bounded = async { tokio::time::timeout(PATIENCE, program).await };
    runtime.expect("a runtime").block_on(bounded).expect("it does not hang");
}
