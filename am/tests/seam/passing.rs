//! A peer that sends a request, and goes, while its bundle is polled by hand: what it was promised
//! of receives is not others' before its request is handled.

use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use doorbell_am::{
    Bundle, BundleConfig, Endpoint, EndpointConfig, Event, Handlers, Kept, Peer, Tag,
};
use doorbell_kit::{PATIENCE, until};
use doorbell_verbs::{AsyncEvent, Config, Nic, Progress};
use tokio::runtime::Runtime;

use crate::common::{ADD, SUM, messages, runtime};

/// A bundle that nobody else looks at: its tasks run only while something is awaited in their
/// runtime. Of its endpoint's four receives one is everybody's, two are promised to its peers, and
/// one is left.
struct Stage {
    here: Runtime,
    near: Nic,
    bundle: Bundle,
    _endpoint: Endpoint,
    /// To whom it has sent a request, which is to be answered, and the peers' own runtime.
    asked: Peer,
    answer: Option<Kept>,
    there: Runtime,
    /// The peer that sends a request, and goes.
    passing: Option<(Nic, Endpoint, Peer)>,
    /// The handler of a reply says that it runs, and waits.
    entered: mpsc::Receiver<()>,
    goes_on: mpsc::Sender<()>,
}

/// An endpoint on a NIC of its own.
async fn endpoint(nic: &Nic, handlers: Handlers, config: EndpointConfig) -> (Bundle, Endpoint) {
    let bundle = Bundle::new(nic, &BundleConfig::default()).expect("room");
    let endpoint =
        Endpoint::builder().config(config).on_bundle(&bundle, handlers).await.expect("room");
    (bundle, endpoint)
}

impl Stage {
    fn set(name: &str) -> Self {
        let device = format!("shm:am-{name}-{}", std::process::id());
        let config = Config { time_wait: Duration::from_millis(5), ..Config::default() };
        let dedicated = Config { progress: Progress::Dedicated { core: None }, ..config.clone() };
        let nic = |name, config| {
            Nic::builder()
                .config(config)
                .open_blocking(&format!("{device}/{name}"))
                .expect("a name")
        };
        let near = nic("near", dedicated);
        let (other, passing) = (nic("other", config.clone()), nic("passing", config));
        let (here, mut there) = (runtime(), tokio::runtime::Builder::new_multi_thread());
        let there = there.worker_threads(1).enable_all().build().expect("a runtime");
        let (enters, entered) = mpsc::channel();
        let (goes_on, go) = mpsc::channel::<()>();
        let handlers = Handlers::new().request(ADD, |_, _| {}).reply(SUM, move |_, _| {
            enters.send(()).expect("it is awaited");
            let _ = go.recv();
        });
        let small = EndpointConfig { credits: 2, receives: 4, ..EndpointConfig::default() };
        let (bundle, own) = here.block_on(endpoint(&near, handlers, small));
        let (keeps, kept) = mpsc::channel();
        let plain = || Handlers::new().reply(SUM, |_, _| {});
        let keeps = plain().request(ADD, move |request, _| {
            keeps.send(request.keep()).expect("it is awaited");
        });
        let config = EndpointConfig::default;
        let (_, asks) = there.block_on(endpoint(&other, keeps, config()));
        let asked = here.block_on(own.map(0, asks.name(), Tag(1))).expect("it is there");
        let (to, mut links) = (own.name().clone(), own.events());
        let passes = there.spawn(async move {
            let handlers = plain().request(ADD, |_, _| {});
            let (_, own) = endpoint(&passing, handlers, config()).await;
            let peer = own.map(0, &to, Tag(1)).await.expect("there is a receive");
            (passing, own, peer)
        });
        let passing = Some(here.block_on(passes).expect("it maps"));
        // Its confirmation may come before a task takes note of it.
        here.block_on(async {
            while !matches!(links.recv().await.expect("it is told"), Event::Linked(_)) {}
        });
        // It stays as long as its peers' runtime.
        there.spawn(async move {
            let _asks = asks;
            std::future::pending::<()>().await;
        });
        here.block_on(asked.request(ADD, (1, 2))).expect("it is there");
        let answer = Some(kept.recv().expect("it is asked"));
        Self { here, near, bundle, _endpoint: own, asked, answer, there, passing, entered, goes_on }
    }

    /// Has something sent, and waits until it has come.
    fn comes(&self, what: &str, sends: impl FnOnce()) {
        let before = messages(&self.near);
        sends();
        until(what, || (messages(&self.near) > before).then_some(()));
    }

    /// Has the reply come to the endpoint.
    fn is_answered(&mut self) {
        let answer = self.answer.take().expect("it is answered once");
        self.comes("the reply", || answer.reply(SUM, 3));
    }

    /// The request of the peer that will go comes.
    fn is_asked(&self) {
        let (_, _, peer) = self.passing.as_ref().expect("it has not gone");
        self.comes("the request", || {
            self.there.block_on(peer.request(ADD, (1, 2))).expect("it is there");
        });
    }

    /// Polls on a thread, which the reply's handler holds up.
    fn is_held_up(&self) -> JoinHandle<usize> {
        let bundle = self.bundle.clone();
        let polls = std::thread::spawn(move || bundle.poll(false));
        self.entered.recv_timeout(PATIENCE).expect("it polls");
        polls
    }

    /// The peer goes, and no more is received of it.
    fn is_left(&mut self) {
        let mut last = self.near.events();
        drop(self.passing.take());
        self.here.block_on(async {
            while !matches!(last.recv().await.expect("it is told"), AsyncEvent::LastReceive(_)) {}
        });
    }

    /// Waits until there is a receive for one more answer, as soon as the end of the peer is noted.
    fn gets_a_receive(&self) {
        until("its receive is free", || {
            // The endpoint's tasks run here alone.
            self.here.block_on(tokio::task::yield_now());
            self.bundle.poll(true);
            self.has_receive().then_some(())
        });
    }

    /// Returns whether there is a receive for one more answer than the one that was left.
    fn has_receive(&self) -> bool {
        let credit = || self.asked.try_credit().expect("it is there");
        let left = credit();
        assert!(left.is_some(), "one is left");
        credit().is_some()
    }
}

#[test]
fn a_request_that_waits_to_be_run_keeps_its_receive_though_its_peer_has_gone() {
    let mut stage = Stage::set("deferred");
    stage.is_answered();
    stage.is_asked();
    let polls = stage.is_held_up();
    stage.is_left();
    stage.goes_on.send(()).expect("it waits");
    assert_eq!(polls.join().expect("it ends"), 2);
    assert!(!stage.has_receive(), "the request has it");
    assert_eq!(stage.bundle.poll(true), 1);
    stage.gets_a_receive();
}

#[test]
fn the_receive_of_a_peer_that_has_gone_is_free_when_its_last_request_is_handled() {
    let mut stage = Stage::set("last");
    stage.is_answered();
    let polls = stage.is_held_up();
    stage.is_asked();
    stage.is_left();
    stage.goes_on.send(()).expect("it waits");
    assert_eq!(polls.join().expect("it ends"), 1);
    assert!(!stage.has_receive(), "the request has it");
    assert_eq!(stage.bundle.poll(true), 1);
    stage.gets_a_receive();
}
