//! Messages and handlers that end before they should.

use std::sync::Arc;

use doorbell_kit::PATIENCE;
use doorbell_messages::streams::{
    Endpoint, EndpointBuilder, HandlerError, Incoming, ReceiveError, SendError, StreamId, Unsent,
};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use crate::streams::common::{Ends, until};

const WELL: StreamId = StreamId::new("well");
const EARLY: StreamId = StreamId::new("early");
const ERROR: StreamId = StreamId::new("error");
const PANIC: StreamId = StreamId::new("panic");
const STOPS: StreamId = StreamId::new("stops");
const NONE: StreamId = StreamId::new("none");

async fn takes_all(mut message: Incoming) -> Result<(), HandlerError> {
    while message.receive_some().await?.is_some() {}
    Ok(())
}

/// Handlers, one of which tells the errors of its receives, and one of which never receives.
fn handlers() -> (EndpointBuilder, UnboundedReceiver<ReceiveError>, Arc<Notify>) {
    let (errors, failed) = unbounded_channel();
    let stop = Arc::new(Notify::new());
    let stopped = stop.clone();
    let server = Endpoint::builder()
        .handler(WELL, move |message| {
            let errors = errors.clone();
            async move {
                let outcome = takes_all(message).await;
                if let Err(why) = outcome {
                    errors.send(*why.downcast::<ReceiveError>()?)?;
                }
                Ok(())
            }
        })
        .handler(EARLY, |mut message| async move {
            message.receive(10).await?;
            Ok(())
        })
        .handler(ERROR, |mut message| async move {
            message.receive(10).await?;
            Err("there is no more room".into())
        })
        .handler(PANIC, |mut message| async move {
            message.receive(10).await?;
            panic!("as the test wants")
        })
        .handler(STOPS, move |message| {
            let stop = stop.clone();
            async move {
                stop.notified().await;
                takes_all(message).await
            }
        });
    (server, failed, stopped)
}

/// Sends a message that is longer than its window. Returns the error that ends it.
async fn fails(peer: &doorbell_messages::streams::Peer, stream: StreamId) -> SendError {
    let mut message = peer.begin(stream).await.expect("the peer is there");
    for _ in 0..1000 {
        if let Err(why) = message.send([7; 1000]).await {
            return why;
        }
    }
    message.end().await.expect_err("it is longer than its window")
}

pub async fn a_handler_that_ends_early_is_an_error_that_says_how(ends: Ends) {
    let (server, _failed, _stop) = handlers();
    let (server, _client, peer) = ends.pair(server).await;
    let early = fails(&peer, EARLY).await;
    assert!(matches!(early, SendError::HandlerReturned { stream: "early", .. }), "{early}");
    let error = fails(&peer, ERROR).await;
    assert!(
        matches!(&error, SendError::HandlerFailed { text, .. } if &**text == "there is no more room"),
        "{error}"
    );
    let panic = fails(&peer, PANIC).await;
    assert!(matches!(panic, SendError::HandlerPanicked { .. }), "{panic}");
    let none = fails(&peer, NONE).await;
    assert!(matches!(none, SendError::NoHandler { name: "none", .. }), "{none}");
    assert!(none.to_string().contains("`none`"), "{none}");
    // Other messages of the same peer go on, in the same slots.
    for _ in 0..100 {
        let mut message = peer.begin(WELL).await.expect("the peer is there");
        message.send([7; 1000]).await.expect("it is taken");
        message.end_handled().await.expect("it is received");
    }
    until(|| server.statistics().held == 0).await;
    assert_eq!(server.statistics().failed, 4);
    assert_eq!(server.statistics().rejected, 0);
}

pub async fn a_short_message_whose_handler_fails_is_an_error_for_who_waits_for_that(ends: Ends) {
    let (server, _failed, _stop) = handlers();
    let (server, _client, peer) = ends.pair(server).await;
    for stream in [EARLY, ERROR, PANIC, NONE] {
        let mut message = peer.begin(stream).await.expect("the peer is there");
        message.send([7; 100]).await.expect("it is taken");
        let why = message.end_handled().await.expect_err("the handler fails");
        let is_right = match why {
            SendError::HandlerReturned { .. } => stream == EARLY,
            SendError::HandlerFailed { .. } => stream == ERROR,
            SendError::HandlerPanicked { .. } => stream == PANIC,
            SendError::NoHandler { .. } => stream == NONE,
            _ => false,
        };
        assert!(is_right, "{stream:?}: {why}");
    }
    // More than there are slots, so that slots of messages that failed are free again.
    for _ in 0..100 {
        let mut message = peer.begin(ERROR).await.expect("the peer is there");
        message.send([7; 100]).await.expect("it is taken");
        message.end().await.expect("it leaves");
    }
    let last = peer.begin(WELL).await.expect("the peer is there");
    last.end_handled().await.expect("it is received");
    until(|| server.statistics().held == 0).await;
}

pub async fn a_message_that_is_dropped_is_an_error_for_its_receiver(ends: Ends) {
    let (server, mut failed, _stop) = handlers();
    let (server, _client, peer) = ends.pair(server).await;
    // More than there are slots.
    for len in (0..100).map(|number| 100 * number) {
        let mut message = peer.begin(WELL).await.expect("the peer is there");
        message.send(vec![7; len]).await.expect("it is taken");
        message.flush().await.expect("it leaves");
        drop(message);
        if len > 0 {
            let error = failed.recv().await.expect("the handler tells");
            assert!(matches!(error, ReceiveError::Abandoned { stream: "well", .. }), "{error}");
        }
    }
    assert_eq!(server.statistics().rejected, 0);
    until(|| server.statistics().held == 0).await;
}

pub async fn a_handler_that_has_stopped_holds_up_no_other(ends: Ends) {
    let (server, _failed, stop) = handlers();
    let (server, _client, peer) = ends.pair(server.window(32 << 10).messages(4)).await;
    let mut stopped = Vec::new();
    for _ in 0..3 {
        let peer = peer.clone();
        stopped.push(tokio::spawn(async move {
            let mut message = peer.begin(STOPS).await.expect("the peer is there");
            message.send_bytes(vec![7; 200_000]).await.expect("it is taken");
            message.end_handled().await.expect("it is received");
        }));
    }
    until(|| server.statistics().begun == 3).await;
    for _ in 0..50 {
        let mut message = peer.begin(WELL).await.expect("the peer is there");
        message.send_bytes(vec![7; 100_000]).await.expect("it is taken");
        message.end().await.expect("it is taken");
    }
    assert!(server.statistics().held <= 4 * (32 << 10), "{:?}", server.statistics());
    assert!(stopped.iter().all(|task| !task.is_finished()));
    for _ in 0..3 {
        stop.notify_one();
    }
    for task in stopped {
        task.await.expect("no panic");
    }
}

pub async fn as_many_messages_as_agreed_are_open_and_others_wait(ends: Ends) {
    let (server, _failed, stop) = handlers();
    let (server, _client, peer) = ends.pair(server.messages(3)).await;
    for _ in 0..3 {
        let mut message = peer.begin(STOPS).await.expect("the peer is there");
        message.send("short").await.expect("it is taken");
        message.end().await.expect("it leaves");
    }
    until(|| server.statistics().begun == 3).await;
    let mut fourth = std::pin::pin!(peer.begin(WELL));
    let waits = timeout(std::time::Duration::from_millis(20), &mut fourth).await;
    assert!(waits.is_err(), "three messages are open");
    stop.notify_one();
    let fourth = timeout(PATIENCE, fourth).await.expect("one of the three was handled");
    fourth.expect("the peer is there").end_handled().await.expect("it is received");
}

pub async fn messages_to_and_from_a_peer_that_has_gone_end_with_an_error(ends: Ends) {
    let (server, mut failed, _stop) = handlers();
    let (server, client, peer) = ends.pair(server.window(32 << 10)).await;
    // One message is received when the client goes, and one has stopped.
    let mut message = peer.begin(WELL).await.expect("the peer is there");
    message.send_bytes(vec![7; 100_000]).await.expect("it is taken");
    let mut stopped = peer.begin(STOPS).await.expect("the peer is there");
    stopped.send_bytes(vec![7; 20_000]).await.expect("it is taken");
    until(|| server.statistics().begun == 2).await;
    drop(client);
    let gone = timeout(PATIENCE, failed.recv()).await.expect("it ends").expect("it is told");
    assert!(matches!(gone, ReceiveError::PeerGone { .. }), "{gone}");
    for mut message in [message, stopped] {
        let gone = message.send_bytes(vec![7; 100_000]).await.expect_err("the endpoint has gone");
        assert!(matches!(gone, SendError::Gone { .. }), "{gone}");
    }
    let gone = peer.begin(WELL).await.expect_err("the endpoint has gone");
    assert!(matches!(gone, SendError::Gone { what: Unsent::Stream("well"), .. }), "{gone}");
}

pub async fn what_waits_for_a_server_that_has_gone_ends_with_an_error(ends: Ends) {
    let (server, _failed, _stop) = handlers();
    let (server, _client, peer) = ends.pair(server.window(32 << 10).messages(2)).await;
    let name = server.name().to_string();
    let mut waits = Vec::new();
    // Two wait for room, and one to begin.
    for _ in 0..3 {
        let peer = peer.clone();
        waits.push(tokio::spawn(async move {
            let mut message = peer.begin(STOPS).await?;
            message.send_bytes(vec![7; 200_000]).await?;
            message.end_handled().await
        }));
    }
    until(|| server.statistics().begun == 2).await;
    drop(server);
    for wait in waits {
        let gone = timeout(PATIENCE, wait).await.expect("it ends").expect("no panic");
        let gone = gone.expect_err("the server has gone");
        assert!(matches!(gone, SendError::Gone { .. }), "{gone}");
        assert!(gone.to_string().contains(&name), "{gone}");
    }
}
