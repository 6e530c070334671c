//! Servers that shut down under load: each call that has run is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use doorbell_rpc::{Channel, Client, Method, Raw, Router, Server};
use tokio::task::JoinSet;

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(30);

/// Answers with as many bytes as are asked for, and counts.
const GIVE: Method<Bytes, Bytes, Raw> = Method::new("give");

/// Shuts a server down in the middle of calls from several clients, whose answers have so many
/// bytes, and compares how many handlers have returned with how many calls were answered. Returns
/// the callers, each of which ends with a call that has not run.
async fn shuts_down(device: &str, bytes: usize, inline: bool) -> JoinSet<()> {
    let returned = Arc::new(AtomicU64::new(0));
    let counts = returned.clone();
    let router = Router::new().unary(GIVE, move |_| {
        counts.fetch_add(1, Ordering::SeqCst);
        async move { Ok(Bytes::from(vec![7; bytes])) }
    });
    let router = if inline { router.inline(GIVE) } else { router };
    let server = Server::builder().add_service(router).open(device).await;
    let server = server.expect("the device opens");
    let answered = Arc::new(AtomicU64::new(0));
    let mut callers = JoinSet::new();
    let (began, mut begun) = tokio::sync::mpsc::channel(32);
    for _ in 0..4 {
        let channel = Channel::connect(server.name()).await.expect("the server is there");
        for _ in 0..8 {
            let client = Client::new(channel.clone());
            let (answered, began) = (answered.clone(), began.clone());
            callers.spawn(async move {
                for call in 0.. {
                    let answer = match client.unary(GIVE, Bytes::new()).await {
                        Ok(answer) => answer,
                        // The call that is refused is the last one, and none is lost.
                        Err(status) if status.has_not_run() => return,
                        Err(status) => panic!("a call was lost: {status:?}"),
                    };
                    assert_eq!(answer.into_inner().len(), bytes);
                    answered.fetch_add(1, Ordering::SeqCst);
                    if call == 3 {
                        began.send(()).await.expect("somebody waits");
                    }
                }
            });
        }
    }
    for _ in 0..32 {
        begun.recv().await.expect("all begin");
    }
    server.close().await.expect("clients take their answers");
    drop(server);
    // What was answered may take a moment from a channel to its program.
    while answered.load(Ordering::SeqCst) < returned.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    callers
}

/// As often as makes it all but certain that a shutdown falls between an answer and its sending.
async fn shut_down(device: &str) {
    let mut callers = Vec::new();
    for round in 0..30 {
        callers.push(shuts_down(device, 8, round % 2 == 0).await);
    }
    for _ in 0..10 {
        callers.push(shuts_down(device, 20_000, false).await);
    }
    // Callers wait for a connection first.
    for mut callers in callers {
        while let Some(ended) = callers.join_next().await {
            ended.expect("no call was lost");
        }
    }
}

// A handler's place was given back before its answer was sent, and nobody waited for the sending.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn over_sockets_each_call_that_has_run_is_answered_before_its_server_has_shut_down() {
    tokio::time::timeout(LONG, shut_down("udp:127.0.0.1:0")).await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn over_shared_memory_each_call_that_has_run_is_answered_before_its_server_has_shut_down() {
    tokio::time::timeout(LONG, shut_down("shm")).await.expect("it ends");
}
