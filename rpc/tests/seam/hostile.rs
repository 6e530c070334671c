//! Peers that speak to a server as no client would: the server and its other clients go on.

use std::time::Duration;

use doorbell_am::{Endpoint, Handlers, Peer, ReplyId, RequestId};
use doorbell_rpc::{Channel, Client, Code, Method, Router, Server, Status, Streaming};
use doorbell_verbs::{Name, QueuePair, QueuePairConfig};
use tokio::time::timeout;

use crate::mixed::{COUNT, Company, ENDLESS, holds_nothing};

const HELLO: RequestId<[u64; 3]> = RequestId::new(0, "rpc hello");
const CALL: RequestId<[u64; 6]> = RequestId::new(1, "rpc call");
const CANCEL: RequestId<[u64; 2]> = RequestId::new(2, "rpc cancel");
const PIECE: RequestId<[u64; 3]> = RequestId::new(4, "rpc piece");
const GRANT: RequestId<[u64; 3]> = RequestId::new(5, "rpc grant");
const LEND: RequestId<[u64; 2]> = RequestId::new(6, "rpc lend");
const WRITTEN: RequestId<[u64; 3]> = RequestId::new(7, "rpc written");
const WELCOME: ReplyId<[u64; 5]> = ReplyId::new(0, "rpc welcome");
const ANSWER: ReplyId<[u64; 2]> = ReplyId::new(1, "rpc answer");

const ADD: Method<(u64, u64), u64> = Method::new("add");
const SUM: Method<u64, u64> = Method::new("sum");

/// The version that the server speaks.
const VERSION: u64 = 4;

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(60);

/// Numbers that look like chance, and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number that is often a small one, and sometimes one of `some`.
    fn word(&mut self, some: &[u64]) -> u64 {
        match self.next() % 4 {
            0 => self.next(),
            1 => self.next() % 8,
            _ => some[(self.next() % some.len() as u64) as usize],
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        let len = self.next() % 300;
        (0..len).map(|_| self.next() as u8).collect()
    }
}

fn router() -> Router {
    crate::mixed::router()
        .unary(ADD, |request| async move {
            let (a, b) = request.into_inner();
            Ok(a.wrapping_add(b))
        })
        .client_streaming(SUM, |request| async move {
            let mut numbers: Streaming<u64> = request.into_inner();
            let mut sum = 0_u64;
            while let Some(number) = numbers.message().await? {
                sum = sum.wrapping_add(number);
            }
            Ok(sum)
        })
}

/// A server, and a peer of it that is no client.
async fn server_and_stranger(device: &str) -> (Server, Endpoint, Peer) {
    let server = Server::builder().add_service(router()).most_running(4096);
    let server = server.longest_body(2 << 20).body_memory(8 << 20);
    let server = server.open(device).await.expect("the device opens");
    let own = if device == "shm" { "shm" } else { "udp:127.0.0.1:0" };
    let stranger = Endpoint::open(own, Handlers::new()).await.expect("the device opens");
    let peer = stranger.connect(server.name()).await.expect("the server is there");
    (server, stranger, peer)
}

/// A good client is answered.
async fn is_well(server: &Server) {
    let channel = Channel::connect(server.name()).await.expect("the server is there");
    let client = Client::new(channel);
    let sum = timeout(LONG, client.unary(ADD, (2, 3))).await.expect("in time");
    assert_eq!(sum.expect("it is answered").into_inner(), 5);
    let numbers = futures_util::stream::iter(0..100_u64);
    let sum = timeout(LONG, client.client_streaming(SUM, numbers)).await.expect("in time");
    assert_eq!(sum.expect("it is answered").into_inner(), 4950);
}

/// The number that stands for a path or a schema on the wire.
fn number_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

async fn words_and_payloads_without_sense_disturb_nobody(device: &str) {
    let (server, stranger, peer) = server_and_stranger(device).await;
    let peer = peer.within(Duration::from_secs(5));
    let welcome = peer.call(HELLO, [VERSION, 77, 0]).await.expect("it answers");
    let [version, session, ..] = welcome.arguments(WELCOME).expect("it is welcomed");
    assert_eq!(version, VERSION);
    let mut numbers = Numbers(0x5EED);
    let methods = ["add", "sum", "mixed/echo", "mixed/mirror", "mixed/forever"].map(number_of);
    let [add, sum, echo, mirror, forever] = methods;
    let known =
        [session, add, sum, echo, mirror, forever, 0, 1, 1 << 24, 1 << 26, 0xff << 24, u64::MAX];
    let company = Company::over(Channel::connect(server.name()).await.expect("it is there"), 0..8);
    for _ in 0..3000 {
        let words: [u64; 6] = std::array::from_fn(|_| numbers.word(&known));
        let [a, b, c, ..] = words;
        let payload = numbers.bytes();
        // What can't be sent any more was refused by the connection, which is as well.
        let _ = match numbers.next() % 7 {
            0 => peer.request_with(HELLO, [a, b, c], payload).await,
            1 => peer.request_with(CANCEL, [a, b], payload).await,
            2 => peer.request_with(PIECE, [a, b, c % 6], payload).await,
            3 => peer.request_with(GRANT, [a, b, c], payload).await,
            4 => peer.request_with(LEND, [a, b], payload).await,
            5 => peer.request_with(WRITTEN, [a, b, c], payload).await,
            _ => peer.request_with(CALL, words, payload).await,
        };
    }
    is_well(&server).await;
    assert!(server.sessions() <= 3000, "{} sessions", server.sessions());
    let channel = company.stop().await;
    drop((peer, stranger));
    holds_nothing(|| channel.usage()).await;
    holds_nothing(|| server.usage()).await;
}

// The handler that had begun first was forgotten, and ran for as long as the server.
async fn calls_that_are_sent_twice_end_with_their_connection(device: &str) {
    let (server, stranger, peer) = server_and_stranger(device).await;
    let welcome = peer.call(HELLO, [VERSION, 81, 0]).await.expect("it answers");
    let [version, session, ..] = welcome.arguments(WELCOME).expect("it is welcomed");
    assert_eq!(version, VERSION);
    for call in [0, 1, 0, 1, 0] {
        let head = [session, call, number_of("mixed/forever"), 0, 0, 0];
        peer.request(CALL, head).await.expect("it is sent");
    }
    while server.usage().calls != 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop((peer, stranger));
    holds_nothing(|| server.usage()).await;
}

// The word was lost that came before the handler had begun to wait.
async fn calls_that_are_given_up_at_once_are_stopped(device: &str) {
    let (server, _stranger, peer) = server_and_stranger(device).await;
    let welcome = peer.call(HELLO, [VERSION, 82, 0]).await.expect("it answers");
    let [version, session, ..] = welcome.arguments(WELCOME).expect("it is welcomed");
    assert_eq!(version, VERSION);
    for call in 0..40 {
        let head = [session, call, number_of("mixed/forever"), 0, 0, 0];
        peer.request(CALL, head).await.expect("it is sent");
        peer.request(CANCEL, [session, call]).await.expect("it is sent");
    }
    // The server has seen all of that before this.
    peer.call(HELLO, [VERSION, 82, session]).await.expect("it answers");
    holds_nothing(|| server.usage()).await;
}

async fn streams_that_nobody_reads_hold_up_no_other_client(device: &str) {
    let server = Server::builder().add_service(router()).open(device).await;
    let server = server.expect("the device opens");
    let slow = Channel::connect(server.name()).await.expect("the server is there");
    let client = Client::new(slow.clone());
    let mut unread = Vec::new();
    for number in 0..50 {
        let stream = match number % 2 {
            0 => client.server_streaming(ENDLESS, ()).await,
            _ => client.server_streaming(COUNT, u64::MAX).await,
        };
        unread.push(stream.expect("it streams").into_inner());
    }
    let mut company =
        Company::over(Channel::connect(server.name()).await.expect("it is there"), 0..8);
    company.more(500).await;
    assert_eq!(slow.usage().streams, 50);
    assert_eq!(unread[0].message().await.expect("it goes on"), Some(0));
    let channel = company.stop().await;
    drop(unread);
    for channel in [&channel, &slow] {
        holds_nothing(|| channel.usage()).await;
    }
    holds_nothing(|| server.usage()).await;
}

// What was written into memory that had been taken back ended the connection for all long bodies.
async fn a_long_body_that_is_given_up_disturbs_no_other(device: &str) {
    let server = Server::builder().add_service(router()).open(device).await;
    let server = server.expect("the device opens");
    let channel = Channel::connect(server.name()).await.expect("the server is there");
    let client = Client::new(channel.clone());
    let body = bytes::Bytes::from(vec![7; 2 << 20]);
    let echo = || client.unary(crate::mixed::ECHO, body.clone());
    echo().await.expect("it echoes");
    for step in 0..40 {
        let kept = async {
            let echoed = echo().await.expect("it echoes").into_inner();
            assert!(echoed == body, "another body came back");
        };
        let given_up = timeout(Duration::from_micros(100 * step), echo());
        let _ = tokio::join!(kept, given_up);
    }
    holds_nothing(|| server.usage()).await;
    holds_nothing(|| channel.usage()).await;
}

async fn a_stream_beyond_its_window_ends_and_its_call_fails(device: &str) {
    let (server, _stranger, peer) = server_and_stranger(device).await;
    let welcome = peer.call(HELLO, [VERSION, 78, 0]).await.expect("it answers");
    let [version, session, ..] = welcome.arguments(WELCOME).expect("it is welcomed");
    assert_eq!(version, VERSION);
    // Flags: the body is a stream.
    let streams = 1 << 24;
    let head = [session, 0, number_of("sum"), 0, 0, streams];
    let accepted = peer.call_with(CALL, head, []).await.expect("it answers");
    let [call, flags] = accepted.arguments(ANSWER).expect("it is an answer");
    assert_eq!((call, flags >> 25 & 1), (0, 1), "the call was accepted");
    for _ in 0..400 {
        peer.request_with(PIECE, [session, 0, 0], [0; 1000]).await.expect("it is sent");
    }
    is_well(&server).await;
}

async fn bodies_that_are_promised_and_never_sent_hold_up_no_others(device: &str) {
    let (server, _stranger, peer) = server_and_stranger(device).await;
    let welcome = peer.call(HELLO, [VERSION, 79, 0]).await.expect("it answers");
    let [version, session, ..] = welcome.arguments(WELCOME).expect("it is welcomed");
    assert_eq!(version, VERSION);
    let long = 1_u64 << 26;
    for call in 0..20 {
        let head = [session, call, number_of("add"), 0, 0, long];
        peer.request_with(CALL, head, (1_u64 << 19).to_be_bytes()).await.expect("it is sent");
    }
    // A length beyond all bounds is refused at once.
    let head = [session, 20, number_of("add"), 0, 0, long];
    let refused = peer.call_with(CALL, head, u64::MAX.to_be_bytes()).await.expect("it answers");
    let [_, flags] = refused.arguments(ANSWER).expect("it is an answer");
    assert_eq!(flags >> 16 & 0xff, 8, "ResourceExhausted");
    is_well(&server).await;
}

/// A line for long bodies, from an endpoint to a server of its choice.
async fn line(stranger: &Endpoint, server: &Server, service: u64, session: u64) -> QueuePair {
    let pair = stranger.nic().domain().queue_pair(&QueuePairConfig::default()).expect("room");
    let address = server.name().address();
    let connected = pair.connect(Name::at(address, service), &session.to_be_bytes()).await;
    connected.expect("the server takes lines").0
}

/// Waits until so many bytes of a server's memory for what is long are taken.
async fn comes_to_hold(server: &Server, bytes: usize) {
    let holds = async {
        while server.usage().body_memory != bytes {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let held = timeout(LONG, holds).await;
    assert!(held.is_ok(), "{:?} are held, and not {bytes} bytes", server.usage());
}

/// A good client's long body is echoed.
async fn is_well_with_long_bodies(server: &Server) {
    let client = Client::new(Channel::connect(server.name()).await.expect("it is there"));
    let body = bytes::Bytes::from(vec![7; 1 << 20]);
    let echoed =
        timeout(LONG, client.unary(crate::mixed::ECHO, body.clone())).await.expect("in time");
    assert!(echoed.expect("it echoes").into_inner() == body, "another body came back");
}

// One client was lent all of the memory, and the bodies of all others waited for it.
async fn a_client_that_writes_into_none_of_its_memory_leaves_some_for_others(device: &str) {
    let (server, stranger, peer) = server_and_stranger(device).await;
    let welcome = peer.call(HELLO, [VERSION, 83, 0]).await.expect("it answers");
    let [_, session, _, _, lines] = welcome.arguments(WELCOME).expect("it is welcomed");
    let _line = line(&stranger, &server, lines, session).await;
    let long = 1_u64 << 26;
    for call in 0..20 {
        let head = [session, call, number_of("add"), 0, 0, long];
        peer.request_with(CALL, head, (1_u64 << 19).to_be_bytes()).await.expect("it is sent");
    }
    comes_to_hold(&server, 4 << 20).await;
    is_well_with_long_bodies(&server).await;
    comes_to_hold(&server, 4 << 20).await;
    drop((peer, stranger));
    holds_nothing(|| server.usage()).await;
}

// Each stream took memory for a message of its own, beyond the memory for bodies.
async fn a_client_that_ends_none_of_its_long_messages_has_bounded_memory(device: &str) {
    let (server, stranger, peer) = server_and_stranger(device).await;
    let welcome = peer.call(HELLO, [VERSION, 84, 0]).await.expect("it answers");
    let [_, session, ..] = welcome.arguments(WELCOME).expect("it is welcomed");
    let (streams, more) = (1 << 24, 1 | 1 << 20 << 8);
    for call in 0..20 {
        let head = [session, call, number_of("sum"), 0, 0, streams];
        peer.call_with(CALL, head, []).await.expect("it answers");
        peer.request_with(PIECE, [session, call, more], [0; 1000]).await.expect("it is sent");
    }
    comes_to_hold(&server, 4 << 20).await;
    is_well_with_long_bodies(&server).await;
    comes_to_hold(&server, 4 << 20).await;
    drop((peer, stranger));
    holds_nothing(|| server.usage()).await;
}

async fn another_version_is_told_the_servers_own(device: &str) {
    let (server, _stranger, peer) = server_and_stranger(device).await;
    let welcome = peer.call(HELLO, [99, 80, 0]).await.expect("it answers");
    let [version, session, ..] = welcome.arguments(WELCOME).expect("it is welcomed");
    assert_eq!((version, session), (VERSION, 0));
    is_well(&server).await;
}

// Each greeting opened a session, until there was none left for other clients.
async fn a_connection_has_one_session_however_often_it_asks_for_one(device: &str) {
    let server = Server::builder().add_service(router()).sessions(4, Duration::from_secs(60));
    let server = server.open(device).await.expect("the device opens");
    let own = if device == "shm" { "shm" } else { "udp:127.0.0.1:0" };
    let stranger = Endpoint::open(own, Handlers::new()).await.expect("the device opens");
    let peer = stranger.connect(server.name()).await.expect("the server is there");
    for client in 0..20 {
        peer.call(HELLO, [VERSION, client, 0]).await.expect("it answers");
    }
    assert_eq!(server.sessions(), 1);
    is_well(&server).await;
}

async fn an_endpoint_that_is_no_server_is_told_from_one(device: &str) {
    let other = Endpoint::open(device, Handlers::new()).await.expect("the device opens");
    let refused: Status = Channel::connect(other.name()).await.expect_err("it is no server");
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("no RPC server"), "{refused}");
}

on_each_device!(
    words_and_payloads_without_sense_disturb_nobody,
    a_stream_beyond_its_window_ends_and_its_call_fails,
    bodies_that_are_promised_and_never_sent_hold_up_no_others,
    calls_that_are_sent_twice_end_with_their_connection,
    calls_that_are_given_up_at_once_are_stopped,
    streams_that_nobody_reads_hold_up_no_other_client,
    a_long_body_that_is_given_up_disturbs_no_other,
    a_client_that_writes_into_none_of_its_memory_leaves_some_for_others,
    a_client_that_ends_none_of_its_long_messages_has_bounded_memory,
    another_version_is_told_the_servers_own,
    a_connection_has_one_session_however_often_it_asks_for_one,
    an_endpoint_that_is_no_server_is_told_from_one
);
