//! Peers that send what no endpoint of streams would: others go on, and all is counted.

use std::time::Duration;

use doorbell_am::{self as am, Handlers, ReplyId, RequestId};
use doorbell_messages::streams::{
    ConnectError, Endpoint, EndpointBuilder, HandlerError, Incoming, StreamId,
};

use crate::streams::common::{Ends, Numbers, run, until};

const HELLO: RequestId<[u64; 2]> = RequestId::new(0, "streams hello");
const BEGIN: RequestId<[u64; 2]> = RequestId::new(1, "streams begin");
const PIECE: RequestId<u64> = RequestId::new(2, "streams piece");
const TAKEN: RequestId<[u64; 2]> = RequestId::new(3, "streams taken");
const DONE: RequestId<u64> = RequestId::new(4, "streams done");
const FAILED: RequestId<[u64; 2]> = RequestId::new(5, "streams failed");
const WELCOME: ReplyId<[u64; 2]> = ReplyId::new(0, "streams welcome");

const WELL: StreamId = StreamId::new("well");
const STOPS: StreamId = StreamId::new("stops");

/// The bits of a packet's word beside its slot.
const ENDS: u64 = 1 << 8;
const ABANDONS: u64 = 1 << 9;

const WINDOW: usize = 32 << 10;
const MESSAGES: usize = 4;

/// The number that stands for a stream on the wire.
fn number_of(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn server() -> EndpointBuilder {
    async fn takes_all(mut message: Incoming) -> Result<(), HandlerError> {
        while message.receive_some().await?.is_some() {}
        Ok(())
    }
    Endpoint::builder()
        .window(WINDOW)
        .messages(MESSAGES)
        .handler(WELL, takes_all)
        .handler(STOPS, |_message| std::future::pending())
}

/// A peer of a server that is no endpoint of streams.
async fn stranger(server: &Endpoint, device: &str) -> (am::Endpoint, am::Peer) {
    let stranger = am::Endpoint::open(device, Handlers::new()).await.expect("the device opens");
    let peer = stranger.connect(server.name()).await.expect("the server is there");
    let welcome = peer.call(HELLO, [1, 1 << 28 | 8]).await.expect("it answers");
    let [version, limits] = welcome.arguments(WELCOME).expect("it is welcomed");
    assert_eq!((version, limits), (1, (WINDOW as u64) << 8 | MESSAGES as u64));
    (stranger, peer)
}

/// A good peer's messages are received.
async fn is_well(peer: &doorbell_messages::streams::Peer) {
    for _ in 0..20 {
        let mut message = peer.begin(WELL).await.expect("the peer is there");
        message.send_bytes(vec![7; 50_000]).await.expect("it is taken");
        message.end_handled().await.expect("it is received");
    }
}

async fn words_and_payloads_without_sense_disturb_nobody(ends: Ends) {
    let (server, _client, good) = ends.pair(server()).await;
    let (stranger, peer) = stranger(&server, &ends.devices[1]).await;
    let peer = peer.within(Duration::from_secs(5));
    let mut numbers = Numbers::new(0x5EED);
    let known = [number_of("well"), number_of("stops"), ENDS, ABANDONS, ENDS | ABANDONS, 63, 64];
    for _ in 0..3000 {
        let mut word = || match numbers.below(4) {
            0 => numbers.next(),
            1 => known[numbers.below(known.len())] | (numbers.next() % 4),
            _ => numbers.next() % 8,
        };
        let (a, b) = (word(), word());
        let payload = vec![7; numbers.len().min(4096)];
        // What can't be sent any more was refused by the connection, which is as well.
        let _ = match numbers.below(7) {
            0 => peer.request_with(HELLO, [a, b], payload).await,
            1 | 2 => peer.request_with(BEGIN, [a, b], payload).await,
            3 => peer.request_with(PIECE, a, payload).await,
            4 => peer.request_with(TAKEN, [a, b], payload).await,
            5 => peer.request_with(DONE, a, payload).await,
            _ => peer.request_with(FAILED, [a, b], payload).await,
        };
        let held = server.statistics().held;
        assert!(held <= (MESSAGES + MESSAGES) * WINDOW, "{held} bytes are held");
    }
    is_well(&good).await;
    assert!(server.statistics().rejected > 100, "{:?}", server.statistics());
    drop((peer, stranger));
    until(|| server.statistics().held == 0).await;
    is_well(&good).await;
}

async fn each_breach_of_the_rules_is_counted(ends: Ends) {
    let (server, _client, good) = ends.pair(server()).await;
    let (_stranger, peer) = stranger(&server, &ends.devices[1]).await;
    let well = number_of("well");
    let stops = number_of("stops");
    let mut rejected = 0;
    let mut breaks = async |what: &str, sent: Result<(), am::SendError>| {
        sent.expect("it is sent");
        rejected += 1;
        let expected = rejected;
        until(|| server.statistics().rejected >= expected).await;
        assert_eq!(server.statistics().rejected, expected, "{what}");
    };
    breaks("a piece of no message", peer.request_with(PIECE, 0, "piece").await).await;
    breaks("a slot beyond the last", peer.request(BEGIN, [MESSAGES as u64, well]).await).await;
    breaks("a word that is no packet", peer.request(BEGIN, [1 << 40, well]).await).await;
    breaks("an end that is an abandonment", {
        peer.request(BEGIN, [1, stops]).await.expect("it is sent");
        peer.request(PIECE, 1 | ENDS | ABANDONS).await
    })
    .await;
    peer.request_with(BEGIN, [2, stops], "begins").await.expect("it is sent");
    breaks("a slot that is taken", peer.request(BEGIN, [2, well]).await).await;
    peer.request_with(BEGIN, [3 | ENDS, stops], "ends").await.expect("it is sent");
    breaks("a piece after the end", peer.request_with(PIECE, 3, "more").await).await;
    breaks("room in no message", peer.request(TAKEN, [0, 100]).await).await;
    breaks("room in no slot", peer.request(TAKEN, [u64::MAX, 100]).await).await;
    breaks("an end of no message", peer.request(DONE, u64::MAX).await).await;
    breaks("a failure of no message", peer.request_with(FAILED, [0, 2], "why").await).await;
    breaks("a failure without a reason", peer.request_with(FAILED, [0, 99], "why").await).await;
    is_well(&good).await;
}

async fn bytes_beyond_the_window_end_the_message_and_are_not_held(ends: Ends) {
    let (server, _client, good) = ends.pair(server()).await;
    let (_stranger, peer) = stranger(&server, &ends.devices[1]).await;
    peer.request(BEGIN, [0, number_of("stops")]).await.expect("it is sent");
    for _ in 0..100 {
        peer.request_with(PIECE, 0, [7; 1000]).await.expect("it is sent");
    }
    until(|| server.statistics().rejected > 0).await;
    assert!(server.statistics().held <= WINDOW, "{:?}", server.statistics());
    assert_eq!(server.statistics().failed, 1);
    is_well(&good).await;
}

async fn an_endpoint_that_is_none_of_streams_is_told_from_one(ends: Ends) {
    let other = am::Endpoint::open(&ends.devices[0], Handlers::new()).await;
    let other = other.expect("the device opens");
    let client = Endpoint::open(&ends.devices[1]).await.expect("the device opens");
    let refused = client.connect(other.name()).await.expect_err("it is none of streams");
    assert!(matches!(refused, ConnectError::Unwelcome { .. }), "{refused}");
}

macro_rules! on_each_device {
    ($($test:ident)+) => {
        mod shm {
            $(#[test] fn $test() { super::run(1, || super::$test(super::Ends::shm())) })+
        }
        mod udp {
            $(#[test] fn $test() { super::run(2, || super::$test(super::Ends::udp())) })+
        }
    };
}

on_each_device! {
    words_and_payloads_without_sense_disturb_nobody
    each_breach_of_the_rules_is_counted
    bytes_beyond_the_window_end_the_message_and_are_not_held
    an_endpoint_that_is_none_of_streams_is_told_from_one
}
