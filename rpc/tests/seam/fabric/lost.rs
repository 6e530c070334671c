//! Connections that end while calls are under way: which calls are sent again, and which run.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use doorbell_am::Bundle;
use doorbell_kit::PATIENCE;
use doorbell_rpc::{Channel, Client, Code, Method, Response, Router, Server, Status, Streaming};
use doorbell_simulation::{Ether, Faults, LinkId, passing};
use futures_util::{StreamExt, stream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::virtual_time::ends;

/// Notes its number and answers.
const NOTE: Method<u64, ()> = Method::new("note");
/// Answers when the test lets it go.
const HOLD: Method<u64, ()> = Method::new("hold");
/// As [`HOLD`], and may be called again.
const HOLD_AGAIN: Method<u64, ()> = Method::new("hold again").idempotent();
/// Reads a stream of numbers.
const READ: Method<u64, ()> = Method::new("read");
const READ_AGAIN: Method<u64, ()> = Method::new("read again").idempotent();

/// How many requests a server takes at a time from a client.
const CREDITS: usize = 2;

/// The handlers of a server, and what they have done.
#[derive(Clone)]
struct Stage {
    begun: Arc<Semaphore>,
    go: Arc<Semaphore>,
    noted: Arc<Mutex<Vec<u64>>>,
    held: Arc<AtomicU64>,
}

impl Default for Stage {
    fn default() -> Self {
        let [begun, go] = [0; 2].map(|_| Arc::new(Semaphore::new(0)));
        Self { begun, go, noted: Arc::default(), held: Arc::default() }
    }
}

impl Stage {
    async fn hold(self) -> Result<(), Status> {
        self.held.fetch_add(1, Ordering::SeqCst);
        self.begun.add_permits(1);
        self.go.acquire().await.expect("nobody closes it").forget();
        Ok(())
    }

    async fn read(self, mut numbers: Streaming<u64>) -> Result<(), Status> {
        self.begun.add_permits(1);
        while numbers.message().await?.is_some() {}
        Ok(())
    }

    /// A server of these handlers, always under the same name.
    async fn open_on(&self, bundle: &Bundle) -> Server {
        let [note, hold, again, read, read_again] = [0; 5].map(|_| self.clone());
        let router = Router::new()
            .unary(NOTE, move |request| {
                note.noted.lock().expect("nobody panics").push(request.into_inner());
                async { Ok(()) }
            })
            .unary(HOLD, move |_| hold.clone().hold())
            .unary(HOLD_AGAIN, move |_| again.clone().hold())
            .client_streaming(READ, move |request| read.clone().read(request.into_inner()))
            .client_streaming(READ_AGAIN, move |request| {
                read_again.clone().read(request.into_inner())
            });
        let server = Server::builder().add_service(router).service(7);
        let server = server.endpoint(|endpoint| endpoint.credits(CREDITS));
        server.on_bundle(bundle).await.expect("nobody has the number")
    }

    async fn has_begun(&self) {
        self.begun.acquire().await.expect("nobody closes it").forget();
    }

    /// The numbers that were noted, in order.
    fn noted(&self) -> Vec<u64> {
        let mut noted = self.noted.lock().expect("nobody panics").clone();
        noted.sort_unstable();
        noted
    }
}

/// A server, its client, and the cable between them.
struct Pair {
    ether: Ether,
    cable: LinkId,
    far: Bundle,
    stage: Stage,
    server: Server,
    channel: Channel,
    client: Client<Channel>,
}

type Called = JoinHandle<Result<Response<()>, Status>>;

impl Pair {
    async fn call(&self, method: Method<u64, ()>, number: u64) -> Called {
        let client = self.client.clone();
        let call = tokio::spawn(async move { client.unary(method, number).await });
        // The call is sent, or waits for a credit.
        tokio::task::yield_now().await;
        call
    }

    fn cut(&self) {
        self.ether.with(|network| network.cut(self.cable));
    }

    /// Cuts the cable until the client knows that the connection has ended.
    async fn broken(&self) {
        self.cut();
        self.breaks().await;
    }

    async fn breaks(&self) {
        while self.channel.is_connected() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.ether.with(|network| network.heal(self.cable));
    }

    /// A server that has started anew in the place of the one that was there.
    async fn started_anew(mut self) -> (Self, Stage) {
        let before = std::mem::take(&mut self.stage);
        drop(self.server);
        self.server = self.stage.open_on(&self.far).await;
        (self, before)
    }
}

/// Runs a program with a server and a client that is connected to it.
fn run<F: Future<Output = ()>>(program: impl FnOnce(Pair) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let (ether, cable, [far, near]) = ends(1, Faults::NONE);
        let time = ether.clone();
        let all = passing(&time, async {
            let stage = Stage::default();
            let server = stage.open_on(&far).await;
            let channel = Channel::builder().on_bundle(&near).connect_lazily(server.name()).await;
            let channel = channel.expect("there is room");
            let client = Client::new(channel.clone());
            client.unary(NOTE, 0).await.expect("an answer");
            program(Pair { ether, cable, far, stage, server, channel, client }).await;
        });
        tokio::time::timeout(PATIENCE, all).await.expect("it does not hang");
    });
}

fn outcome(called: Result<Result<Response<()>, Status>, tokio::task::JoinError>) -> Option<Code> {
    called.expect("no panic").err().map(|status| status.code())
}

#[test]
fn calls_that_the_same_server_has_not_begun_are_sent_again_and_run_once() {
    run(async |pair| {
        pair.cut();
        let mut calls = Vec::new();
        // The first ones are sent, and are lost. The others wait for credits.
        for number in 1..=6 {
            calls.push(pair.call(NOTE, number).await);
        }
        pair.breaks().await;
        for call in calls {
            assert_eq!(outcome(call.await), None);
        }
        assert_eq!(pair.stage.noted(), [0, 1, 2, 3, 4, 5, 6]);
    });
}

#[test]
fn a_call_that_the_same_server_has_begun_is_aborted_and_does_not_run_again() {
    run(async |pair| {
        let call = pair.call(HOLD, 1).await;
        pair.stage.has_begun().await;
        pair.broken().await;
        assert_eq!(outcome(call.await), Some(Code::Aborted));
        assert_eq!(pair.stage.held.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn an_idempotent_call_that_the_same_server_has_begun_runs_again() {
    run(async |pair| {
        let call = pair.call(HOLD_AGAIN, 1).await;
        pair.stage.has_begun().await;
        pair.broken().await;
        pair.stage.has_begun().await;
        pair.stage.go.add_permits(2);
        assert_eq!(outcome(call.await), None);
    });
}

#[test]
fn calls_that_were_sent_fail_at_a_server_that_has_started_anew_and_the_others_are_called() {
    run(async |pair| {
        pair.cut();
        let mut calls = Vec::new();
        for number in 1..=6 {
            calls.push(pair.call(NOTE, number).await);
        }
        let again = pair.call(HOLD_AGAIN, 7).await;
        let (pair, before) = pair.started_anew().await;
        pair.breaks().await;
        for (at, call) in calls.into_iter().enumerate() {
            let expected = (at < CREDITS).then_some(Code::Unavailable);
            assert_eq!(outcome(call.await), expected, "call {}", at + 1);
        }
        assert_eq!((before.noted(), pair.stage.noted()), (vec![0], vec![3, 4, 5, 6]));
        pair.stage.has_begun().await;
        pair.stage.go.add_permits(1);
        assert_eq!(outcome(again.await), None);
    });
}

#[test]
fn a_call_that_runs_at_a_server_which_starts_anew_fails_unless_it_is_idempotent() {
    run(async |pair| {
        let calls = [pair.call(HOLD, 1).await, pair.call(HOLD_AGAIN, 2).await];
        pair.stage.has_begun().await;
        pair.stage.has_begun().await;
        let (pair, _before) = pair.started_anew().await;
        let [once, again] = calls;
        assert_eq!(outcome(once.await), Some(Code::Unavailable));
        pair.stage.has_begun().await;
        pair.stage.go.add_permits(1);
        assert_eq!(outcome(again.await), None);
        assert_eq!(pair.stage.held.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn a_call_whose_request_is_a_stream_is_not_sent_again() {
    run(async |pair| {
        for method in [READ, READ_AGAIN] {
            let client = pair.client.clone();
            let numbers = stream::iter([1]).chain(stream::pending());
            let call = tokio::spawn(async move { client.client_streaming(method, numbers).await });
            pair.stage.has_begun().await;
            pair.broken().await;
            assert_eq!(outcome(call.await), Some(Code::Unavailable));
            assert_eq!(pair.stage.begun.available_permits(), 0);
        }
    });
}
