//! Processes that are killed or stopped in the middle of messages.

use std::time::Duration;

use doorbell_kit::PATIENCE;
use doorbell_kit::child::{self, Child};
use doorbell_messages::streams::{Endpoint, HandlerError, Incoming, SendError, StreamId};
use doorbell_verbs::{Config, KeepAlive};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;

use crate::streams::common::{run, until};

const ALL: StreamId = StreamId::new("all");
const STOPS: StreamId = StreamId::new("stops");

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Killed,
    Stopped,
}

fn config() -> Config {
    let keep_alive = KeepAlive { busy: Duration::from_secs(1), ..KeepAlive::default() };
    // The end of a connection waits no longer than this for a peer that has gone.
    Config { keep_alive, connect_timeout: Duration::from_secs(1), ..Config::default() }
}

async fn takes_all(mut message: Incoming) -> Result<(), HandlerError> {
    while message.receive_some().await?.is_some() {}
    Ok(())
}

async fn open(device: &str, builder: doorbell_messages::streams::EndpointBuilder) -> Endpoint {
    let builder = builder.endpoint(|endpoint| endpoint.nic(config()));
    builder.open(device).await.expect("the device opens")
}

/// Sends without end, also to handlers that don't receive, until the process is killed.
async fn sends_without_end(server: &str) {
    let device = if server.starts_with("shm") { "shm" } else { "udp:127.0.0.1:0" };
    let client = open(device, Endpoint::builder()).await;
    let peer = client.connect(server).await.expect("the server is there");
    for stream in [ALL, ALL, STOPS, STOPS] {
        let peer = peer.clone();
        tokio::spawn(async move {
            let mut message = peer.begin(stream).await.expect("the server is there");
            loop {
                message.send(vec![7; 5000]).await.expect("it is taken");
            }
        });
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    child::tell("in the middle");
    std::future::pending::<()>().await;
}

/// Has a sender's process come to an end in the middle of messages.
fn a_sender_ends(test: &str, device: &'static str, fate: Fate) {
    if let Some(server) = child::part() {
        return run(2, move || async move { sends_without_end(&server).await });
    }
    let test = test.to_owned();
    run(2, move || async move {
        let (errors, mut failed) = unbounded_channel();
        let tells = errors.clone();
        let server = Endpoint::builder()
            .handler(ALL, move |message| {
                let errors = errors.clone();
                async move {
                    let why = takes_all(message).await.expect_err("its sender is killed");
                    errors.send(why.to_string())?;
                    Ok(())
                }
            })
            .handler(STOPS, move |mut message| {
                let errors = tells.clone();
                async move {
                    // What has come stays until it is received, and then there is the error.
                    message.receive(1).await?;
                    errors.send("stops".to_owned())?;
                    std::future::pending().await
                }
            });
        let server = open(device, server).await;
        let mut child = Child::start(&test, &server.name().to_string(), None);
        assert_eq!(child.hear(), "in the middle");
        for _ in 0..2 {
            let begun = timeout(PATIENCE, failed.recv()).await.expect("it comes");
            assert_eq!(begun.expect("it is told"), "stops");
        }
        match fate {
            Fate::Killed => assert!(!child.kill().success()),
            Fate::Stopped => child.stop(),
        }
        for _ in 0..2 {
            let why = timeout(PATIENCE, failed.recv()).await.expect("it ends").expect("it is told");
            assert!(why.contains("the connection has ended"), "{why}");
        }
        until(|| server.nic().statistics().objects.queue_pairs == 0).await;
    });
}

/// Receives nothing, until the process is killed.
async fn receives_nothing(device: &str) {
    let server = Endpoint::builder().handler(STOPS, |_message| std::future::pending());
    let server = open(device, server).await;
    child::tell(server.name());
    std::future::pending::<()>().await;
}

/// Has a receiver's process come to an end in the middle of messages.
fn a_receiver_ends(test: &str, device: &'static str, fate: Fate) {
    if child::part().is_some() {
        return run(2, move || async move { receives_nothing(device).await });
    }
    let test = test.to_owned();
    run(2, move || async move {
        let mut child = Child::start(&test, "receiver", None);
        let name = child.hear();
        let client = open(device, Endpoint::builder()).await;
        let peer = client.connect(name.as_str()).await.expect("the receiver is there");
        // Some wait for room, some for their handlers, and some to begin.
        let mut waits = Vec::new();
        for number in 0..100 {
            let peer = peer.clone();
            waits.push(tokio::spawn(async move {
                let mut message = peer.begin(STOPS).await?;
                message.send_bytes(vec![7; 300_000 * (number % 2)]).await?;
                message.end_handled().await
            }));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        match fate {
            Fate::Killed => assert!(!child.kill().success()),
            Fate::Stopped => child.stop(),
        }
        for wait in waits {
            let why = timeout(PATIENCE, wait).await.expect("it ends").expect("no panic");
            let why = why.expect_err("the receiver has gone");
            assert!(matches!(why, SendError::Gone { .. }), "{why}");
            assert!(why.to_string().contains(&name), "{why}");
        }
        until(|| client.nic().statistics().objects.queue_pairs == 0).await;
    });
}

macro_rules! ends {
    ($($who:ident $test:ident $device:literal $fate:ident)+) => {
        $(#[test]
        fn $test() {
            $who(concat!("streams::killed::", stringify!($test)), $device, Fate::$fate);
        })+
    };
}

ends! {
    a_sender_ends a_sender_that_is_killed_is_an_error_over_shared_memory "shm" Killed
    a_sender_ends a_sender_that_is_killed_is_an_error_over_sockets "udp:127.0.0.1:0" Killed
    a_sender_ends a_sender_that_is_stopped_is_an_error_over_sockets "udp:127.0.0.1:0" Stopped
    a_receiver_ends a_receiver_that_is_killed_is_an_error_over_shared_memory "shm" Killed
    a_receiver_ends a_receiver_that_is_killed_is_an_error_over_sockets "udp:127.0.0.1:0" Killed
    a_receiver_ends a_receiver_that_is_stopped_is_an_error_over_sockets "udp:127.0.0.1:0" Stopped
}
