//! Deadlines, and calls that are given up.

use std::time::Duration;

use doorbell_rpc::{self as rpc, Channel, Client, Code, Method, Request, Router, Server};
use tokio::time::Instant;

use crate::unary::{Device, HOLD, HOLD_AGAIN, Stage, connected, echoes, in_time, over_each_device};

over_each_device! {
    a_deadline_ends_the_call_at_the_client_and_the_handler_at_the_server,
    the_time_of_a_channel_bounds_calls_without_a_deadline,
    a_handler_knows_the_deadline_of_its_caller,
    calls_of_a_handler_inherit_its_deadline,
    calls_of_a_handler_end_when_its_deadline_is_over,
    a_call_that_is_dropped_drops_its_handler,
    a_call_whose_time_is_over_before_it_is_sent_fails,
}

/// Long enough for a call to reach its handler, and short enough to wait for.
const SHORT: Duration = Duration::from_millis(300);
/// As long as no test takes.
const LONG: Duration = Duration::from_secs(600);

fn within<T>(time: Duration, body: T) -> Request<T> {
    let mut request = Request::new(body);
    request.set_timeout(time);
    request
}

async fn a_deadline_ends_the_call_at_the_client_and_the_handler_at_the_server(device: Device) {
    let stage = Stage::default();
    let server = stage.open(device).await;
    let client = connected(&server).await;
    for method in [HOLD, HOLD_AGAIN] {
        let status = in_time(client.unary(method, within(SHORT, 1))).await.expect_err("no time");
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
        stage.has_begun().await;
        stage.has_ended().await;
    }
    echoes(&client).await;
}

async fn the_time_of_a_channel_bounds_calls_without_a_deadline(device: Device) {
    let stage = Stage::default();
    let server = stage.open(device).await;
    let channel = Channel::builder().timeout(SHORT).connect(server.name()).await;
    let client = Client::new(channel.expect("a connection"));
    let status = in_time(client.unary(HOLD, 1)).await.expect_err("no time");
    assert_eq!(status.code(), Code::DeadlineExceeded);
    stage.has_ended().await;
}

/// Answers with the microseconds that the handler has, if its caller does not wait for ever.
const TIME: Method<(), Option<u64>> = Method::new("time/left");
/// As [`TIME`], of the handler of another server.
const TIME_BEHIND: Method<(), Option<u64>> = Method::new("time/left behind");
/// As [`HOLD`], of the handler of another server.
const HOLD_BEHIND: Method<u64, u64> = Method::new("time/hold behind");

fn left() -> Option<u64> {
    let left = rpc::deadline()?.saturating_duration_since(Instant::now());
    Some(left.as_micros() as u64)
}

/// A server in front of another, whose handlers call it.
async fn in_front_of(behind: &Server, device: Device) -> Server {
    let [one, other] = [connected(behind).await, connected(behind).await];
    let router = Router::new()
        .unary(TIME, async |_| Ok(left()))
        .unary(TIME_BEHIND, move |_| {
            let one = one.clone();
            async move { Ok(one.unary(TIME, ()).await?.into_inner()) }
        })
        .unary(HOLD_BEHIND, move |request| {
            let other = other.clone();
            async move { other.unary(HOLD, request.into_inner()).await }
        });
    Server::builder().add_service(router).open(device.any()).await.expect("a server")
}

async fn a_handler_knows_the_deadline_of_its_caller(device: Device) {
    let router = Router::new().unary(TIME, async |_| Ok(left()));
    let server = Server::builder().add_service(router).open(device.any()).await.expect("a server");
    let client = connected(&server).await;
    assert_eq!(client.unary(TIME, ()).await.expect("an answer").into_inner(), None);
    let left = client.unary(TIME, within(LONG, ())).await.expect("an answer").into_inner();
    let left = left.expect("the caller waits for a time");
    assert!(left > 0 && left <= LONG.as_micros() as u64, "{left}");
}

async fn calls_of_a_handler_inherit_its_deadline(device: Device) {
    let router = Router::new().unary(TIME, async |_| Ok(left()));
    let behind = Server::builder().add_service(router).open(device.any()).await.expect("a server");
    let front = in_front_of(&behind, device).await;
    let client = connected(&front).await;
    assert_eq!(client.unary(TIME_BEHIND, ()).await.expect("an answer").into_inner(), None);
    let left = client.unary(TIME_BEHIND, within(LONG, ())).await.expect("an answer").into_inner();
    let left = left.expect("the caller's caller waits for a time");
    assert!(left > 0 && left <= LONG.as_micros() as u64, "{left}");
}

async fn calls_of_a_handler_end_when_its_deadline_is_over(device: Device) {
    let stage = Stage::default();
    let behind = stage.open(device).await;
    let front = in_front_of(&behind, device).await;
    let client = connected(&front).await;
    let status = in_time(client.unary(HOLD_BEHIND, within(SHORT, 1))).await.expect_err("no time");
    assert_eq!(status.code(), Code::DeadlineExceeded);
    stage.has_begun().await;
    stage.has_ended().await;
}

async fn a_call_that_is_dropped_drops_its_handler(device: Device) {
    let stage = Stage::default();
    let server = stage.open(device).await;
    let client = connected(&server).await;
    for method in [HOLD, HOLD_AGAIN] {
        tokio::select! {
            biased;
            () = stage.has_begun() => {}
            answer = client.unary(method, 1) => panic!("nobody let it go: {answer:?}"),
        }
        stage.has_ended().await;
    }
    echoes(&client).await;
    assert_eq!(server.running(), 0);
}

async fn a_call_whose_time_is_over_before_it_is_sent_fails(device: Device) {
    let stage = Stage::default();
    let server = stage.open(device).await;
    let client = connected(&server).await;
    let mut request = Request::new(1);
    request.set_deadline(Some(Instant::now()));
    let status = client.unary(HOLD, request).await.expect_err("no time");
    assert_eq!(status.code(), Code::DeadlineExceeded);
    echoes(&client).await;
    assert_eq!(stage.begun(), 0);
}
