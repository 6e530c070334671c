//! Calls with bodies too long for messages while the connection for such bodies is being made, to a
//! server that the test plays.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use doorbell_am::{Endpoint, Handlers, ReplyId, RequestId};
use doorbell_rpc::{Channel, Client, Code, Method, Raw, Request};
use doorbell_verbs::{Config, Listener, ServiceId};

const HELLO: RequestId<[u64; 3]> = RequestId::new(0, "rpc hello");
const CALL: RequestId<[u64; 6]> = RequestId::new(1, "rpc call");
const WELCOME: ReplyId<[u64; 5]> = ReplyId::new(0, "rpc welcome");
const ANSWER: ReplyId<[u64; 2]> = ReplyId::new(1, "rpc answer");

/// The version that the server speaks.
const VERSION: u64 = 4;

/// The flags of an answer with the code `DataLoss`.
const DATA_LOSS: u64 = 15 << 16;

const ECHO: Method<Bytes, Bytes, Raw> = Method::new("echo");

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(20);

/// The numbers of calls, in the order in which they came.
type Numbers = Arc<Mutex<Vec<u64>>>;

/// A server that welcomes clients with one service after the other for their lines, the last of
/// them again and again, and answers each call with `DataLoss`.
async fn played(device: &str, lines: &'static [u64]) -> (Endpoint, Numbers) {
    let numbers = Numbers::default();
    let came = numbers.clone();
    let welcomed = Mutex::new(0);
    let handlers = Handlers::new()
        .request(HELLO, move |request, _| {
            let mut welcomed = welcomed.lock().expect("nobody panics");
            let line = lines[lines.len().min(*welcomed + 1) - 1];
            *welcomed += 1;
            request.reply(WELCOME, [VERSION, 1, 2, 64 << 20, line]);
        })
        .request(CALL, move |request, [_, call, ..]| {
            came.lock().expect("nobody panics").push(call);
            request.reply(ANSWER, [call, DATA_LOSS]);
        });
    let endpoint = Endpoint::open(device, handlers).await.expect("the device opens");
    (endpoint, numbers)
}

async fn listener(server: &Endpoint, service: u64) -> Listener {
    server.nic().listen(ServiceId(service)).await.expect("nobody listens there")
}

/// A client that waits for a line for as long as that takes.
async fn client(server: &Endpoint) -> Client<Channel> {
    let config = Config { connect_timeout: Duration::from_secs(600), ..Config::default() };
    let builder = Channel::builder().endpoint(|endpoint| endpoint.nic(config));
    Client::new(builder.connect(server.name()).await.expect("the server is there"))
}

fn long_body() -> Bytes {
    Bytes::from(vec![7; 100_000])
}

// The number was drawn before the line was made, and a server refused it as one of long ago.
async fn a_call_that_has_waited_for_a_line_has_a_later_number_than_those_before_it(device: &str) {
    let (server, numbers) = played(device, &[77]).await;
    let mut asks = listener(&server, 77).await;
    let client = client(&server).await;
    let long = client.clone();
    let long = tokio::spawn(async move { long.unary(ECHO, long_body()).await });
    let asked = asks.accept().await.expect("a request");
    for _ in 0..10 {
        let status = client.unary(ECHO, Bytes::new()).await.expect_err("it is answered so");
        assert_eq!(status.code(), Code::DataLoss);
    }
    let _line = asked.accept(&server.nic().domain()).await.expect("the client is there");
    let status = long.await.expect("no panic").expect_err("it is answered so");
    assert_eq!(status.code(), Code::DataLoss, "{status}");
    let numbers = numbers.lock().expect("nobody panics");
    assert!(numbers.len() == 11 && numbers.is_sorted(), "{numbers:?}");
}

// The wait for the line took as long as the NIC waits for connections.
async fn a_call_that_waits_for_a_line_ends_when_its_time_is_over(device: &str) {
    let (server, _) = played(device, &[77]).await;
    let mut asks = listener(&server, 77).await;
    let client = client(&server).await;
    let mut request = Request::new(long_body());
    request.set_timeout(Duration::from_millis(100));
    let (asked, outcome) = tokio::join!(asks.accept(), client.unary(ECHO, request));
    let asked = asked.expect("a request");
    let status = outcome.expect_err("there is no line");
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    drop(asked);
}

// The line was asked for again and again where nobody served it, and the server not asked where.
async fn a_call_whose_line_nobody_serves_asks_the_server_again(device: &str) {
    let (server, numbers) = played(device, &[76, 77]).await;
    let mut asks = listener(&server, 77).await;
    let client = client(&server).await;
    let lines = async {
        let asked = asks.accept().await.expect("a request");
        asked.accept(&server.nic().domain()).await.expect("the client is there")
    };
    let (_line, outcome) = tokio::join!(lines, client.unary(ECHO, long_body()));
    assert_eq!(outcome.expect_err("it is answered so").code(), Code::DataLoss);
    assert_eq!(numbers.lock().expect("nobody panics").len(), 1);
}

on_each_device!(
    a_call_that_has_waited_for_a_line_has_a_later_number_than_those_before_it,
    a_call_that_waits_for_a_line_ends_when_its_time_is_over,
    a_call_whose_line_nobody_serves_asks_the_server_again,
);
