//! Endpoints that hand on what has come when the program says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use doorbell_kit::PATIENCE;
use doorbell_messages::streams::{Endpoint, EndpointBuilder, StreamId};
use tokio::time::timeout;

use crate::streams::common::{Ends, body, until};

const PACED: StreamId = StreamId::new("paced");

/// A paced endpoint, whose handler counts the bytes that it has received, and checks them.
fn counting(len: usize) -> (EndpointBuilder, Arc<AtomicUsize>) {
    let received = Arc::new(AtomicUsize::new(0));
    let counts = received.clone();
    let server = Endpoint::builder().paced().window(32 << 10).handler(PACED, move |mut message| {
        let received = counts.clone();
        async move {
            let mut at = 0;
            let body = body(3, len);
            while let Some(some) = message.receive_some().await? {
                assert!(body[at..].starts_with(&some), "the body differs at {at}");
                at += some.len();
                received.fetch_add(some.len(), Ordering::Relaxed);
            }
            Ok(())
        }
    });
    (server, received)
}

pub async fn nothing_is_handed_on_before_it_is_extracted_and_nothing_is_lost(ends: Ends) {
    const LEN: usize = 1_000_000;
    let (server, received) = counting(LEN);
    let (server, _client, peer) = ends.pair(server).await;
    assert_eq!(server.try_extract(1000), 0);
    let sends: Vec<_> = (0..3)
        .map(|_| {
            let peer = peer.clone();
            tokio::spawn(async move {
                let mut message = peer.begin(PACED).await.expect("the peer is there");
                message.send_bytes(body(3, LEN)).await.expect("it is taken");
                message.end_handled().await.expect("it is received");
            })
        })
        .collect();
    // The windows fill up, and nothing is handed on.
    until(|| server.statistics().held > 3 * (26 << 10)).await;
    assert!(server.statistics().held <= 3 * (32 << 10), "{:?}", server.statistics());
    assert_eq!(received.load(Ordering::Relaxed), 0);
    let mut extracted = 0;
    while extracted < 3 * LEN {
        let limit = 1 + (extracted * 7919) % 9000;
        let some = timeout(PATIENCE, server.extract(limit)).await.expect("there is more");
        assert!(some < limit + (16 << 10), "{some} bytes for a limit of {limit}");
        extracted += some;
        assert_eq!(received.load(Ordering::Relaxed), extracted, "handlers have run");
        assert!(server.statistics().held <= 3 * (32 << 10), "{:?}", server.statistics());
    }
    assert_eq!(extracted, 3 * LEN);
    // The ends of the messages may come as packets of their own.
    let ends = async {
        for send in sends {
            send.await.expect("no panic");
        }
    };
    let extracts = async {
        loop {
            server.extract(1).await;
        }
    };
    tokio::select! {
        () = ends => {}
        () = extracts => unreachable!("it goes on"),
    }
    assert_eq!(server.statistics().held, 0);
}

pub async fn what_a_peer_has_sent_that_has_gone_is_not_handed_on(ends: Ends) {
    let (server, received) = counting(20_000);
    let (server, client, peer) = ends.pair(server).await;
    let mut message = peer.begin(PACED).await.expect("the peer is there");
    message.send_bytes(body(3, 20_000)).await.expect("it is taken");
    message.flush().await.expect("it is taken");
    until(|| server.statistics().held > 20_000).await;
    drop(client);
    until(|| server.statistics().held == 0).await;
    assert_eq!((server.try_extract(1000), received.load(Ordering::Relaxed)), (0, 0));
}

pub async fn an_endpoint_that_is_not_paced_extracts_nothing(ends: Ends) {
    let (server, _client, peer) = ends
        .pair(Endpoint::builder().handler(PACED, |mut message| async move {
            message.receive(4).await?;
            Ok(())
        }))
        .await;
    let mut message = peer.begin(PACED).await.expect("the peer is there");
    message.send("four").await.expect("it is taken");
    message.end_handled().await.expect("it is received");
    assert_eq!((server.try_extract(10), server.extract(10).await), (0, 0));
}
