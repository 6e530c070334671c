//! Servers whose processes end in order at once, behind a shutdown.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use doorbell_kit::child::{self, Child};
use doorbell_rpc::{
    Channel, Client, Method, Raw, Response, Router, Server, Status, Streaming, WhyGivenUp,
};
use doorbell_verbs::{Config, Ending, KeepAlive};
use futures_util::stream;
use tokio::sync::Semaphore;

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(60);

/// How many calls are answered last.
const CALLS: usize = 8;

/// Answers with as many bytes as the request has, when all of the last calls have come.
const GIVE: Method<Bytes, Bytes, Raw> = Method::new("give");
/// Answers with a stream of messages as long as the request.
const STREAM: Method<Bytes, Bytes, Raw> = Method::new("stream");

fn run<F: Future>(future: F) -> F::Output {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().expect("threads can be started");
    runtime.block_on(async { tokio::time::timeout(LONG, future).await }).expect("it ends")
}

/// Handlers that begin to answer when the last of the calls has come, and a semaphore that has a
/// permit for each call that has come.
fn router() -> (Router, Arc<Semaphore>) {
    let (came, all) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (told, count) = (came.clone(), Arc::new(AtomicUsize::new(0)));
    let waits = move || {
        let (came, all, count) = (came.clone(), all.clone(), count.clone());
        async move {
            if count.fetch_add(1, Ordering::SeqCst) + 1 == CALLS {
                all.add_permits(CALLS);
            }
            came.add_permits(1);
            all.acquire().await.expect("it is never closed").forget();
        }
    };
    let router = Router::new()
        .unary(GIVE, {
            let waits = waits.clone();
            move |request| {
                let waits = waits();
                async move {
                    waits.await;
                    Ok(Response::new(request.into_inner()))
                }
            }
        })
        .server_streaming(STREAM, move |request| {
            let waits = waits();
            async move {
                waits.await;
                let message = request.into_inner();
                let messages = (0..CALLS).map(move |_| Ok::<_, Status>(message.clone()));
                Ok(Streaming::new(stream::iter(messages)))
            }
        });
    (router, told)
}

/// Serves the last calls, shuts down, and ends.
fn serves(device: &str) {
    run(async {
        let (router, came) = router();
        let server = Server::builder().add_service(router).open(device).await.expect("it opens");
        child::tell(server.name());
        let _ = came.acquire_many(CALLS as u32).await.expect("it is never closed");
        server.close().await.expect("the client takes its answers");
    });
}

fn ends(test: &str, device: &str) {
    if let Some(device) = child::part() {
        return serves(&device);
    }
    for len in [50, 5_000, 300_000] {
        let mut child = Child::start(test, device, None);
        let name = child.hear();
        run(async {
            let client = Client::new(Channel::connect(name.as_str()).await.expect("it is there"));
            let mut calls = tokio::task::JoinSet::new();
            for call in 0..CALLS {
                let client = client.clone();
                calls.spawn(async move {
                    let body = Bytes::from(vec![call as u8; len]);
                    if call % 2 == 0 {
                        let answer = client.unary(GIVE, body.clone()).await.expect("an answer");
                        assert!(answer.into_inner() == body);
                        return;
                    }
                    let answer = client.server_streaming(STREAM, body.clone()).await;
                    let mut messages = answer.expect("an answer").into_inner();
                    for _ in 0..CALLS {
                        let message = messages.message().await.expect("no failure");
                        assert!(message.as_ref() == Some(&body));
                    }
                    assert!(messages.message().await.expect("a good end").is_none());
                });
            }
            while let Some(called) = calls.join_next().await {
                called.unwrap_or_else(|why| panic!("of {len} bytes: {why}"));
            }
        });
        child.end();
    }
}

#[test]
fn over_shared_memory_a_server_that_ends_behind_a_shutdown_has_given_each_answer() {
    let test =
        "ended::over_shared_memory_a_server_that_ends_behind_a_shutdown_has_given_each_answer";
    ends(test, "shm");
}

#[test]
fn over_udp_a_server_that_ends_behind_a_shutdown_has_given_each_answer() {
    let test = "ended::over_udp_a_server_that_ends_behind_a_shutdown_has_given_each_answer";
    ends(test, "udp:127.0.0.1:0");
}

/// A shutdown gave clients that took nothing up after a second, and said nothing of that.
#[test]
fn a_shutdown_names_the_clients_that_have_not_taken_their_answers() {
    let test = "ended::a_shutdown_names_the_clients_that_have_not_taken_their_answers";
    if let Some(server) = child::part() {
        return run(async {
            let client = Client::new(Channel::connect(server.as_str()).await.expect("it is there"));
            let _ = client.unary(GIVE, Bytes::from_static(b"lost")).await;
        });
    }
    run(async {
        let keep_alive = KeepAlive { busy: Duration::from_millis(500), ..KeepAlive::default() };
        let (begun, answers) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (begins, goes_on) = (begun.clone(), answers.clone());
        let router = Router::new().unary(GIVE, move |request| {
            let (begins, goes_on) = (begins.clone(), goes_on.clone());
            async move {
                begins.add_permits(1);
                goes_on.acquire().await.expect("it is never closed").forget();
                Ok(Response::new(request.into_inner()))
            }
        });
        let builder = Server::builder()
            .add_service(router)
            .endpoint(|endpoint| endpoint.nic(Config { keep_alive, ..Config::default() }));
        let server = builder.open("udp:127.0.0.1:0").await.expect("any port");
        let mut child = Child::start(test, &server.name().to_string(), None);
        begun.acquire().await.expect("it is never closed").forget();
        child.stop();
        answers.add_permits(1);
        let why = server.close().await.expect_err("the client is stopped");
        assert_eq!((why.peers, why.given_up.len(), why.stopped), (1, 1, 0), "{why}");
        assert!(matches!(why.given_up[0].why, WhyGivenUp::Gone(Ending::Broken(_))), "{why}");
    });
}
