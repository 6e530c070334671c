//! Links that are made, and end, and have the numbers of others, while a handler runs.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use doorbell_am::{
    Bundle, BundleConfig, Endpoint, EndpointConfig, Handlers, Name, Peer, Request, Tag,
    Undeliverable,
};
use doorbell_kit::{PATIENCE, until};
use doorbell_verbs::{AsyncEvent, Buf, Config, Nic, Progress, Region};
use tokio::sync::oneshot;

use crate::common::{ADD, GO_ON, SUM, messages, runtime};

/// An endpoint that has two requests waiting at once at `near`, and one beside it that has a
/// segment, and adds: it says before it answers.
fn asking_twice(
    nic: &Nic,
    near: &Name,
    (names, answers): (mpsc::Sender<Name>, impl Fn() + Send + 'static),
    (mapped, told): (oneshot::Sender<()>, oneshot::Receiver<()>),
    end: oneshot::Receiver<()>,
) {
    runtime().block_on(async {
        let adds =
            Handlers::new().request(GO_ON, |_, ()| {}).request(ADD, move |request, (a, b)| {
                answers();
                request.reply(SUM, a + b);
            });
        let segment =
            EndpointConfig { segment: Some(Region::new(64).into()), ..EndpointConfig::default() };
        let bundle = Bundle::new(nic, &BundleConfig::default()).expect("room");
        let adds =
            Endpoint::builder().config(segment).on_bundle(&bundle, adds).await.expect("room");
        let asks = Endpoint::on_bundle(&bundle, asking()).await.expect("room");
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

/// The counts of a NIC: completed when the handler began, and received when the new peer answered.
struct Before {
    completed: u64,
    received: Option<u64>,
}

/// Maps a peer while the handler of one of two requests runs that are looked at together, and runs
/// `does` with the peer. The handler ends once the NIC has `brought` the messages that the test is
/// about.
fn mapped_in_a_look<R: Send + 'static>(
    name: &str,
    handler: u32,
    brought: impl Fn(&Nic, Before) -> bool + Send + 'static,
    does: impl AsyncFnOnce(Peer) -> R + Send + 'static,
) -> R {
    let device = format!("shm:am-{name}-{}", std::process::id());
    let dedicated = Config { progress: Progress::Dedicated { core: None }, ..restless() };
    let near =
        Nic::builder().config(dedicated).open_blocking(&format!("{device}/near")).expect("a name");
    let far =
        Nic::builder().config(restless()).open_blocking(&format!("{device}/far")).expect("a name");
    let (goes_on, told) = mpsc::channel::<()>();
    let answered = Arc::new(OnceLock::new());
    let (nic, received_before, mut count) = (near.clone(), answered.clone(), 0);
    let asked = move |_: Request<'_>, ()| {
        count += 1;
        if count == handler {
            let completed = nic.statistics().nic.completed;
            goes_on.send(()).expect("it is awaited");
            until("what the new link brings", || {
                let before = Before { completed, received: received_before.get().copied() };
                brought(&nic, before).then_some(())
            });
        }
    };
    let handlers = Handlers::new().request(GO_ON, asked).request(ADD, |_, _| {});
    let (tells_name, name) = mpsc::channel();
    let (maps, mapped) = oneshot::channel();
    let (tells, is_told) = oneshot::channel();
    let (ends, end) = oneshot::channel();
    let nic = near.clone();
    let received = move || messages(&nic);
    runtime().block_on(async {
        let bundle = Bundle::new(&near, &BundleConfig::default()).expect("room");
        let endpoint = Endpoint::on_bundle(&bundle, handlers).await.expect("room");
        let (own, counts) = (endpoint.name().clone(), received.clone());
        let answers = move || answered.set(counts()).expect("it is asked once");
        let asks = move || asking_twice(&far, &own, (tells_name, answers), (maps, is_told), end);
        let far = thread::spawn(asks);
        mapped.await.expect("it is there");
        let name = name.recv().expect("a name");
        let does = move || {
            told.recv().expect("the handler runs");
            runtime().block_on(async {
                let peer = endpoint.map(0, &name, Tag(1)).await.expect("it is there");
                tokio::time::timeout(PATIENCE, does(peer)).await.expect("it does not hang")
            })
        };
        let does = thread::spawn(does);
        let before = received();
        tells.send(()).expect("it is awaited");
        // On this thread nobody looks until both have come, and then both are looked at together.
        until("two requests", || (received() >= before + 2).then_some(()));
        let done = tokio::task::spawn_blocking(|| does.join().expect("it ends")).await;
        let _ = ends.send(());
        far.join().expect("it ends");
        done.expect("it ends")
    })
}

/// A look takes messages that came while it goes on, by a link that was made while it goes on.
#[test]
fn the_first_answer_by_a_link_that_was_made_while_a_handler_ran_is_heard() {
    let brought =
        |near: &Nic, before: Before| before.received.is_some_and(|before| messages(near) > before);
    let sum = mapped_in_a_look("fresh", 1, brought, async |peer| {
        peer.call(ADD, (20, 2)).await.expect("it is answered").arguments(SUM)
    });
    assert_eq!(sum, Ok(22));
}

/// And what was sent by it first: that is looked at behind all that was received.
#[test]
fn the_first_placed_data_by_a_link_that_was_made_while_a_handler_ran_is_reported_done() {
    let brought = |near: &Nic, before: Before| near.statistics().nic.completed > before.completed;
    mapped_in_a_look("placing", 2, brought, async |peer| {
        let placing = peer.place(GO_ON, (), 0, Buf::from(vec![7; 64])).await.expect("it fits");
        placing.done().await.expect("it is there");
    });
}

/// An endpoint whose thread a handler holds up, though its NIC runs.
struct HeldUp {
    near: Nic,
    endpoint: Endpoint,
    /// Whose request that handler is of.
    asks: (Endpoint, Peer),
    /// Lets the handler go on, by a message or by being dropped.
    ends: mpsc::Sender<()>,
}

/// With handlers that hold it up when they are asked to go on.
async fn held_up(
    name: &str,
    handlers: Handlers,
    (nic, config): (Config, EndpointConfig),
) -> HeldUp {
    let dedicated = Config { progress: Progress::Dedicated { core: None }, ..nic.clone() };
    let near =
        Nic::builder().config(dedicated).open_blocking(&format!("{name}/near")).expect("a name");
    let far = Nic::builder().config(nic).open_blocking(&format!("{name}/far")).expect("a name");
    let (enters, entered) = oneshot::channel();
    let (ends, end) = mpsc::channel::<()>();
    let mut enters = Some(enters);
    let waits = move |_: Request<'_>, ()| {
        enters.take().expect("it is asked once").send(()).expect("it is awaited");
        // The tasks that this thread was to run next are left to other threads.
        let _ = tokio::task::block_in_place(|| end.recv());
    };
    let bundle = |nic| Bundle::new(nic, &BundleConfig::default()).expect("room");
    let handlers = handlers.request(GO_ON, waits);
    let endpoint =
        Endpoint::builder().config(config).on_bundle(&bundle(&near), handlers).await.expect("room");
    let asks = asking();
    let asks = Endpoint::on_bundle(&bundle(&far), asks).await.expect("room");
    let peer = asks.map(0, endpoint.name(), Tag(1)).await.expect("it is there");
    peer.request(GO_ON, ()).await.expect("it is there");
    entered.await.expect("it runs");
    HeldUp { near, endpoint, asks: (asks, peer), ends }
}

/// Of whoever asks such an endpoint.
fn asking() -> Handlers {
    Handlers::new().request(GO_ON, |_, ()| {}).request(ADD, |_, _| {})
}

/// Runs a program of which a handler keeps a thread. What it takes with it when it ends lets that
/// go.
fn beside_a_handler(program: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(4).enable_all().build().expect("a runtime");
    let bounded = async { tokio::time::timeout(PATIENCE, program).await };
    runtime.block_on(bounded).expect("it does not hang");
}

/// A NIC of which numbers serve again soon.
fn restless() -> Config {
    Config { time_wait: Duration::from_millis(5), ..Config::default() }
}

/// Until so many messages more have come to a NIC than there were before, each of which finds a
/// receive.
async fn have_come(near: &Nic, before: u64, count: u64) {
    while messages(near) < before + count {
        tokio::task::yield_now().await;
    }
    assert_eq!(near.statistics().nic.rnr_naks_sent, 0, "there is none for a message");
}

/// A peer that sends all that it may, and goes.
async fn comes_and_goes(name: &str, endpoint: &Endpoint, near: &Nic) {
    // The endpoint tells of it only when the messages are handled.
    let mut events = near.events();
    let nic = Nic::builder().config(restless()).open(name).await.expect("a name");
    let bundle = Bundle::new(&nic, &BundleConfig::default()).expect("room");
    let own = Endpoint::on_bundle(&bundle, asking()).await.expect("room");
    let peer = own.map(0, endpoint.name(), Tag(1)).await.expect("it is there");
    let before = messages(near);
    for number in 0..8 {
        // Too long to share a send.
        peer.request_with(ADD, (number, 7), &[0; 2048]).await.expect("it is there");
    }
    have_come(near, before, 8).await;
    drop((peer, own, bundle, nic));
    while !matches!(events.recv().await.expect("it goes"), AsyncEvent::Ended(_)) {}
}

/// Links that began and ended while a handler ran, which nobody looked at meanwhile. What had come
/// by them is in receives that are everybody's: those are others' when they are posted again, and
/// not before.
#[test]
fn receives_of_links_that_come_and_go_while_a_handler_runs_are_others_when_it_ends() {
    let name = format!("shm:am-passing-{}", std::process::id());
    let (count, handled) = (Arc::new(AtomicU64::new(0)), Ordering::Relaxed);
    let counts = count.clone();
    let handlers = Handlers::new().request(ADD, move |request, (a, b)| {
        counts.fetch_add(1, handled);
        request.reply(SUM, a + b);
    });
    beside_a_handler(async move {
        // A peer is promised sixteen while half of them are free.
        let config = EndpointConfig { receives: 440, ..EndpointConfig::default() };
        let held = held_up(&name, handlers, (restless(), config)).await;
        let HeldUp { near, endpoint, asks: (_asks, peer), ends } = held;
        let comes =
            async |round| comes_and_goes(&format!("{name}/{round}"), &endpoint, &near).await;
        // More than are handled in one look.
        for round in 0..12 {
            comes(round).await;
        }
        ends.send(()).expect("it waits");
        // For more than there are.
        for round in 12..50 {
            comes(round).await;
        }
        for number in 0..100 {
            let sum = peer.call(ADD, (number, 2)).await.expect("there is a receive");
            assert_eq!(sum.arguments(SUM), Ok(number + 2));
        }
        assert_eq!(count.load(handled), 50 * 8 + 100);
        assert_eq!(near.statistics().nic.rnr_naks_sent, 0, "each message had a receive");
    });
}

/// A peer that can't map an endpoint because the queue pairs there are taken may later.
async fn maps_when_it_can(nic: &Nic, name: &Name, tag: Tag) -> (Endpoint, Peer) {
    let bundle = Bundle::new(nic, &BundleConfig::default()).expect("room");
    let own = Endpoint::on_bundle(&bundle, asking()).await.expect("room");
    loop {
        if let Ok(peer) = own.map(0, name, tag).await {
            return (own, peer);
        }
        tokio::task::yield_now().await;
    }
}

/// Each of two peers whose queue pairs have the same number, one after the other, sends what is
/// handled when both have: the tag that the first showed is right, and the second's is not.
#[test]
fn messages_by_a_queue_pair_number_that_is_used_again_belong_to_the_link_that_had_it_then() {
    let name = format!("shm:am-again-{}", std::process::id());
    let (adds, added) = mpsc::channel();
    let handlers = Handlers::new().request(ADD, move |request, (a, b)| {
        adds.send(a).expect("it is awaited");
        request.reply(SUM, a + b);
    });
    beside_a_handler(async move {
        // One is the handler's.
        let nic = Config { queue_pairs: 2, ..restless() };
        let held = held_up(&name, handlers, (nic, EndpointConfig::default())).await;
        let HeldUp { near, endpoint, asks: _asks, ends } = held;
        comes_and_goes(&format!("{name}/first"), &endpoint, &near).await;
        let second = Nic::builder()
            .config(restless())
            .open(&format!("{name}/second"))
            .await
            .expect("a name");
        let (_own, peer) = maps_when_it_can(&second, endpoint.name(), Tag(2)).await;
        let before = messages(&near);
        let refused = async { peer.call_with(ADD, (8, 2), &[0; 2048]).await.map(|_| ()) };
        let ends = async {
            have_come(&near, before, 1).await;
            endpoint.set_admits(Tag(1));
            ends.send(()).expect("it waits");
        };
        let (refused, ()) = tokio::join!(refused, ends);
        let why = refused.err().and_then(|why| why.undeliverable());
        assert_eq!(why, Some(Undeliverable::WrongTag));
        assert_eq!(added.try_iter().collect::<Vec<_>>(), Vec::from_iter(0..8));
    });
}

/// However far the map is then that a peer is just making.
#[test]
fn nothing_is_left_of_a_nic_whose_endpoint_is_closed_while_it_is_mapped() {
    let name = format!("shm:am-closing-{}", std::process::id());
    beside_a_handler(async move {
        let far =
            Nic::builder().config(restless()).open(&format!("{name}/far")).await.expect("a name");
        let bundle = Bundle::new(&far, &BundleConfig::default()).expect("room");
        let own = Endpoint::on_bundle(&bundle, asking()).await.expect("room");
        let own = Arc::new(own);
        for round in 0..300 {
            let near = loop {
                // The one before takes its leave.
                match Nic::builder().config(restless()).open(&format!("{name}/near")).await {
                    Ok(near) => break near,
                    Err(_) => tokio::task::yield_now().await,
                }
            };
            let bundle = Bundle::new(&near, &BundleConfig::default()).expect("room");
            let endpoint = Endpoint::on_bundle(&bundle, asking()).await.expect("room");
            let (maps, to) = (own.clone(), endpoint.name().clone());
            let maps = tokio::spawn(async move { maps.map(0, &to, Tag(1)).await });
            for _ in 0..round {
                tokio::task::yield_now().await;
            }
            drop((endpoint, bundle, near));
            maps.abort();
            let _ = maps.await;
            let _ = own.unmap(0).await;
        }
    });
}

/// A map found the link of which an unmap had asked the peer whether it may end, and had only its
/// end.
#[test]
fn a_map_while_an_unmap_waits_for_its_peer_has_a_link_that_stays() {
    let name = format!("shm:am-waits-{}", std::process::id());
    let adds = Handlers::new().request(ADD, |request, (a, b)| request.reply(SUM, a + b));
    beside_a_handler(async move {
        let held = held_up(&name, adds, (restless(), EndpointConfig::default())).await;
        let HeldUp { near, endpoint, asks: (asks, peer), ends } = held;
        let before = messages(&near);
        let unmaps = tokio::spawn({
            let asks = asks.clone();
            async move { asks.unmap(0).await }
        });
        // The question has come to the endpoint, whose handler keeps it from being answered.
        have_come(&near, before, 1).await;
        let again = asks.map(0, endpoint.name(), Tag(1)).await.expect("it is there");
        ends.send(()).expect("it waits");
        unmaps.await.expect("it ends").expect("it was mapped");
        while peer.ending().is_none() {
            tokio::task::yield_now().await;
        }
        let sum = again.call(ADD, (20, 2)).await.expect("its link stays");
        assert_eq!(sum.arguments(SUM), Ok(22));
    });
}
