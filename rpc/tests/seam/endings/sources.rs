//! The stream of a request ends at the client when the call is over: whatever the stream is made of
//! is dropped.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use doorbell_rpc::{Channel, Client, Code, Method, Request, Router, Server, Status, Streaming};
use futures_util::{Stream, stream};
use tokio::sync::oneshot;

use crate::mixed::holds_nothing;

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(20);

/// A method whose handler refuses all requests.
const REFUSE: Method<u64, u64> = Method::new("refuse");
/// Answers with one message, and reads none.
const ANSWER: Method<u64, u64> = Method::new("answer");
/// Answers with a stream of two messages, and reads none.
const TWO: Method<u64, u64> = Method::new("two");
/// Answers with a stream that fails, and reads none.
const FAIL: Method<u64, u64> = Method::new("fail");
/// A method whose handler never answers.
const FOREVER: Method<u64, u64> = Method::new("forever");
/// Of which the server has another schema.
const OTHER: Method<u64, u64> = Method::new("other").schema("(u64) -> u64");
const OTHERS: Method<u64, u64> = Method::new("other").schema("(u32) -> u32");
/// A method that no server has.
const UNKNOWN: Method<u64, u64> = Method::new("unknown");

/// The numbers that are sent: one, and then none for ever, or ever more. Tells when it is dropped.
struct Source {
    endless: bool,
    begun: bool,
    _dropped: oneshot::Sender<()>,
}

impl Source {
    fn new(endless: bool) -> (Self, oneshot::Receiver<()>) {
        let (dropped, is_dropped) = oneshot::channel();
        (Self { endless, begun: false, _dropped: dropped }, is_dropped)
    }
}

impl Stream for Source {
    type Item = u64;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<u64>> {
        let first = !std::mem::replace(&mut self.begun, true);
        if first || self.endless { Poll::Ready(Some(7)) } else { Poll::Pending }
    }
}

fn router() -> Router {
    Router::new()
        .client_streaming(REFUSE, |_: Request<Streaming<u64>>| async {
            Err::<u64, _>(Status::permission_denied("nobody may"))
        })
        .client_streaming(ANSWER, |_: Request<Streaming<u64>>| async { Ok(1) })
        .streaming(TWO, |_: Request<Streaming<u64>>| async {
            Ok(Streaming::new(stream::iter([Ok(1), Ok(2)])))
        })
        .streaming(FAIL, |_: Request<Streaming<u64>>| async {
            let fails = [Ok(1), Err(Status::data_loss("it is lost"))];
            Ok(Streaming::new(stream::iter(fails)))
        })
        .client_streaming(FOREVER, |request: Request<Streaming<u64>>| async move {
            let _kept = request;
            std::future::pending::<Result<u64, Status>>().await
        })
        .client_streaming(OTHERS, |_: Request<Streaming<u64>>| async { Ok(1) })
}

async fn pair(device: &str) -> (Server, Channel, Client<Channel>) {
    let server = Server::builder().add_service(router()).open(device).await;
    let server = server.expect("the device opens");
    let channel = Channel::connect(server.name()).await.expect("the server is there");
    (server, channel.clone(), Client::new(channel))
}

/// Waits until a source is dropped.
async fn ends(dropped: oneshot::Receiver<()>) {
    dropped.await.expect_err("nothing is sent");
}

async fn the_source_of_a_call_that_was_refused_is_dropped(device: &str) {
    let (server, channel, client) = pair(device).await;
    for (method, code) in [
        (REFUSE, Code::PermissionDenied),
        (OTHER, Code::FailedPrecondition),
        (UNKNOWN, Code::Unimplemented),
    ] {
        for endless in [false, true] {
            let (source, dropped) = Source::new(endless);
            let refused = client.client_streaming(method, source).await.expect_err("refused");
            assert_eq!(refused.code(), code, "{refused}");
            ends(dropped).await;
        }
    }
    holds_nothing(|| channel.usage()).await;
    holds_nothing(|| server.usage()).await;
}

async fn the_source_of_a_call_that_was_answered_is_dropped(device: &str) {
    let (server, _, client) = pair(device).await;
    for endless in [false, true] {
        let (source, dropped) = Source::new(endless);
        assert_eq!(client.client_streaming(ANSWER, source).await.expect("1").into_inner(), 1);
        ends(dropped).await;
    }
    holds_nothing(|| server.usage()).await;
}

// The source lived for as long as the program kept the response, although that had ended; and so
// did the permit of the call.
async fn the_source_of_a_call_is_dropped_when_the_response_has_ended_that_is_kept(device: &str) {
    let (server, channel, client) = pair(device).await;
    let room = channel.room();
    for endless in [false, true] {
        for method in [TWO, FAIL] {
            let (source, dropped) = Source::new(endless);
            let mut kept = client.streaming(method, source).await.expect("two").into_inner();
            while let Ok(Some(_)) = kept.message().await {}
            ends(dropped).await;
            assert_eq!(channel.room(), room, "the permit is back");
            assert!(matches!(kept.message().await, Ok(None)), "the stream has ended");
        }
    }
    holds_nothing(|| server.usage()).await;
}

async fn the_source_of_a_call_that_is_given_up_is_dropped(device: &str) {
    let (server, _, client) = pair(device).await;
    for endless in [false, true] {
        let (source, dropped) = Source::new(endless);
        let mut late = Request::new(source);
        late.set_timeout(Duration::from_millis(20));
        let late = client.client_streaming(FOREVER, late).await.expect_err("it takes for ever");
        assert_eq!(late.code(), Code::DeadlineExceeded, "{late}");
        ends(dropped).await;
        let (source, dropped) = Source::new(endless);
        let call = client.client_streaming(FOREVER, source);
        tokio::select! {
            _ = call => unreachable!("nobody answers"),
            () = async { while server.running() == 0 { tokio::task::yield_now().await } } => {}
        }
        ends(dropped).await;
        holds_nothing(|| server.usage()).await;
    }
}

async fn the_source_of_a_call_is_dropped_when_the_server_has_gone(device: &str) {
    let (server, _, client) = pair(device).await;
    let (source, dropped) = Source::new(false);
    let call = tokio::spawn(async move { client.client_streaming(FOREVER, source).await });
    while server.running() == 0 {
        tokio::task::yield_now().await;
    }
    drop(server);
    let gone = call.await.expect("nobody panics").expect_err("the server has gone");
    assert_eq!(gone.code(), Code::Unavailable, "{gone}");
    ends(dropped).await;
}

on_each_device!(
    the_source_of_a_call_that_was_refused_is_dropped,
    the_source_of_a_call_that_was_answered_is_dropped,
    the_source_of_a_call_is_dropped_when_the_response_has_ended_that_is_kept,
    the_source_of_a_call_that_is_given_up_is_dropped,
    the_source_of_a_call_is_dropped_when_the_server_has_gone,
);
