//! Pieces of messages, on both sides.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use doorbell_messages::streams::{Endpoint, HandlerError, Incoming, ReceiveError, StreamId};
use futures_util::FutureExt;
use tokio::sync::mpsc::unbounded_channel;

use crate::streams::common::{Ends, Numbers, body};

pub const ANY: StreamId = StreamId::new("any");
const BACK: StreamId = StreamId::new("back");

/// Receives a message of a number, in pieces of chance, and compares it with what was sent.
pub async fn receives(mut message: Incoming) -> Result<(), HandlerError> {
    let mut head = [0; 16];
    message.receive_into(&mut head).await?;
    let [number, len] = [&head[..8], &head[8..]].map(|half| half.try_into().expect("8 bytes"));
    let (number, len) = (u64::from_be_bytes(number), u64::from_be_bytes(len) as usize);
    let (mut numbers, expected, mut at) = (Numbers::new(number ^ 0xabc), body(number, len), 0);
    while at < len {
        let count = numbers.len().min(len - at);
        let same = match numbers.below(3) {
            0 => {
                let mut place = vec![0; count];
                message.receive_into(&mut place).await?;
                place == expected[at..at + count]
            }
            1 => message.receive(count).await? == expected[at..at + count],
            _ => {
                let some = message.receive_some().await?.ok_or("the message ends too soon")?;
                let same = expected[at..].starts_with(&some);
                at += some.len();
                assert!(same, "message {number} differs before byte {at}");
                continue;
            }
        };
        at += count;
        assert!(same, "message {number} differs before byte {at}");
    }
    match message.receive_some().await? {
        None => Ok(()),
        Some(more) => Err(format!("message {number} has {} bytes more", more.len()).into()),
    }
}

/// Sends the message of a number in pieces of chance.
pub async fn sends(peer: &doorbell_messages::streams::Peer, number: u64) {
    let mut numbers = Numbers::new(number);
    let len = [0, 1, numbers.len(), 4000 + numbers.below(300), numbers.below(300_000)];
    let len = len[numbers.below(len.len())];
    let mut rest = body(number, len);
    let mut message = peer.begin(ANY).await.expect("the peer is there");
    message.send(number.to_be_bytes()).await.expect("it is taken");
    message.send((len as u64).to_be_bytes()).await.expect("it is taken");
    while !rest.is_empty() {
        let piece = rest.split_to(numbers.len().min(rest.len()));
        match numbers.below(4) {
            0 => message.send_bytes(piece).await.expect("it is taken"),
            1 => {
                message.send(piece).await.expect("it is taken");
                message.flush().await.expect("it is taken");
            }
            _ => message.send(piece).await.expect("it is taken"),
        }
    }
    message.end_handled().await.expect("the handler finds what it expects");
}

pub async fn a_message_comes_as_it_was_sent_however_both_sides_cut_it(ends: Ends) {
    let (_server, _client, peer) = ends.pair(Endpoint::builder().handler(ANY, receives)).await;
    for number in 0..150 {
        sends(&peer, number).await;
    }
}

pub async fn messages_that_are_sent_at_once_come_as_they_were_sent(ends: Ends) {
    let server = Endpoint::builder().handler(ANY, receives).window(16 << 10).messages(7);
    let (server, _client, peer) = ends.pair(server).await;
    let tasks: Vec<_> = (0..20_u64)
        .map(|task| {
            let peer = peer.clone();
            tokio::spawn(async move {
                for number in 0..10 {
                    sends(&peer, 1000 * task + number).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    let statistics = server.statistics();
    assert_eq!((statistics.begun, statistics.failed, statistics.rejected), (200, 0, 0));
    assert_eq!(statistics.held, 0);
}

pub async fn a_message_that_fits_into_a_packet_is_one(ends: Ends) {
    let (server, _client, peer) = ends.pair(Endpoint::builder().handler(ANY, receives)).await;
    let before = server.bundle().statistics().requests;
    let mut message = peer.begin(ANY).await.expect("the peer is there");
    let body = body(7, 1000);
    message.send(7_u64.to_be_bytes()).await.expect("it is taken");
    message.send(1000_u64.to_be_bytes()).await.expect("it is taken");
    message.send(&body[..300]).await.expect("it is taken");
    message.send_bytes(body.slice(300..)).await.expect("it is taken");
    message.end_handled().await.expect("the handler finds what it expects");
    assert_eq!(server.bundle().statistics().requests - before, 1);
}

pub async fn messages_of_the_lengths_around_packets_and_none_at_all_end_well(ends: Ends) {
    let (lens, mut ended) = unbounded_channel();
    let counts = Endpoint::builder().handler(ANY, move |mut message| {
        let lens = lens.clone();
        async move {
            let mut len = 0;
            while let Some(some) = message.receive_some().await? {
                len += some.len();
            }
            lens.send(len)?;
            Ok(())
        }
    });
    let (_server, _client, peer) = ends.pair(counts).await;
    let longest = peer.begin(ANY).await.expect("the peer is there").longest_packet();
    for len in [0, 1, longest - 1, longest, longest + 1, 2 * longest, 2 * longest + 1] {
        for way in 0..3 {
            let mut message = peer.begin(ANY).await.expect("the peer is there");
            let sent = match way {
                0 => message.send(vec![7; len]).await,
                1 => message.send_bytes(vec![7; len]).await,
                _ => {
                    message.send(vec![7; len / 2]).await.expect("it is taken");
                    message.send_bytes(vec![7; len - len / 2]).await.expect("it is taken");
                    message.flush().await
                }
            };
            sent.expect("it is taken");
            message.end_handled().await.expect("the handler counts");
            assert_eq!(ended.recv().await, Some(len));
        }
    }
}

// The first of two long messages waits for what the second brings.
pub async fn handlers_of_one_sender_interleave(ends: Ends) {
    let (wake, woken) = (Arc::new(tokio::sync::Notify::new()), Arc::new(AtomicU64::new(0)));
    let (waker, counter) = (wake.clone(), woken.clone());
    let server = Endpoint::builder()
        .handler(ANY, move |mut message| {
            let (wake, woken) = (wake.clone(), woken.clone());
            async move {
                message.receive(100_000).await?;
                wake.notified().await;
                woken.fetch_add(1, Ordering::Relaxed);
                message.receive(100_000).await?;
                Ok(())
            }
        })
        .handler(BACK, move |mut message| {
            let waker = waker.clone();
            async move {
                message.receive(1_000_000).await?;
                waker.notify_one();
                Ok(())
            }
        });
    let (_server, _client, peer) = ends.pair(server).await;
    let mut first = peer.begin(ANY).await.expect("the peer is there");
    let mut second = peer.begin(BACK).await.expect("the peer is there");
    for _ in 0..10 {
        first.send(vec![1; 10_000]).await.expect("it is taken");
        second.send(vec![2; 10_000]).await.expect("it is taken");
    }
    second.send_bytes(vec![2; 900_000]).await.expect("it is taken");
    second.end_handled().await.expect("it is received");
    first.send_bytes(vec![1; 100_000]).await.expect("it is taken");
    first.end_handled().await.expect("it is received");
    assert_eq!(counter.load(Ordering::Relaxed), 1);
}

pub async fn a_handler_answers_its_sender_by_a_message(ends: Ends) {
    let (bodies, mut received) = unbounded_channel();
    let server = Endpoint::builder().handler(ANY, |mut message| async move {
        let mut back = message.peer().begin(BACK).await?;
        while let Some(some) = message.receive_some().await? {
            back.send_bytes(some).await?;
        }
        back.end().await?;
        Ok(())
    });
    let client = Endpoint::builder().handler(BACK, move |mut message| {
        let bodies = bodies.clone();
        async move {
            bodies.send(message.receive_rest(1 << 20).await?)?;
            Ok(())
        }
    });
    let (_server, _client, peer) = ends.pair_of(server, client).await;
    for len in [0, 5, 5000, 500_000] {
        let mut message = peer.begin(ANY).await.expect("the peer is there");
        let body = body(len as u64, len);
        message.send_bytes(body.clone()).await.expect("it is taken");
        message.end().await.expect("it is taken");
        assert!(received.recv().await == Some(body), "{len} bytes came back as others");
    }
}

pub async fn receiving_beyond_the_end_is_an_error_with_both_lengths(ends: Ends) {
    let (errors, mut failed) = unbounded_channel();
    let server = Endpoint::builder().handler(ANY, move |mut message| {
        let errors = errors.clone();
        async move {
            message.receive(3).await?;
            let error = message.receive(5).await.expect_err("two bytes are left");
            errors.send(error)?;
            Ok(())
        }
    });
    let (_server, _client, peer) = ends.pair(server).await;
    let mut message = peer.begin(ANY).await.expect("the peer is there");
    message.send("five!").await.expect("it is taken");
    message.end_handled().await.expect("the handler has received all");
    let error = failed.recv().await.expect("the handler tells");
    assert!(matches!(error, ReceiveError::Ended { wanted: 5, got: 2, .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("`any`") && text.contains('5') && text.contains('2'), "{text}");
}

// Bytes that a receive had got, and that was dropped while it waited for more, were lost.
pub async fn a_receive_that_is_dropped_leaves_what_had_come_to_the_next(ends: Ends) {
    let (tells, mut told) = unbounded_channel();
    let server = Endpoint::builder().handler(ANY, move |mut message| {
        let tells = tells.clone();
        async move {
            // The rest has not been sent.
            assert!(message.receive(600).now_or_never().is_none());
            assert!(message.receive_into(&mut [0; 500]).now_or_never().is_none());
            assert!(message.receive_rest(1000).now_or_never().is_none());
            tells.send("the rest")?;
            let mut first = [0; 100];
            message.receive_into(&mut first).await?;
            assert!(first[..] == body(1, 600)[..100]);
            assert!(message.receive(400).await? == body(1, 600)[100..500]);
            assert!(message.receive_rest(1000).await? == body(1, 600)[500..]);
            Ok(())
        }
    });
    let (_server, _client, peer) = ends.pair(server).await;
    let mut message = peer.begin(ANY).await.expect("the peer is there");
    message.send(&body(1, 600)[..300]).await.expect("it is taken");
    message.flush().await.expect("it is taken");
    told.recv().await.expect("the handler tells");
    message.send(&body(1, 600)[300..]).await.expect("it is taken");
    message.end_handled().await.expect("the handler has received all");
}
