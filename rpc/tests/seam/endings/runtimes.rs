//! Channels, servers and streams that outlive the runtime in which they were made.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::Thread;
use std::time::Duration;

use bytes::Bytes;
use doorbell_rpc::{Channel, Client, Code, Health, HealthClient, Request, Retries, Server, Status};
use futures_util::{FutureExt, StreamExt, stream};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceBuilder;

use crate::mixed::{self, ADD, ECHO, ENDLESS, FOREVER, MIRROR, SUM, router};

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(20);

const DEVICES: [&str; 2] = ["shm", "udp:127.0.0.1:0"];

fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().expect("a thread can be started")
}

/// Runs a future in a runtime, and panics if the future does not end.
fn run<F: Future>(runtime: &Runtime, future: F) -> F::Output {
    let bounded = runtime.block_on(async { tokio::time::timeout(LONG, future).await });
    bounded.expect("it ends")
}

async fn server(device: &str) -> Server {
    let builder = Server::builder().add_service(router()).health(&Health::new());
    builder.open(device).await.expect("the device opens")
}

async fn client(server: &Server) -> Client<Channel> {
    let channel = Channel::builder().connect_timeout(Duration::from_secs(600));
    Client::new(channel.connect(server.name()).await.expect("the server is there"))
}

fn says_that_the_runtime_has_ended(status: &Status) {
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    assert!(status.message().contains("runtime has ended"), "{status}");
}

#[test]
fn a_call_fails_at_once_when_the_runtime_of_its_channel_has_ended() {
    for device in DEVICES {
        let [serves, made, calls] = [runtime(), runtime(), runtime()];
        let server = run(&serves, server(device));
        let client = run(&made, client(&server));
        run(&calls, client.unary(ADD, (2, 3))).expect("the runtime of the channel runs");
        drop(made);
        let short = run(&calls, client.unary(ADD, (2, 3))).expect_err("the runtime has ended");
        says_that_the_runtime_has_ended(&short);
        let body = Bytes::from(vec![1; 100_000]);
        let long = run(&calls, client.unary(ECHO, body)).expect_err("the runtime has ended");
        says_that_the_runtime_has_ended(&long);
        let streamed = client.client_streaming(SUM, stream::pending());
        says_that_the_runtime_has_ended(&run(&calls, streamed).expect_err("it has ended"));
    }
}

#[test]
fn calls_and_streams_under_way_end_with_the_runtime_of_their_channel() {
    for device in DEVICES {
        let [serves, made, calls] = [runtime(), runtime(), runtime()];
        let server = run(&serves, server(device));
        let client = run(&made, client(&server));
        let (waits, sends) = (client.clone(), client.clone());
        let waits = calls.spawn(async move { waits.unary(FOREVER, ()).await });
        let sends =
            calls.spawn(async move { sends.client_streaming(SUM, stream::pending()).await });
        let (mut watch, mut mirror) = run(&calls, async {
            let channel = client_channel(&server, &made).await;
            let mut watch = HealthClient::new(channel).watch("").await.expect("it watches");
            watch.message().await.expect("the present status");
            let pieces = stream::iter([Bytes::new()]).chain(stream::pending());
            let mut mirror = client.streaming(MIRROR, pieces).await.expect("it mirrors");
            mirror.get_mut().message().await.expect("a piece");
            while server.running() < 4 {
                tokio::task::yield_now().await;
            }
            (watch, mirror.into_inner())
        });
        drop(made);
        run(&calls, async {
            let waits = waits.await.expect("nobody panics").expect_err("it waits");
            says_that_the_runtime_has_ended(&waits);
            let sends = sends.await.expect("nobody panics").expect_err("it sends");
            says_that_the_runtime_has_ended(&sends);
            says_that_the_runtime_has_ended(&mirror.message().await.expect_err("it is cut"));
            says_that_the_runtime_has_ended(&watch.message().await.expect_err("it is cut"));
            mixed::holds_nothing(|| server.usage()).await;
        });
    }
}

/// A channel that is made in another runtime than the one in which this is called.
async fn client_channel(server: &Server, made_in: &Runtime) -> Channel {
    let name = server.name().clone();
    let made = made_in.spawn(async move { Channel::connect(&name).await });
    made.await.expect("nobody panics").expect("the server is there")
}

#[test]
fn a_call_that_waits_for_a_connection_ends_with_the_runtime_of_its_channel() {
    let [made, calls] = [runtime(), runtime()];
    let nobody = "udp:127.0.0.1:1#1";
    let channel = Channel::builder().wait_for_ready(true);
    let channel = run(&made, channel.connect_lazily(nobody)).expect("the device opens");
    let waits = calls.spawn(async move { Client::new(channel).unary(ADD, (2, 3)).await });
    // The call waits whenever that is; if it has not begun, it fails all the same.
    drop(made);
    let status = run(&calls, waits).expect("nobody panics").expect_err("there is nobody");
    says_that_the_runtime_has_ended(&status);
}

#[test]
fn clients_notice_that_the_runtime_of_a_server_has_ended_which_the_program_keeps() {
    for device in DEVICES {
        let [serves, calls] = [runtime(), runtime()];
        let server = run(&serves, server(device));
        let client = run(&calls, client(&server));
        let waits = client.clone();
        // A call that must not be repeated: `FOREVER` would be.
        let waits =
            calls.spawn(async move { waits.client_streaming(SUM, stream::pending()).await });
        let mut endless = run(&calls, async {
            let endless = client.server_streaming(ENDLESS, ()).await.expect("it streams");
            while server.running() < 2 {
                tokio::task::yield_now().await;
            }
            endless.into_inner()
        });
        drop(serves);
        run(&calls, async {
            let status = waits.await.expect("nobody panics").expect_err("the server is over");
            assert_eq!(status.code(), Code::Unavailable, "{status}");
            let over = loop {
                match endless.message().await {
                    Ok(number) => assert!(number.is_some(), "the stream has no end"),
                    Err(status) => break status,
                }
            };
            assert!([Code::Unavailable, Code::Cancelled].contains(&over.code()), "{over}");
            let again = Channel::builder().connect_timeout(Duration::from_millis(50));
            again.connect(server.name()).await.expect_err("nobody takes connections");
            server.close().await.expect("clients take their answers");
        });
    }
}

/// Waits for a future in a thread that no runtime has.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unparks(Thread);
    impl Wake for Unparks {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unparks(std::thread::current())).into();
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        std::thread::park();
    }
}

// Each wait that has a bound panicked: tokio has no timers outside of its runtimes.
#[test]
fn calls_with_time_limits_are_made_outside_of_any_runtime() {
    for device in DEVICES {
        let serves = runtime();
        let server = run(&serves, server(device));
        let builder = || Channel::builder().in_flight(1).timeout(LONG);
        let channel = run(&serves, builder().connect(server.name())).expect("it is there");
        let client = Client::new(channel.clone());
        let within = |time| {
            let mut request = Request::new(());
            request.set_timeout(time);
            request
        };
        assert_eq!(block_on(client.unary(ADD, (2, 3))).expect("an answer").into_inner(), 5);
        let body = Bytes::from(vec![1; 100_000]);
        let echoed = block_on(client.unary(ECHO, body.clone())).expect("an answer").into_inner();
        assert_eq!(echoed, body);
        let brief = Duration::from_millis(50);
        let late = block_on(client.unary(FOREVER, within(brief))).expect_err("it never answers");
        assert_eq!(late.code(), Code::DeadlineExceeded, "{late}");
        // A stream that holds the only permit, and a call that waits for it.
        let mut endless = block_on(client.server_streaming(ENDLESS, ())).expect("it streams");
        assert!(block_on(endless.get_mut().message()).expect("a number").is_some());
        let late = block_on(client.unary(FOREVER, within(brief))).expect_err("no permit is left");
        assert!(late.has_not_run() && late.code() == Code::DeadlineExceeded, "{late}");
        drop(endless);
        let nobody = server.name().address().to_owned() + "#1";
        let nobody = run(&serves, builder().wait_for_ready(true).connect_lazily(nobody));
        let nobody = Client::new(nobody.expect("a device"));
        let late = block_on(nobody.unary(FOREVER, within(brief))).expect_err("nobody is there");
        assert_eq!(late.code(), Code::DeadlineExceeded, "{late}");
        // Pauses between attempts are such waits, too.
        let nobody = server.name().address().to_owned() + "#2";
        let nobody = run(&serves, builder().connect_lazily(nobody)).expect("a device");
        let retries = ServiceBuilder::new().retry(Retries::new()).service(nobody);
        let gone = block_on(Client::new(retries).unary(ADD, (2, 3))).expect_err("nobody is there");
        assert_eq!(gone.code(), Code::Unavailable, "{gone}");
    }
}

// Its timer was that of the runtime that had ended, and panicked.
#[test]
fn a_stream_with_a_time_limit_is_read_where_the_runtime_of_its_call_has_ended() {
    for device in DEVICES {
        let [serves, made, calls, reads] = [runtime(), runtime(), runtime(), runtime()];
        let server = run(&serves, server(device));
        let client = run(&made, client(&server));
        let mut request = Request::new(());
        request.set_timeout(LONG);
        let endless = run(&calls, client.server_streaming(ENDLESS, request)).expect("it streams");
        let mut endless = endless.into_inner();
        drop(calls);
        for expected in 0..1000 {
            let number = match expected % 2 {
                0 => run(&reads, endless.message()),
                _ => block_on(endless.message()),
            };
            assert_eq!(number.expect("it goes on"), Some(expected));
        }
    }
}

// Both panicked with a message of Tokio's that named neither.
#[test]
fn outside_of_a_runtime_servers_and_channels_are_refused_with_an_error() {
    for device in DEVICES {
        let server = Server::builder().add_service(router()).open(device).now_or_never();
        let refused = server.expect("nothing is waited for").expect_err("there is no runtime");
        assert!(refused.to_string().contains("there is no Tokio runtime here"), "{refused}");
    }
    let channel = Channel::connect("udp:127.0.0.1:5000#7").now_or_never();
    let refused = channel.expect("nothing is waited for").expect_err("there is no runtime");
    assert!(refused.message().contains("there is no Tokio runtime here"), "{refused}");
}
