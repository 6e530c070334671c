//! Messages that are longer than a packet: sent in parts, or pulled by their receivers.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use doorbell_messages::{Endpoint, Match, Peer, ReceiveError, SendError, wait_any};
use tokio::time::timeout;

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(30);

async fn in_time<F: Future>(future: F) -> F::Output {
    timeout(LONG, future).await.expect("it ends in time")
}

/// Two endpoints, the first of which has connected to the other; and each as a peer of the other.
async fn pair(device: &str) -> ([Endpoint; 2], [Peer; 2]) {
    let open = || Endpoint::builder().block(10_000).open(device);
    let ends = [open().await.expect("it opens"), open().await.expect("it opens")];
    let [near, far] = &ends;
    let there = near.connect(far.name()).await.expect("the other endpoint is there");
    let back = far.connect(near.name()).await.expect("the other endpoint is there");
    (ends, [there, back])
}

/// Bytes that differ from place to place.
fn pattern(len: usize) -> Bytes {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect::<Vec<_>>().into()
}

macro_rules! on_each_device {
    ($($test:ident),* $(,)?) => {
        mod over_shared_memory {
            $(#[tokio::test] async fn $test() { super::$test("shm").await; })*
        }
        mod over_sockets {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() { super::$test("udp:127.0.0.1:0").await; })*
        }
    };
}

async fn messages_of_all_lengths_arrive_whole_in_both_directions(device: &str) {
    let (ends, peers) = pair(device).await;
    let lengths = [0, 1, 7, 8, 4095, 4096, 4097, 8192, 32 << 10, (32 << 10) + 1, 100_003, 3 << 20];
    for (receiver, sender) in [(&ends[1], &peers[0]), (&ends[0], &peers[1])] {
        for len in lengths {
            for offset in [0, 3] {
                let body = pattern(len + offset).slice(offset..);
                let receive = receiver.receive(Match::exactly(len as u64));
                let sent = sender.send(len as u64, body.clone());
                let message = in_time(receive).await.expect("it was sent");
                assert_eq!((message.bits, message.body.len()), (len as u64, len));
                assert!(message.body == body, "{len} bytes from {offset} on arrive as others");
                in_time(sent).await.expect("it was received");
            }
        }
    }
}

async fn long_and_short_messages_keep_their_order(device: &str) {
    let (ends, peers) = pair(device).await;
    let lengths = [100_000, 1, 20_000, 500_000, 0, 5_000];
    let sends = lengths.map(|len| peers[0].send(7, pattern(len)));
    for len in lengths {
        let message = in_time(ends[1].receive(Match::exactly(7))).await.expect("it was sent");
        assert!(message.body == pattern(len), "{len} bytes come in their turn");
    }
    for send in sends {
        in_time(send).await.expect("it was received");
    }
}

async fn a_long_message_is_done_when_its_receiver_has_pulled_it(device: &str) {
    let (ends, peers) = pair(device).await;
    let mut send = peers[0].send(1, pattern(100_000));
    in_time(peers[0].send(2, "behind")).await.expect("it is sent");
    in_time(ends[1].receive(Match::exactly(2))).await.expect("it was sent");
    assert_eq!(ends[1].probe(Match::any()).expect("it has come").len, 100_000);
    assert!(send.test().is_none(), "nobody has pulled it");
    in_time(ends[1].receive(Match::exactly(1))).await.expect("it was sent");
    in_time(send).await.expect("it was pulled");
}

async fn a_long_message_without_room_is_an_error_and_done_at_its_sender(device: &str) {
    let (ends, peers) = pair(device).await;
    let send = peers[0].send(1, pattern(100_000));
    let truncated = in_time(ends[1].receive_at_most(99_999, Match::any())).await;
    let expected = ReceiveError::Truncated { bits: 1, len: 100_000, room: 99_999 };
    assert_eq!(truncated.expect_err("there is no room"), expected);
    in_time(send).await.expect("a receive has taken it");
}

async fn pieces_are_gathered_and_scattered(device: &str) {
    let (ends, peers) = pair(device).await;
    for len in [10, 10_000, 100_000] {
        let whole = pattern(30 * len);
        let gathered: Vec<_> = (0..30).map(|at| whole.slice(at * len..(at + 1) * len)).collect();
        let mut filled = BytesMut::from(&b"before"[..]);
        filled.reserve(len);
        let room = filled.capacity() - filled.len();
        let pieces = [filled, BytesMut::with_capacity(30 * len)];
        let receive = ends[1].receive_into(pieces, Match::any());
        let sent = peers[0].send(3, gathered);
        let message = in_time(receive).await.expect("it was sent");
        let [first, second] = &message.into;
        assert!(first[..] == [&b"before"[..], &whole[..room]].concat()[..]);
        assert!(second[..] == whole[room..]);
        in_time(sent).await.expect("it was received");
    }
}

async fn any_of_several_requests_is_waited_for(device: &str) {
    let (ends, peers) = pair(device).await;
    let mut receives: Vec<_> = (0..10).map(|bits| ends[1].receive(Match::exactly(bits))).collect();
    for bits in [7, 3, 9] {
        in_time(peers[0].send(bits, "")).await.expect("it is sent");
        let (place, message) = in_time(wait_any(&mut receives)).await.expect("some wait");
        assert_eq!((place as u64, message.expect("it was sent").bits), (bits, bits));
    }
    let mut over = [peers[0].send(0, ""), peers[0].send(1, "")];
    for _ in 0..2 {
        in_time(wait_any(&mut over)).await.expect("two wait").1.expect("it was sent");
    }
    assert!(in_time(wait_any(&mut over)).await.is_none());
}

async fn a_send_that_is_held_can_be_cancelled(device: &str) {
    let open = || Endpoint::builder().window(4096).open(device);
    let (near, far) = (open().await.expect("it opens"), open().await.expect("it opens"));
    let peer = near.connect(far.name()).await.expect("the other endpoint is there");
    let mut sends: Vec<_> = (0..6).map(|bits| peer.send(bits, pattern(1000))).collect();
    assert!(!sends[0].cancel(), "it has left");
    assert!(sends[5].cancel() && sends[4].cancel() && !sends[4].cancel());
    for bits in 0..4 {
        assert_eq!(in_time(far.receive(Match::any())).await.expect("it was sent").bits, bits);
    }
    let cancelled = in_time(sends.pop().expect("there are six")).await;
    assert_eq!(cancelled.expect_err("it was cancelled"), SendError::Cancelled);
    in_time(peer.send(9, "last")).await.expect("it is sent");
    assert_eq!(in_time(far.receive(Match::any())).await.expect("it was sent").bits, 9);
}

// The window is full, so the message is held, and a probe must see it all the same.
async fn a_message_that_is_held_is_probed_and_received(device: &str) {
    let open = || Endpoint::builder().window(4096).open(device);
    let (near, far) = (open().await.expect("it opens"), open().await.expect("it opens"));
    let peer = near.connect(far.name()).await.expect("the other endpoint is there");
    let sends: Vec<_> =
        (0..20).map(|bits| peer.send(bits, pattern(1000 + bits as usize))).collect();
    let seen = async {
        loop {
            if let Some(probed) = far.probe(Match::exactly(17)) {
                return probed;
            }
            tokio::task::yield_now().await;
        }
    };
    let seen = in_time(seen).await;
    assert_eq!((seen.bits, seen.len), (17, 1017));
    let message = in_time(far.receive(Match::exactly(17).from(&seen.from))).await;
    assert_eq!(message.expect("it was sent").body.len(), 1017);
    for bits in (0..20).filter(|&bits| bits != 17) {
        assert_eq!(in_time(far.receive(Match::any())).await.expect("it was sent").bits, bits);
    }
    for send in sends {
        in_time(send).await.expect("it was received");
    }
    assert!(far.probe(Match::any()).is_none());
}

async fn both_sides_may_connect_at_once(device: &str) {
    let open = || Endpoint::open(device);
    let (near, far) = (open().await.expect("it opens"), open().await.expect("it opens"));
    let (there, back) = tokio::join!(near.connect(far.name()), far.connect(near.name()));
    let (there, back) = (there.expect("it is there"), back.expect("it is there"));
    for len in [10, 100_000] {
        let (ping, sent) = (far.receive(Match::any().from(&back)), there.send(1, pattern(len)));
        assert!(in_time(ping).await.expect("it was sent").body == pattern(len));
        let (pong, back) = (near.receive(Match::any().from(&there)), back.send(2, pattern(len)));
        assert!(in_time(pong).await.expect("it was sent").body == pattern(len));
        in_time(sent).await.expect("it was received");
        in_time(back).await.expect("it was received");
    }
}

/// Two endpoints whose names stay the same whenever they are opened, so that connections which are
/// there are not found by a name.
async fn named(device: &str) -> [Endpoint; 2] {
    let open = |service| Endpoint::builder().endpoint(move |below| below.service(service));
    let ends = [open(71).open(device).await, open(72).open(device).await];
    ends.map(|end| end.expect("it opens"))
}

/// Messages go both ways between two peers, each of which is the one that the other sends to.
async fn talk([near, far]: &[Endpoint; 2], there: &Peer, back: &Peer) {
    for len in [10, 100_000] {
        let (ping, sent) = (far.receive(Match::any().from(back)), there.send(1, pattern(len)));
        let ping = in_time(ping).await.expect("it was sent");
        assert!(ping.body == pattern(len) && ping.from == *back);
        let (pong, back) = (near.receive(Match::any().from(there)), back.send(2, pattern(len)));
        assert!(in_time(pong).await.expect("it was sent").body == pattern(len));
        in_time(sent).await.expect("it was received");
        in_time(back).await.expect("it was received");
    }
}

async fn endpoints_that_connect_to_each_other_at_once_have_one_peer_each(device: &str) {
    for _ in 0..20 {
        let ends = named(device).await;
        let [near, far] = &ends;
        let (there, back) = tokio::join!(near.connect(far.name()), far.connect(near.name()));
        let (there, back) = (there.expect("it is there"), back.expect("it is there"));
        in_time(talk(&ends, &there, &back)).await;
    }
}

async fn an_endpoint_that_is_connected_to_later_is_the_peer_that_has_connected(device: &str) {
    let ends = named(device).await;
    let [near, far] = &ends;
    let there = near.connect(far.name()).await.expect("it is there");
    in_time(there.send(3, "hello")).await.expect("it is sent");
    let hello = in_time(far.receive(Match::any())).await.expect("it was sent");
    let back = far.connect(near.name()).await.expect("it is there");
    assert_eq!(hello.from, back);
    in_time(talk(&ends, &there, &back)).await;
    let again = near.connect(far.name()).await.expect("it is there");
    assert_eq!(again, there);
}

async fn an_endpoint_connects_to_itself(device: &str) {
    for service in [None, Some(73)] {
        let builder = Endpoint::builder();
        let builder = match service {
            None => builder,
            Some(service) => builder.endpoint(|below| below.service(service)),
        };
        let own = builder.open(device).await.expect("it opens");
        let peer = in_time(own.connect(own.name())).await.expect("it is there");
        for len in [10, 100_000] {
            let (received, sent) =
                tokio::join!(own.receive(Match::any().from(&peer)), peer.send(1, pattern(len)));
            assert!(received.expect("it was sent").body == pattern(len));
            sent.expect("it was received");
        }
    }
}

on_each_device!(
    messages_of_all_lengths_arrive_whole_in_both_directions,
    long_and_short_messages_keep_their_order,
    a_long_message_is_done_when_its_receiver_has_pulled_it,
    a_long_message_without_room_is_an_error_and_done_at_its_sender,
    pieces_are_gathered_and_scattered,
    any_of_several_requests_is_waited_for,
    a_send_that_is_held_can_be_cancelled,
    a_message_that_is_held_is_probed_and_received,
    both_sides_may_connect_at_once,
    endpoints_that_connect_to_each_other_at_once_have_one_peer_each,
    an_endpoint_that_is_connected_to_later_is_the_peer_that_has_connected,
    an_endpoint_connects_to_itself,
);
