//! Streams that panic, at the server and at the client.

use std::time::Duration;

use doorbell_rpc::{Channel, Client, Code, Method, Router, Server, Status, Streaming};
use futures_util::{StreamExt, stream};

use crate::mixed::holds_nothing;

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(20);

/// Streams the numbers below another, and then panics.
const COUNT_AND_PANIC: Method<u64, u64> = Method::new("count and panic");
/// Panics when it has read so many messages as its argument says.
const READ_AND_PANIC: Method<u64, u64> = Method::new("read and panic");
/// Streams what is streamed, and panics at a zero.
const MIRROR: Method<u64, u64> = Method::new("mirror");
/// Adds the numbers of a stream.
const SUM: Method<u64, u64> = Method::new("sum");

fn router() -> Router {
    let sound = |number: u64| match number {
        0 => panic!("a zero"),
        number => number,
    };
    Router::new()
        .server_streaming(COUNT_AND_PANIC, move |request| async move {
            let numbers = (0..request.into_inner()).rev().map(move |number| Ok(sound(number)));
            Ok(Streaming::new(stream::iter(numbers)))
        })
        .client_streaming(READ_AND_PANIC, move |request| async move {
            let mut numbers: Streaming<u64> = request.into_inner();
            while let Some(number) = numbers.message().await? {
                sound(number);
            }
            Ok(0)
        })
        .streaming(MIRROR, move |request| async move {
            let numbers: Streaming<u64> = request.into_inner();
            Ok(Streaming::new(numbers.map(move |number| number.map(sound))))
        })
        .client_streaming(SUM, |request| async move {
            let numbers: Streaming<u64> = request.into_inner();
            numbers.fold(Ok(0), |sum, number| async move { Ok(sum? + number?) }).await
        })
}

async fn pair(device: &str) -> (Server, Client<Channel>) {
    let server = Server::builder().add_service(router()).open(device).await;
    let server = server.expect("the device opens");
    let channel = Channel::connect(server.name()).await.expect("the server is there");
    (server, Client::new(channel))
}

/// Reads a stream of so many numbers that ends with an error.
async fn reads(mut numbers: Streaming<u64>, count: usize) -> Status {
    for _ in 0..count {
        numbers.message().await.expect("no error yet").expect("no end yet");
    }
    numbers.message().await.expect_err("the stream has panicked")
}

// The caller was told that the stream had been given up, as if somebody had wanted that.
async fn a_stream_that_panics_ends_as_internal_at_its_caller_and_at_no_other(device: &str) {
    let (server, client) = pair(device).await;
    let other = client.streaming(MIRROR, stream::iter(1..50).chain(stream::pending())).await;
    let mut other = other.expect("it mirrors").into_inner();
    for count in [1, 2, 1000] {
        let counted = client.server_streaming(COUNT_AND_PANIC, count).await.expect("it counts");
        let status = reads(counted.into_inner(), count as usize - 1).await;
        assert_eq!(status.code(), Code::Internal, "{status}");
        assert!(status.message().contains("panicked"), "{status}");
    }
    for number in 1..50 {
        assert_eq!(other.message().await.expect("it goes on"), Some(number));
    }
    drop(other);
    holds_nothing(|| server.usage()).await;
}

async fn handlers_that_panic_while_they_read_a_stream_end_as_internal(device: &str) {
    let (server, client) = pair(device).await;
    let endless = stream::iter([3, 2, 1, 0]).chain(stream::pending());
    let status = client.client_streaming(READ_AND_PANIC, endless).await.expect_err("it panics");
    assert_eq!(status.code(), Code::Internal, "{status}");
    let endless = stream::iter([3, 2, 0]).chain(stream::pending());
    let mirrored = client.streaming(MIRROR, endless).await.expect("it mirrors");
    let status = reads(mirrored.into_inner(), 2).await;
    assert_eq!(status.code(), Code::Internal, "{status}");
    holds_nothing(|| server.usage()).await;
}

async fn a_request_stream_that_panics_ends_as_internal_at_its_handler(device: &str) {
    let (server, client) = pair(device).await;
    let panics = stream::iter([3, 2, 0]).map(|number| if number == 0 { panic!() } else { number });
    let status = client.client_streaming(SUM, panics).await.expect_err("there is no sum");
    assert_eq!(status.code(), Code::Internal, "{status}");
    let sum = client.client_streaming(SUM, stream::iter([3, 2])).await.expect("it goes on");
    assert_eq!(sum.into_inner(), 5);
    holds_nothing(|| server.usage()).await;
}

// The answer of such a handler could not be decoded, and such a stream seemed to be whole.
async fn errors_whose_code_is_ok_are_errors_all_the_same(device: &str) {
    const FAIL: Method<(), u64> = Method::new("fail");
    const STREAM: Method<(), u64> = Method::new("stream");
    let odd = || Status::new(Code::Ok, "all is well, and not");
    let router = Router::new()
        .unary(FAIL, move |_| async move { Err::<u64, _>(odd()) })
        .server_streaming(STREAM, move |_| async move {
            Ok(Streaming::new(stream::iter([Ok(1), Err(odd())])))
        });
    let server = Server::builder().add_service(router).open(device).await.expect("it opens");
    let client = Client::new(Channel::connect(server.name()).await.expect("it is there"));
    let numbers = client.server_streaming(STREAM, ()).await.expect("it streams").into_inner();
    for status in [client.unary(FAIL, ()).await.expect_err("it fails"), reads(numbers, 1).await] {
        assert_eq!(status.code(), Code::Internal, "{status}");
        assert!(status.message().contains("all is well, and not"), "{status}");
    }
}

on_each_device!(
    errors_whose_code_is_ok_are_errors_all_the_same,
    a_stream_that_panics_ends_as_internal_at_its_caller_and_at_no_other,
    handlers_that_panic_while_they_read_a_stream_end_as_internal,
    a_request_stream_that_panics_ends_as_internal_at_its_handler,
);
