//! Tagged messages between endpoints, over shared memory and sockets.

use std::time::Duration;

use doorbell::messages::{Endpoint, Match, Peer, ReceiveError, SendError};
use tokio::time::timeout;

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(30);

async fn in_time<F: Future>(future: F) -> F::Output {
    timeout(LONG, future).await.expect("it ends in time")
}

/// Two endpoints, the first of which has connected to the other.
async fn pair(device: &str, window: usize) -> (Endpoint, Endpoint, Peer) {
    let open = || Endpoint::builder().window(window).open(device);
    let (near, far) = (open().await.expect("it opens"), open().await.expect("it opens"));
    let peer = near.connect(far.name()).await.expect("the other endpoint is there");
    (near, far, peer)
}

macro_rules! on_each_device {
    ($($test:ident),* $(,)?) => {
        mod over_shared_memory {
            $(#[tokio::test] async fn $test() { super::$test("shm").await; })*
        }
        mod over_sockets {
            $(#[tokio::test] async fn $test() { super::$test("udp:127.0.0.1:0").await; })*
        }
    };
}

async fn messages_are_received_by_what_they_match(device: &str) {
    let (_near, far, peer) = pair(device, 1 << 20).await;
    for bits in [3, 5, 4] {
        in_time(peer.send(bits, bits.to_string())).await.expect("it is sent");
    }
    let four = in_time(far.receive(Match::exactly(4))).await.expect("it was sent");
    assert_eq!((four.bits, &four.body[..]), (4, &b"4"[..]));
    let odd = far.receive(Match::bits(1).mask(1).from(&four.from));
    assert_eq!(in_time(odd).await.expect("it was sent").bits, 3);
    in_time(four.from.send(1, "back")).await.expect("it is sent");
    let any = in_time(far.receive(Match::any())).await.expect("it was sent");
    assert_eq!(any.bits, 5);
}

async fn receives_that_were_posted_first_get_the_first_messages(device: &str) {
    let (_near, far, peer) = pair(device, 1 << 20).await;
    let receives: Vec<_> = (0..100).map(|_| far.receive(Match::any())).collect();
    for bits in 0..100 {
        in_time(peer.send(bits, "")).await.expect("it is sent");
    }
    for (bits, receive) in (0..).zip(receives) {
        assert_eq!(in_time(receive).await.expect("it was sent").bits, bits);
    }
}

// The first messages take all of the window, and the program receives the last one first.
async fn a_message_behind_those_that_fill_the_window_is_received_first(device: &str) {
    let (_near, far, peer) = pair(device, 4096).await;
    let sends: Vec<_> = (0..1000).map(|bits| peer.send(bits, vec![7; 1000])).collect();
    for bits in (0..1000).rev() {
        let message = in_time(far.receive(Match::exactly(bits))).await.expect("it was sent");
        assert_eq!((message.bits, message.body.len()), (bits, 1000));
    }
    for send in sends {
        in_time(send).await.expect("it was received");
    }
}

async fn a_synchronous_send_is_done_when_its_message_is_received(device: &str) {
    let (_near, far, peer) = pair(device, 1 << 20).await;
    let mut send = peer.send_synchronously(7, "seven");
    in_time(peer.send(8, "behind")).await.expect("it is sent");
    in_time(far.receive(Match::exactly(8))).await.expect("it was sent");
    assert!(send.test().is_none(), "nobody has received it");
    in_time(far.receive(Match::exactly(7))).await.expect("it was sent");
    in_time(send).await.expect("it was received");
}

async fn a_message_longer_than_its_receive_is_an_error_with_both_lengths(device: &str) {
    let (_near, far, peer) = pair(device, 1 << 20).await;
    in_time(peer.send(7, "seven")).await.expect("it is sent");
    let truncated = in_time(far.receive_at_most(3, Match::any())).await.expect_err("it is longer");
    assert_eq!(truncated, ReceiveError::Truncated { bits: 7, len: 5, room: 3 });
    assert!(truncated.to_string().contains("3 bytes") && truncated.to_string().contains('5'));
}

async fn receives_that_are_cancelled_take_no_messages(device: &str) {
    let (_near, far, peer) = pair(device, 1 << 20).await;
    let mut cancelled = far.receive(Match::any());
    assert!(cancelled.cancel() && !cancelled.cancel());
    drop(far.receive(Match::any()));
    let last = far.receive(Match::any());
    in_time(peer.send(1, "one")).await.expect("it is sent");
    assert_eq!(in_time(last).await.expect("it was sent").bits, 1);
    assert_eq!(in_time(cancelled).await.expect_err("it is cancelled"), ReceiveError::Cancelled);
}

async fn a_message_that_waits_is_seen_by_a_probe(device: &str) {
    let (_near, far, peer) = pair(device, 1 << 20).await;
    assert!(far.probe(Match::any()).is_none());
    in_time(peer.send(5, "five")).await.expect("it is sent");
    in_time(peer.send(6, "behind")).await.expect("it is sent");
    in_time(far.receive(Match::exactly(6))).await.expect("it was sent");
    let probed = far.probe(Match::any()).expect("it has come before the other");
    assert_eq!((probed.bits, probed.len), (5, 4));
    assert_eq!(in_time(far.receive(Match::exactly(5))).await.expect("it was sent").body, "five");
    assert!(far.probe(Match::any()).is_none());
}

async fn what_waits_for_a_peer_that_has_gone_ends_with_an_error(device: &str) {
    let (near, far, peer) = pair(device, 4096).await;
    let receive = near.receive(Match::any().from(&peer));
    let sends: Vec<_> = (0..100).map(|bits| peer.send_synchronously(bits, vec![7; 1000])).collect();
    drop(far);
    let gone = in_time(receive).await.expect_err("the only sender has gone");
    assert!(matches!(gone, ReceiveError::PeerGone { .. }), "{gone}");
    for send in sends {
        let gone = in_time(send).await.expect_err("nobody has received it");
        assert!(matches!(gone, SendError::PeerGone { len: 1000, .. }), "{gone}");
    }
    let late = in_time(peer.send(1, "late")).await.expect_err("the peer has gone");
    assert!(matches!(late, SendError::PeerGone { len: 4, .. }), "{late}");
}

async fn many_tasks_send_and_receive_at_once(device: &str) {
    let (near, far, peer) = pair(device, 8192).await;
    let tasks = (0..8).map(|task| {
        let (far, peer) = (far.clone(), peer.clone());
        tokio::spawn(async move {
            for number in 0..500_u64 {
                let receive = far.receive(Match::exactly(task));
                peer.send(task, number.to_be_bytes().to_vec()).await.expect("it is sent");
                let message = in_time(receive).await.expect("it was sent");
                assert_eq!(message.body, number.to_be_bytes().to_vec());
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        in_time(task).await.expect("no panic");
    }
    drop(near);
}

on_each_device!(
    messages_are_received_by_what_they_match,
    receives_that_were_posted_first_get_the_first_messages,
    a_message_behind_those_that_fill_the_window_is_received_first,
    a_synchronous_send_is_done_when_its_message_is_received,
    a_message_longer_than_its_receive_is_an_error_with_both_lengths,
    receives_that_are_cancelled_take_no_messages,
    a_message_that_waits_is_seen_by_a_probe,
    what_waits_for_a_peer_that_has_gone_ends_with_an_error,
    many_tasks_send_and_receive_at_once,
);
