//! The policy by which failed calls are made again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use doorbell_rpc::{
    Backoff, Body, Channel, Client, Code, Method, Request, Response, Retries, Router, Server,
    Status,
};
use tower::util::{BoxCloneSyncService, service_fn};
use tower::{ServiceBuilder, ServiceExt};

const AGAIN: Method<(), u32> = Method::new("again").idempotent();
const ONCE: Method<(), u32> = Method::new("once");
const READ: Method<u64, u32> = Method::new("read").idempotent();

const BRIEF: Backoff =
    Backoff { first: Duration::from_micros(100), most: Duration::from_millis(1) };

fn retries() -> Retries {
    Retries::new().backoff(BRIEF)
}

/// Calls through a policy to methods that fail `failures` times with a code before they succeed,
/// and how often they have run.
async fn server(failures: u32, code: Code) -> (Server, Channel, Arc<AtomicU32>) {
    let ran = Arc::new(AtomicU32::new(0));
    let run = {
        let ran = ran.clone();
        move || {
            let times = ran.fetch_add(1, Ordering::SeqCst) + 1;
            if times > failures { Ok(times) } else { Err(Status::new(code, "not yet")) }
        }
    };
    let [again, once, read] = [0; 3].map(|_| run.clone());
    let router = Router::new()
        .unary(AGAIN, move |_| std::future::ready(again()))
        .unary(ONCE, move |_| std::future::ready(once()))
        .client_streaming(READ, move |_| std::future::ready(read()));
    let server = Server::builder().add_service(router).open("shm").await.expect("a device");
    let channel = Channel::connect(server.name()).await.expect("it is there");
    (server, channel, ran)
}

#[tokio::test]
async fn an_idempotent_call_is_made_again_until_it_succeeds() {
    let (_server, channel, _) = server(3, Code::Unavailable).await;
    let client = Client::new(ServiceBuilder::new().retry(retries()).service(channel));
    assert_eq!(client.unary(AGAIN, ()).await.expect("the fourth succeeds").into_inner(), 4);
}

#[tokio::test]
async fn a_call_is_made_so_often_at_the_most() {
    for (attempts, expected) in [(0, 1), (1, 1), (3, 3)] {
        let (_server, channel, ran) = server(100, Code::Unavailable).await;
        let retries = retries().attempts(attempts);
        let client = Client::new(ServiceBuilder::new().retry(retries).service(channel));
        let status = client.unary(AGAIN, ()).await.expect_err("it always fails");
        assert_eq!(status.code(), Code::Unavailable, "{status}");
        assert_eq!(ran.load(Ordering::SeqCst), expected, "{attempts} attempts");
    }
}

#[tokio::test]
async fn calls_that_are_not_idempotent_or_stream_or_fail_otherwise_are_made_once() {
    let (_server, channel, ran) = server(100, Code::Unavailable).await;
    let layers = ServiceBuilder::new().retry(retries());
    let client = Client::new(layers.service(channel));
    client.unary(ONCE, ()).await.expect_err("it fails");
    assert_eq!(ran.swap(0, Ordering::SeqCst), 1);
    client.client_streaming(READ, futures_util::stream::iter([1])).await.expect_err("it fails");
    assert_eq!(ran.swap(0, Ordering::SeqCst), 1);
    let (_server, channel, ran) = server(100, Code::Internal).await;
    let layers = ServiceBuilder::new().retry(retries());
    Client::new(layers.service(channel)).unary(AGAIN, ()).await.expect_err("it fails");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_codes_that_are_configured_are_tried_again() {
    let (_server, channel, _) = server(1, Code::Aborted).await;
    let layers = ServiceBuilder::new().retry(retries().codes([Code::Aborted]));
    let answer = Client::new(layers.service(channel)).unary(AGAIN, ()).await;
    assert_eq!(answer.expect("the second succeeds").into_inner(), 2);
}

#[tokio::test]
async fn no_attempt_begins_behind_the_deadline() {
    let (_server, channel, ran) = server(100, Code::Unavailable).await;
    let hour = Duration::from_secs(3600);
    let retries = Retries::new().backoff(Backoff { first: hour, most: hour });
    let client = Client::new(ServiceBuilder::new().retry(retries).service(channel));
    let mut request = Request::new(());
    request.set_timeout(Duration::from_secs(600));
    // The status of the attempt, rather than that the time is over.
    let status = client.unary(AGAIN, request).await.expect_err("it fails");
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "not yet"));
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_budget_bounds_the_retries_of_all_calls() {
    let (_server, channel, ran) = server(u32::MAX, Code::Unavailable).await;
    let retries = retries().attempts(1000).budget(1, 0.0);
    let client = Client::new(ServiceBuilder::new().retry(retries).service(channel));
    for _ in 0..20 {
        client.unary(AGAIN, ()).await.expect_err("it fails");
    }
    // Twenty calls, and ten retries of ten seconds.
    let ran = ran.load(Ordering::SeqCst);
    assert!((21..=40).contains(&ran), "{ran}");
}

// A status that says so comes from a channel which has not sent the call.
#[tokio::test]
async fn a_call_that_has_certainly_not_run_is_made_again_though_not_idempotent() {
    let (server, channel, ran) = server(0, Code::Ok).await;
    let gone = Channel::builder().connect_lazily("shm:rpc-retries/nobody#1").await;
    let gone = gone.expect("a device");
    let made = Arc::new(AtomicU32::new(0));
    // The first attempt goes where nobody is, and the next one to the server.
    let either = service_fn(move |request: Request<Body>| {
        let nobody = made.fetch_add(1, Ordering::SeqCst) == 0;
        let channel = if nobody { gone.clone() } else { channel.clone() };
        async move { channel.oneshot(request).await }
    });
    let either = BoxCloneSyncService::<_, Response<Body>, Status>::new(either);
    let client = Client::new(ServiceBuilder::new().retry(retries()).service(either));
    assert_eq!(client.unary(ONCE, ()).await.expect("the server is there").into_inner(), 1);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    drop(server);
}

#[tokio::test]
async fn a_status_proves_that_a_call_has_not_run_only_if_no_handler_began() {
    const UNKNOWN: Method<(), ()> = Method::new("unknown");
    const NESTED: Method<(), ()> = Method::new("nested");
    let gone = Channel::builder().connect_lazily("shm:rpc-retries/nobody#2").await;
    let gone = Client::new(gone.expect("a device"));
    let nested = gone.clone();
    let router = Router::new()
        .unary(NESTED, move |_| nested.unary(UNKNOWN, ()))
        .unary(ONCE, |_| async { Err::<u32, _>(Status::unavailable("it has begun")) });
    let server = Server::builder().add_service(router.clone()).open("shm").await;
    let server = server.expect("a device");
    let client = Client::new(Channel::connect(server.name()).await.expect("it is there"));
    let never_sent = gone.unary(UNKNOWN, ()).await.expect_err("nobody is there");
    let refused = client.unary(UNKNOWN, ()).await.expect_err("no such method");
    assert!(never_sent.has_not_run() && refused.has_not_run(), "{never_sent}; {refused}");
    let failed = client.unary(ONCE, ()).await.expect_err("it fails");
    let nested = client.unary(NESTED, ()).await.expect_err("what it calls fails");
    let here = Client::new(router).unary(NESTED, ()).await.expect_err("what it calls fails");
    for ran in [failed, nested, here] {
        assert_eq!(ran.code(), Code::Unavailable, "{ran}");
        assert!(!ran.has_not_run(), "{ran}");
    }
}
