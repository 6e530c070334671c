//! Bodies of all lengths, in messages and by RDMA, over shared memory and sockets.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::mixed::holds_nothing;
use bytes::Bytes;
use doorbell_rpc::{
    Channel, ChannelBuilder, Client, Code, Method, Raw, Request, Response, Router, Server,
    ServerBuilder, Status, Streaming,
};
use futures_util::StreamExt;
use futures_util::future::join_all;
use tokio::sync::Barrier;
use tokio::time::timeout;

const ECHO: Method<Bytes, Bytes, Raw> = Method::new("echo");
const MIRROR: Method<Bytes, Bytes, Raw> = Method::new("mirror");
const NONE: Method<(), ()> = Method::new("none");
const ZEROS: Method<u64, Vec<u8>> = Method::new("zeros");
const FOREVER: Method<Bytes, (), Raw2> = Method::new("forever");

/// Keeps its bytes, and never answers.
const HOLDS: Method<Bytes, (), Raw2> = Method::new("holds");

/// Bytes there, and nothing back.
enum Raw2 {}

impl doorbell_rpc::Codec<Bytes> for Raw2 {
    fn encode(value: &Bytes, into: &mut bytes::BytesMut) -> Result<(), doorbell_rpc::CodecError> {
        into.extend_from_slice(value);
        Ok(())
    }
    fn decode(bytes: Bytes) -> Result<Bytes, doorbell_rpc::CodecError> {
        Ok(bytes)
    }
}

impl doorbell_rpc::Codec<()> for Raw2 {
    fn encode(_: &(), _: &mut bytes::BytesMut) -> Result<(), doorbell_rpc::CodecError> {
        Ok(())
    }
    fn decode(_: Bytes) -> Result<(), doorbell_rpc::CodecError> {
        Ok(())
    }
}

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(60);

fn server() -> ServerBuilder {
    let router = Router::new()
        .unary(ECHO, |request| async move {
            let who = request.metadata().get("who").cloned();
            let mut response = Response::new(request.into_inner());
            if let Some(who) = who {
                response.metadata_mut().insert("told", who);
            }
            Ok(response)
        })
        .streaming(MIRROR, |request| async move { Ok(request.into_inner()) })
        .unary(NONE, |_| async { Ok(()) })
        .unary(ZEROS, |request| async move { Ok(vec![0; request.into_inner() as usize]) })
        .unary(HOLDS, |request| async move {
            let _held: Request<Bytes> = request;
            std::future::pending::<Result<(), Status>>().await
        })
        .unary(FOREVER, |_| async { std::future::pending::<Result<(), Status>>().await });
    Server::builder().add_service(
        router.unary(LENGTH_OF, |request| async move { Ok(request.into_inner().len() as u64) }),
    )
}

const LENGTH_OF: Method<Vec<u8>, u64> = Method::new("length of");

async fn pair(
    device: &str,
    server: ServerBuilder,
    channel: ChannelBuilder,
) -> (Server, Client<Channel>) {
    let (server, channel) = connected(device, server, channel).await;
    (server, Client::new(channel))
}

async fn connected(
    device: &str,
    server: ServerBuilder,
    channel: ChannelBuilder,
) -> (Server, Channel) {
    let server = server.open(device).await.expect("the device opens");
    let channel = channel.connect(server.name()).await.expect("the server is there");
    (server, channel)
}

/// Bytes that tell where they are.
fn pattern(len: usize) -> Bytes {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

async fn bodies_of_all_lengths_come_back_as_they_were(device: &str) {
    let (_server, client) = pair(device, server(), Channel::builder()).await;
    for len in [0, 1, 64, 4000, 4096, 4097, 5000, 65_536, 100_001, 3 << 20, (9 << 20) + 5] {
        let body = pattern(len);
        let echoed = client.unary(ECHO, body.clone()).await;
        assert!(echoed.expect("it is echoed").into_inner() == body, "{len} bytes");
        let mut request = Request::new(body.clone());
        request.metadata_mut().insert("who", "ann");
        let response = client.unary(ECHO, request).await.expect("it is echoed");
        assert_eq!(response.metadata().text("told"), Some("ann"));
        assert!(response.into_inner() == body, "{len} bytes with metadata");
    }
}

async fn bodies_longer_than_a_side_takes_are_refused_with_both_lengths(device: &str) {
    let channel = Channel::builder().longest_body(20_000);
    let (_server, client) = pair(device, server().longest_body(10_000), channel).await;
    let refused = client.unary(LENGTH_OF, vec![0; 10_001]).await.expect_err("it is too long");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("10000"), "{refused}");
    let refused = client.unary(ZEROS, 20_001).await.expect_err("it is too long");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("20000"), "{refused}");
    assert_eq!(client.unary(ZEROS, 15_000).await.expect("it fits").into_inner().len(), 15_000);
    client.unary(NONE, ()).await.expect("the connection is good");
}

async fn an_answer_that_is_too_long_for_its_client_is_kept_by_neither_side(device: &str) {
    let channel = Channel::builder().longest_body(20_000);
    let (running, channel) = connected(device, server(), channel).await;
    let client = Client::new(channel.clone());
    for _ in 0..20 {
        client.unary(ZEROS, 1 << 20).await.expect_err("it is too long");
    }
    holds_nothing(|| running.usage()).await;
    holds_nothing(|| channel.usage()).await;
}

async fn bodies_share_bounded_memory_and_wait_for_each_other(device: &str) {
    let server = server().body_memory(2 << 20);
    let (_server, client) = pair(device, server, Channel::builder().body_memory(2 << 20)).await;
    let bodies: Vec<_> = (0..12).map(|number| pattern(800_000 + number)).collect();
    let calls = bodies.iter().map(|body| {
        // The memory of the server goes back as soon as its handler drops the body.
        async {
            client.unary(ECHO, body.clone()).await.expect("it is echoed").into_inner() == *body
        }
    });
    assert!(join_all(calls).await.into_iter().all(|is_right| is_right));
}

async fn long_messages_of_many_streams_share_bounded_memory(device: &str) {
    let server = server().body_memory(2 << 20);
    let (running, client) = pair(device, server, Channel::builder().body_memory(2 << 20)).await;
    let bodies: Vec<_> = (0..12).map(|number| pattern(800_000 + number)).collect();
    let streams = bodies.iter().map(|body| {
        let (client, body) = (client.clone(), body.clone());
        async move {
            let sent = futures_util::stream::iter(vec![body.clone(); 3]);
            let mirrored = client.streaming(MIRROR, sent).await.expect("it streams");
            let came: Vec<_> = mirrored.into_inner().collect().await;
            came.len() == 3 && came.iter().all(|message| message.as_ref().ok() == Some(&body))
        }
    });
    let right = join_all(streams).await;
    assert!(right.iter().all(|&is_right| is_right), "{right:?}");
    running.close().await.expect("clients take their answers");
    assert_eq!(running.usage().body_memory, 0);
}

async fn calls_that_are_given_up_give_the_memory_of_their_bodies_back(device: &str) {
    let server = server().body_memory(1 << 20);
    let (running, client) = pair(device, server, Channel::builder()).await;
    for _ in 0..8 {
        let call = client.unary(FOREVER, pattern(1 << 20));
        timeout(Duration::from_millis(30), call).await.expect_err("it never ends");
    }
    // Each of them would hold all of the memory.
    let body = pattern(1 << 20);
    assert!(client.unary(ECHO, body.clone()).await.expect("there is memory").into_inner() == body);
    running.close().await.expect("clients take their answers");
}

/// Calls with ever more time, until the status of a call that is late is about `body_memory`: a
/// slow machine has other reasons at first.
async fn is_late_for_memory(client: &Client<Channel>, of: &str) {
    for time in (1..).map(|tries| Duration::from_millis(50 * tries)) {
        let mut request = Request::new(pattern(1 << 20));
        request.set_timeout(time);
        let late = client.unary(ECHO, request).await.expect_err("there is no memory");
        assert_eq!(late.code(), Code::DeadlineExceeded, "{late}");
        if late.message().contains(of) && late.message().contains("body_memory") {
            return;
        }
    }
}

async fn a_call_that_waits_for_memory_until_its_time_is_over_says_so(device: &str) {
    let small = server().body_memory(1 << 20);
    let (running, client) = pair(device, small, Channel::builder()).await;
    let holds = tokio::spawn({
        let client = client.clone();
        async move { client.unary(HOLDS, pattern(1 << 20)).await }
    });
    while running.usage().body_memory == 0 {
        tokio::task::yield_now().await;
    }
    is_late_for_memory(&client, "the request").await;
    holds.abort();

    let small = Channel::builder().body_memory(1 << 20);
    let (_server, channel) = connected(device, server(), small).await;
    let (unread, client) = (unread(&channel).await, Client::new(channel));
    is_late_for_memory(&client, "the response").await;
    drop(unread);
    client.unary(ECHO, pattern(1 << 20)).await.expect("there is memory again");
}

/// A stream whose only message, of one MiB, takes up memory of the client and is not read.
async fn unread(channel: &Channel) -> Streaming<Bytes> {
    let client = Client::new(channel.clone());
    let sent = futures_util::stream::iter([pattern(1 << 20)]);
    let unread = client.streaming(MIRROR, sent).await.expect("it streams").into_inner();
    while channel.usage().body_memory == 0 {
        tokio::task::yield_now().await;
    }
    unread
}

// Answers counted for as long as the program held them, so the calls waited for each other.
async fn answers_that_a_program_holds_keep_no_others_waiting(device: &str) {
    let channel = Channel::builder().body_memory(1 << 20);
    let (_server, channel) = connected(device, server(), channel).await;
    let client = Client::new(channel.clone());
    let answers = join_all((0..8).map(|_| client.unary(ECHO, pattern(1 << 20)))).await;
    assert!(
        answers
            .into_iter()
            .all(|answer| { answer.is_ok_and(|answer| answer.into_inner().len() == 1 << 20) })
    );
    assert_eq!(channel.usage().body_memory, 0);
}

const PATIENCE: Duration = Duration::from_millis(100);

async fn a_body_that_finds_no_memory_is_refused_with_what_has_it(device: &str) {
    let small = server().body_memory(1 << 20).patience_for_bodies(PATIENCE);
    let (running, client) = pair(device, small, Channel::builder()).await;
    let holds = tokio::spawn({
        let client = client.clone();
        async move { client.unary(HOLDS, pattern(1 << 20)).await }
    });
    while running.running() == 0 || running.usage().bodies > 0 {
        tokio::task::yield_now().await;
    }
    let refused = client.unary(ECHO, pattern(1 << 20)).await.expect_err("there is no memory");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(refused.has_not_run(), "{refused:?}");
    for part in ["1048576 bytes of the request", "handlers hold 1048576", "`body_memory`"] {
        assert!(refused.message().contains(part), "{refused}");
    }
    let stream = futures_util::stream::iter([pattern(1 << 20)]);
    let mut mirrored = client.streaming(MIRROR, stream).await.expect("it streams").into_inner();
    let refused = mirrored.message().await.expect_err("there is no memory for the message");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    holds.abort();
    while running.running() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    client.unary(ECHO, pattern(1 << 20)).await.expect("there is memory again");

    let small = Channel::builder().body_memory(1 << 20).patience_for_bodies(PATIENCE);
    let (_server, channel) = connected(device, server(), small).await;
    let (unread, client) = (unread(&channel).await, Client::new(channel));
    let refused = client.unary(ECHO, pattern(1 << 20)).await.expect_err("there is no memory");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(!refused.has_not_run(), "{refused:?}");
    assert!(refused.message().contains("1048576 are for messages of streams"), "{refused}");
    drop(unread);
    client.unary(ECHO, pattern(1 << 20)).await.expect("there is memory again");
}

/// Calls back the client of the same number with the same body, and answers when that is answered.
const CROSS: Method<Bytes, Bytes, Raw> = Method::new("cross");

async fn servers_that_wait_for_each_others_memory_are_refused_it(device: &str) {
    let meet = Arc::new(Barrier::new(2));
    let (mut servers, mut others) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let other = Arc::<OnceLock<Client<Channel>>>::default();
        let (calls, meet) = (Arc::clone(&other), meet.clone());
        let router = Router::new().unary(CROSS, move |request| {
            let (calls, meet) = (calls.clone(), meet.clone());
            async move {
                let held: Bytes = request.into_inner();
                meet.wait().await;
                calls.get().expect("it is set").unary(ECHO, held.clone()).await
            }
        });
        let small = server().add_service(router).body_memory(1 << 20);
        let small = small.patience_for_bodies(PATIENCE);
        servers.push(small.open(device).await.expect("the device opens"));
        others.push(other);
    }
    // The handler of each server calls the other.
    for (server, other) in servers.iter().rev().zip(&others) {
        let channel = Channel::connect(server.name()).await.expect("the server is there");
        assert!(other.set(Client::new(channel)).is_ok());
    }
    let crosses = others.iter().map(|other| {
        let client = other.get().expect("it is set");
        client.unary(CROSS, pattern(1 << 20))
    });
    let ends = join_all(crosses).await;
    let refused = ends.iter().filter_map(|end| end.as_ref().err());
    assert!(refused.clone().count() > 0, "one waits for the other");
    for refused in refused {
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    }
    for server in servers {
        server.close().await.expect("clients take their answers");
        assert_eq!(server.usage().body_memory, 0);
    }
}

on_each_device!(
    answers_that_a_program_holds_keep_no_others_waiting,
    a_body_that_finds_no_memory_is_refused_with_what_has_it,
    servers_that_wait_for_each_others_memory_are_refused_it,
    a_call_that_waits_for_memory_until_its_time_is_over_says_so,
    bodies_of_all_lengths_come_back_as_they_were,
    bodies_longer_than_a_side_takes_are_refused_with_both_lengths,
    an_answer_that_is_too_long_for_its_client_is_kept_by_neither_side,
    bodies_share_bounded_memory_and_wait_for_each_other,
    long_messages_of_many_streams_share_bounded_memory,
    calls_that_are_given_up_give_the_memory_of_their_bodies_back
);
