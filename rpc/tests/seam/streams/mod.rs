//! Streams of calls, in each direction, over shared memory and sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use doorbell_rpc::{Channel, Client, Code, Method, Raw, Router, Server, Status, Streaming};
use futures_util::{StreamExt, stream};
use tokio::sync::Notify;
use tokio::time::timeout;

const COUNT: Method<u64, u64> = Method::new("count");
const SUM: Method<u64, u64> = Method::new("sum");
const ECHO: Method<Bytes, Bytes, Raw> = Method::new("echo");
const ENDLESS: Method<(), u64> = Method::new("endless");
const FAILS: Method<u64, u64> = Method::new("fails");
const ONE: Method<(), u64> = Method::new("one");
const FIRST: Method<u64, u64> = Method::new("first");

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(30);

/// Tells when it is dropped.
struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// The record of what handlers have done.
#[derive(Clone, Default)]
struct Seen {
    /// How many numbers the endless stream was asked for.
    produced: Arc<AtomicU64>,
    /// Told when an endless stream is dropped.
    stopped: Arc<Notify>,
}

fn router(seen: &Seen) -> Router {
    let seen = seen.clone();
    Router::new()
        .server_streaming(COUNT, |request| async move {
            let to = request.into_inner();
            Ok(Streaming::new(stream::iter((0..to).map(Ok))))
        })
        .client_streaming(SUM, |request| async move {
            let mut numbers: Streaming<u64> = request.into_inner();
            let mut sum = 0;
            while let Some(number) = numbers.message().await? {
                sum += number;
            }
            Ok(sum)
        })
        .streaming(ECHO, |request| async move {
            let pieces: Streaming<Bytes> = request.into_inner();
            Ok(pieces)
        })
        .server_streaming(ENDLESS, move |_| {
            let (produced, dropped) = (seen.produced.clone(), Dropped(seen.stopped.clone()));
            async move {
                Ok(Streaming::new(stream::iter(0..).map(move |number| {
                    let _kept = &dropped;
                    produced.fetch_add(1, Ordering::Relaxed);
                    Ok(number)
                })))
            }
        })
        .server_streaming(FAILS, |request| async move {
            let after = request.into_inner();
            let good = stream::iter(0..after).map(Ok);
            let bad = stream::once(async { Err(Status::data_loss("the disk is broken")) });
            Ok(Streaming::new(good.chain(bad)))
        })
        .unary(ONE, |_| async { Ok(1_u64) })
        .client_streaming(FIRST, |request| async move {
            let mut numbers: Streaming<u64> = request.into_inner();
            numbers
                .message()
                .await?
                .ok_or_else(|| Status::invalid_argument("there is no first one"))
        })
}

/// A server and a client of it, on each device.
async fn pair(device: &str) -> (Server, Client<Channel>, Seen) {
    let seen = Seen::default();
    let server = Server::builder().add_service(router(&seen)).open(device).await;
    let server = server.expect("the device opens");
    let channel = Channel::connect(server.name()).await.expect("the server is there");
    (server, Client::new(channel), seen)
}

/// Runs a test over each device, with a runtime of one thread and of several.
macro_rules! on_each_device {
    ($($name:ident: $test:expr;)*) => {
        $(mod $name {
            use super::*;

            #[tokio::test]
            async fn over_shared_memory() {
                timeout(LONG, $test(pair("shm").await)).await.expect("it ends");
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn over_sockets() {
                timeout(LONG, $test(pair("udp:127.0.0.1:0").await)).await.expect("it ends");
            }
        })*
    };
}

on_each_device! {
    a_server_streams_all_of_its_messages_in_order: async |(_server, client, _): (Server, Client<Channel>, Seen)| {
        let response = client.server_streaming(COUNT, 10_000).await.expect("it streams");
        let numbers: Vec<u64> = response.into_inner().map(|number| number.expect("a number")).collect().await;
        assert!(numbers.into_iter().eq(0..10_000));
    };
    a_client_streams_all_of_its_messages: async |(_server, client, _): (Server, Client<Channel>, Seen)| {
        let sum = client.client_streaming(SUM, stream::iter(0..10_000_u64)).await.expect("it sums");
        assert_eq!(sum.into_inner(), 49_995_000);
        let none = client.client_streaming(SUM, stream::empty::<u64>()).await.expect("it sums");
        assert_eq!(none.into_inner(), 0);
    };
    both_stream_at_once: async |(_server, client, _): (Server, Client<Channel>, Seen)| {
        let (sends, sent) = tokio::sync::mpsc::unbounded_channel::<Bytes>();
        let messages = stream::unfold(sent, |mut sent| async move { Some((sent.recv().await?, sent)) });
        let response = client.streaming(ECHO, messages).await.expect("it streams");
        let mut echoed = response.into_inner();
        for number in 0..1000_u32 {
            // Each waits for the one before to come back.
            sends.send(Bytes::copy_from_slice(&number.to_be_bytes())).expect("it is taken");
            let piece = echoed.message().await.expect("it goes on").expect("a piece");
            assert_eq!(piece[..], number.to_be_bytes());
        }
        drop(sends);
        assert_eq!(echoed.message().await.expect("it ends well"), None);
    };
    messages_of_all_lengths_come_whole_and_in_order: async |(_server, client, _): (Server, Client<Channel>, Seen)| {
        // Many share a message of Active Messages, one fills it, and others take several.
        let lens = (0..600).flat_map(|number| [0, 1, number * 7, 8192 / (1 + number % 9), 4092 + number % 10]);
        let messages: Vec<Bytes> = lens.enumerate().map(|(at, len)| vec![at as u8; len].into()).collect();
        let response = client.streaming(ECHO, stream::iter(messages.clone())).await.expect("it streams");
        let echoed: Vec<_> = response.into_inner().map(|message| message.expect("a message")).collect().await;
        assert!(echoed == messages);
    };
    messages_longer_than_a_window_come_whole: async |(_server, client, _): (Server, Client<Channel>, Seen)| {
        let long: Vec<Bytes> = (0..5_u8).map(|byte| vec![byte; 300_000 + usize::from(byte)].into()).collect();
        let response = client.streaming(ECHO, stream::iter(long.clone())).await.expect("it streams");
        let echoed: Vec<_> = response.into_inner().map(|piece| piece.expect("a piece")).collect().await;
        assert!(echoed == long);
    };
    an_error_ends_a_stream_behind_its_messages: async |(_server, client, _): (Server, Client<Channel>, Seen)| {
        let mut numbers = client.server_streaming(FAILS, 3).await.expect("it streams").into_inner();
        for number in 0..3 {
            assert_eq!(numbers.message().await.expect("a number"), Some(number));
        }
        let status = numbers.message().await.expect_err("it fails");
        assert_eq!((status.code(), status.message()), (Code::DataLoss, "the disk is broken"));
        assert_eq!(numbers.message().await.expect("it is over"), None);
    };
    a_stream_that_nobody_reads_stops_and_holds_up_no_other: async |(_server, client, seen): (Server, Client<Channel>, Seen)| {
        let mut idle = client.server_streaming(ENDLESS, ()).await.expect("it streams").into_inner();
        assert_eq!(idle.message().await.expect("a number"), Some(0));
        for _ in 0..100 {
            assert_eq!(client.unary(ONE, ()).await.expect("it is answered").into_inner(), 1);
        }
        let numbers = client.server_streaming(COUNT, 10_000).await.expect("it streams").into_inner();
        assert_eq!(numbers.count().await, 10_000);
        // A window has room for fewer than that.
        assert!(seen.produced.load(Ordering::Relaxed) <= 6000);
        assert_eq!(idle.message().await.expect("a number"), Some(1));
    };
    a_stream_that_its_reader_drops_is_dropped_at_the_server: async |(server, client, seen): (Server, Client<Channel>, Seen)| {
        let mut numbers = client.server_streaming(ENDLESS, ()).await.expect("it streams").into_inner();
        assert_eq!(numbers.message().await.expect("a number"), Some(0));
        drop(numbers);
        seen.stopped.notified().await;
        server.close().await.expect("clients take their answers");
    };
    a_handler_may_end_before_the_stream_of_its_client_does: async |(_server, client, _): (Server, Client<Channel>, Seen)| {
        let dropped = Arc::new(Notify::new());
        let kept = Dropped(dropped.clone());
        let endless = stream::iter(5_u64..).map(move |number| {
            let _kept = &kept;
            number
        });
        assert_eq!(client.client_streaming(FIRST, endless).await.expect("it answers").into_inner(), 5);
        dropped.notified().await;
    };
    a_client_that_goes_in_the_middle_of_a_stream_has_it_dropped: async |(server, client, seen): (Server, Client<Channel>, Seen)| {
        let mut numbers = client.server_streaming(ENDLESS, ()).await.expect("it streams").into_inner();
        assert_eq!(numbers.message().await.expect("a number"), Some(0));
        drop((numbers, client));
        seen.stopped.notified().await;
        server.close().await.expect("clients take their answers");
    };
    a_server_that_goes_ends_the_streams_of_its_clients: async |(server, client, _): (Server, Client<Channel>, Seen)| {
        let mut numbers = client.server_streaming(ENDLESS, ()).await.expect("it streams").into_inner();
        assert_eq!(numbers.message().await.expect("a number"), Some(0));
        drop(server);
        let ended = loop {
            match numbers.message().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("an endless stream has ended well"),
                Err(status) => break status,
            }
        };
        assert!(matches!(ended.code(), Code::Unavailable | Code::Cancelled), "{ended}");
    };
}
