//! Servers that shut down: what their clients are told, and which calls have certainly not run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use doorbell_am::{Endpoint, Event, Handlers};
use doorbell_rpc::{Channel, Client, Code, Method, Router, Server, Status};
use tokio::sync::Semaphore;

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(60);

/// Answers when the test adds a permit.
const HOLD: Method<(), u64> = Method::new("hold");
const NEVER: Method<(), ()> = Method::new("never");
const COUNT: Method<(), u64> = Method::new("count");
const PASS_ON: Method<(), ()> = Method::new("pass on");

/// A server with handlers that the test releases, and the number of its handlers that have begun.
struct Held {
    server: Server,
    release: Arc<Semaphore>,
    begun: Arc<AtomicU64>,
}

async fn open(device: &str) -> Held {
    let (release, begun) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicU64::new(0)));
    let (held, counts) = (release.clone(), begun.clone());
    let counted = begun.clone();
    let router = Router::new()
        .unary(HOLD, move |_| {
            let held = held.clone();
            counts.fetch_add(1, Ordering::SeqCst);
            async move {
                held.acquire().await.expect("it is open").forget();
                Ok(7)
            }
        })
        .unary(COUNT, move |_| {
            let count = counted.fetch_add(1, Ordering::SeqCst);
            async move { Ok(count) }
        })
        .unary(NEVER, |_| std::future::pending::<Result<(), Status>>())
        .unary(PASS_ON, |_| async {
            let full =
                Server::builder().add_service(Router::new().unary(COUNT, |_| async { Ok(1) }));
            let full = full.most_running(0).open("shm").await.expect("the device opens");
            let channel = Channel::connect(full.name()).await?;
            let refused = Client::new(channel).unary(COUNT, ()).await.expect_err("it is full");
            assert!(refused.has_not_run(), "{refused:?}");
            Err::<(), _>(refused)
        });
    let server = Server::builder().add_service(router).open(device).await;
    Held { server: server.expect("the device opens"), release, begun }
}

async fn a_server_that_shuts_down_finishes_its_calls_and_gets_no_others(device: &str) {
    let Held { server, release, begun } = open(device).await;
    let channel = Channel::builder().connect_timeout(Duration::from_millis(200));
    let channel = channel.connect(server.name()).await.expect("the server is there");
    let client = Client::new(channel.clone());
    let held = tokio::spawn({
        let client = client.clone();
        async move { client.unary(HOLD, ()).await }
    });
    while begun.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let shutdown = tokio::spawn({
        let server = server.clone();
        async move { server.close().await }
    });
    // The channel learns of it while its call runs.
    while channel.is_connected() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let refused = client.unary(COUNT, ()).await.expect_err("nobody takes calls");
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    assert!(refused.has_not_run(), "{refused:?}");
    assert!(refused.message().contains("is shutting down"), "{refused}");
    assert_eq!(server.sessions(), 1, "newcomers are turned away");
    release.add_permits(1);
    assert_eq!(held.await.expect("it runs").expect("it is answered").into_inner(), 7);
    shutdown.await.expect("it runs").expect("the client takes its answer");
    assert_eq!(begun.load(Ordering::SeqCst), 1);
}

async fn a_shutdown_ends_the_connections_although_the_program_keeps_its_server(device: &str) {
    let Held { server, .. } = open(device).await;
    let channel = Channel::connect(server.name()).await.expect("the server is there");
    Client::new(channel).unary(COUNT, ()).await.expect("it counts");
    let other = Endpoint::open_towards(server.name(), Handlers::new()).await;
    let other = other.expect("the device opens");
    let mut events = other.events();
    let _peer = other.connect(server.name()).await.expect("the server is there");
    server.close().await.expect("clients take their answers");
    while !matches!(events.recv().await, Ok(Event::Gone(..))) {}
}

async fn a_shutdown_with_a_limit_stops_calls_that_take_longer_and_tells_their_callers(
    device: &str,
) {
    let Held { server, .. } = open(device).await;
    let channel = Channel::connect(server.name()).await.expect("the server is there");
    let client = Client::new(channel);
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.unary(NEVER, ()).await })
        })
        .collect();
    while server.running() < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let late = server.close_within(Duration::from_millis(50)).await.expect_err("they never end");
    assert_eq!((late.stopped, &late.given_up[..]), (3, &[][..]), "{late}");
    assert_eq!(
        late.to_string(),
        "closing the endpoint: 3 calls were not done in time, and stopped"
    );
    for call in calls {
        let stopped = call.await.expect("it runs").expect_err("it never ends by itself");
        assert_eq!(stopped.code(), Code::Unavailable, "{stopped}");
        assert!(stopped.message().contains("its time limit for calls under way"), "{stopped}");
        assert!(!stopped.has_not_run(), "{stopped:?}");
    }
    assert_eq!(server.running(), 0);
}

async fn a_status_tells_that_its_call_has_not_run_only_when_that_is_certain(device: &str) {
    let Held { server, begun, .. } = open(device).await;
    let channel = Channel::connect(server.name()).await.expect("the server is there");
    let client = Client::new(channel);
    let refused = client.unary(Method::<(), ()>::new("none"), ()).await.expect_err("there is none");
    assert!(refused.has_not_run(), "{refused:?}");
    // The handler passes on the status of a call of its own, which has not run.
    let passed_on = client.unary(PASS_ON, ()).await.expect_err("the other server is full");
    assert_eq!(passed_on.code(), Code::ResourceExhausted, "{passed_on}");
    assert!(!passed_on.has_not_run(), "{passed_on:?}");
    let mut request = doorbell_rpc::Request::new(());
    request.set_timeout(Duration::from_millis(50));
    let late = client.unary(HOLD, request).await.expect_err("nobody releases it");
    assert!(!late.has_not_run(), "{late:?}");
    assert_eq!(begun.load(Ordering::SeqCst), 1, "it has run");
    let name = server.name().clone();
    drop(server);
    let nobody = Channel::builder().connect_timeout(Duration::from_millis(100));
    let nobody = nobody.connect_lazily(&name).await.expect("the device opens");
    let unsent = Client::new(nobody).unary(COUNT, ()).await.expect_err("nobody is there");
    assert!(unsent.has_not_run(), "{unsent:?}");
}

/// Counts the calls that have run.
async fn counting(device: &str, count: &Arc<AtomicU64>) -> Server {
    let count = count.clone();
    let router = Router::new().unary(COUNT, move |_| {
        let before = count.fetch_add(1, Ordering::SeqCst);
        async move { Ok(before) }
    });
    let server = Server::builder().add_service(router).service(7).open(device).await;
    server.expect("nobody else has the address")
}

// A call failed that the server had refused since it was shutting down.
async fn calls_that_wait_for_a_server_outlast_its_restarts(device: &str) {
    let (count, answered) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut server = counting(device, &count).await;
    let (name, over) = (server.name().clone(), Arc::new(AtomicBool::new(false)));
    let channel = Channel::builder().wait_for_ready(true).connect(&name).await;
    let client = Client::new(channel.expect("it is there"));
    let callers: Vec<_> = (0..16)
        .map(|_| {
            let (client, over, answered) = (client.clone(), over.clone(), answered.clone());
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    client.unary(COUNT, ()).await.expect("it waits for the next server");
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    for _ in 0..4 {
        let before = answered.load(Ordering::SeqCst);
        while answered.load(Ordering::SeqCst) < before + 500 {
            assert!(!callers.iter().any(|caller| caller.is_finished()), "no call fails");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        server.close().await.expect("clients take their answers");
        drop(server);
        server = counting(name.address(), &count).await;
    }
    over.store(true, Ordering::Relaxed);
    for caller in callers {
        tokio::time::timeout(LONG, caller).await.expect("it ends").expect("no call fails");
    }
    assert_eq!(count.load(Ordering::SeqCst), answered.load(Ordering::SeqCst), "each ran once");
}

on_each_device!(
    calls_that_wait_for_a_server_outlast_its_restarts,
    a_server_that_shuts_down_finishes_its_calls_and_gets_no_others,
    a_shutdown_with_a_limit_stops_calls_that_take_longer_and_tells_their_callers,
    a_status_tells_that_its_call_has_not_run_only_when_that_is_certain,
    a_shutdown_ends_the_connections_although_the_program_keeps_its_server,
);
