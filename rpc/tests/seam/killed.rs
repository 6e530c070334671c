//! Processes of clients that are killed or stopped in the middle of calls: the server lets go of
//! all that it held for them, and other clients notice nothing.

use std::time::Duration;

use bytes::Bytes;
use doorbell_kit::child::{self, Child};
use doorbell_rpc::{Channel, Client, Server};
use doorbell_verbs::{Config, KeepAlive};
use futures_util::{StreamExt, stream};
use tokio::runtime::Runtime;

use crate::mixed::{COUNT, Company, ECHO, ENDLESS, FOREVER, MIRROR, SUM, holds_nothing, router};

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(60);

/// The fate of the client's process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Killed,
    Stopped,
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("threads can be started")
}

/// Is in the middle of calls of all kinds, until the process is killed.
fn calls(server: &str) {
    runtime().block_on(async {
        let client = Client::new(Channel::connect(server).await.expect("the server is there"));
        let (begun, mut began) = tokio::sync::mpsc::unbounded_channel();
        for number in 0..4_u8 {
            let (client, begun) = (client.clone(), begun.clone());
            tokio::spawn(async move {
                // One stream that is read, one that is not, one that is written, one both ways.
                let mut read = client.server_streaming(ENDLESS, ()).await.unwrap().into_inner();
                let mut unread =
                    client.server_streaming(COUNT, 1 << 40).await.unwrap().into_inner();
                unread.message().await.unwrap();
                let numbers = stream::iter(0..).map(|number: u64| number % 7);
                let written = client.client_streaming(SUM, numbers);
                let pieces = stream::iter(0..).map(move |_: u64| Bytes::from(vec![number; 5000]));
                let mut mirrored = client.streaming(MIRROR, pieces).await.unwrap().into_inner();
                mirrored.message().await.unwrap();
                let bodies = async {
                    loop {
                        let body = Bytes::from(vec![number; 3 << 20]);
                        client.unary(ECHO, body).await.unwrap();
                        let _ = begun.send(());
                    }
                };
                let reads = async { while read.message().await.unwrap().is_some() {} };
                let mirrors = async { while mirrored.message().await.unwrap().is_some() {} };
                let waits = client.unary(FOREVER, ());
                let _ = tokio::join!(written, bodies, reads, mirrors, waits);
            });
        }
        for _ in 0..8 {
            began.recv().await.expect("nobody panics");
        }
        child::tell("in the middle");
        std::future::pending::<()>().await;
    });
}

/// Has a client's process come to an end in the middle of calls, beside another client.
fn ends_in_the_middle(test: &str, device: &str, fate: Fate) {
    if let Some(server) = child::part() {
        return calls(&server);
    }
    let ends = async {
        let keep_alive = KeepAlive { idle: Duration::from_secs(2), busy: Duration::from_secs(1) };
        let builder = Server::builder()
            .add_service(router())
            .endpoint(|endpoint| endpoint.nic(Config { keep_alive, ..Config::default() }));
        let server = builder.open(device).await.expect("the device opens");
        let mut company =
            Company::over(Channel::connect(server.name()).await.expect("it is there"), 0..4);
        company.more(50).await;
        let mut child = Child::start(test, &server.name().to_string(), None);
        assert_eq!(child.hear(), "in the middle");
        assert!(server.usage().calls >= 4 * 4, "{:?}", server.usage());
        match fate {
            Fate::Killed => assert!(!child.kill().success()),
            Fate::Stopped => child.stop(),
        }
        company.more(200).await;
        let channel = company.stop().await;
        holds_nothing(|| server.usage()).await;
        holds_nothing(|| channel.usage()).await;
        // What is left of clients are the connections of the one that is there, for messages and
        // bodies.
        while server.nic().statistics().objects.queue_pairs > 2
            || server.nic().statistics().objects.registrations > 0
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    runtime().block_on(async { tokio::time::timeout(LONG, ends).await }).expect("it ends");
}

#[test]
fn over_shared_memory_a_client_that_is_killed_in_the_middle_leaves_nothing_behind() {
    let test =
        "killed::over_shared_memory_a_client_that_is_killed_in_the_middle_leaves_nothing_behind";
    ends_in_the_middle(test, "shm", Fate::Killed);
}

#[test]
fn over_sockets_a_client_that_is_killed_in_the_middle_leaves_nothing_behind() {
    let test = "killed::over_sockets_a_client_that_is_killed_in_the_middle_leaves_nothing_behind";
    ends_in_the_middle(test, "udp:127.0.0.1:0", Fate::Killed);
}

#[test]
fn over_sockets_a_client_that_is_stopped_in_the_middle_leaves_nothing_behind() {
    let test = "killed::over_sockets_a_client_that_is_stopped_in_the_middle_leaves_nothing_behind";
    ends_in_the_middle(test, "udp:127.0.0.1:0", Fate::Stopped);
}
