//! Servers that are dropped while handlers run, over shared memory and sockets.

use std::sync::Arc;
use std::time::Duration;

use doorbell_rpc::{Channel, Client, Code, Method, Router, Server, Status, Streaming};
use futures_util::stream;
use tokio::sync::Notify;

const FOREVER: Method<(), ()> = Method::new("forever");
const ENDLESS: Method<(), u64> = Method::new("endless");

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(20);

/// Tells when it is dropped.
struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// A server whose handlers never end, and tell when they have begun and when they are dropped.
async fn server(device: &str) -> (Server, Arc<Notify>, Arc<Notify>) {
    let (begun, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, drops) = (begun.clone(), dropped.clone());
    let (begins_too, drops_too) = (begun.clone(), dropped.clone());
    let router = Router::new()
        .unary(FOREVER, move |_| {
            let kept = Dropped(drops.clone());
            begins.notify_one();
            async move {
                std::future::pending::<()>().await;
                drop(kept);
                Ok(())
            }
        })
        .server_streaming(ENDLESS, move |_| {
            let kept = Dropped(drops_too.clone());
            begins_too.notify_one();
            async move {
                Ok(Streaming::new(stream::poll_fn(move |_| {
                    let _kept = &kept;
                    std::task::Poll::Pending::<Option<Result<u64, Status>>>
                })))
            }
        });
    let server = Server::builder().add_service(router).open(device).await;
    (server.expect("the device opens"), begun, dropped)
}

async fn client(server: &Server) -> Client<Channel> {
    let channel = Channel::builder().connect_timeout(Duration::from_secs(1));
    Client::new(channel.connect(server.name()).await.expect("the server is there"))
}

// Handlers that had waited for longer than they may hold a credit went on when their server was
// dropped. They kept its NIC, and so its address.
async fn a_server_that_is_dropped_drops_handlers_that_wait(device: &str) {
    let (server, begun, dropped) = server(device).await;
    let client = client(&server).await;
    let call = tokio::spawn(async move { client.unary(FOREVER, ()).await });
    begun.notified().await;
    // The handler gives the credit of its call back after 20 ms.
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(server);
    dropped.notified().await;
    let status = call.await.expect("the task ends").expect_err("the server has gone");
    assert_eq!(status.code(), Code::Unavailable);
}

async fn a_server_that_is_dropped_drops_streams_that_wait(device: &str) {
    let (server, begun, dropped) = server(device).await;
    let client = client(&server).await;
    let mut endless = client.server_streaming(ENDLESS, ()).await.expect("it streams").into_inner();
    begun.notified().await;
    drop(server);
    dropped.notified().await;
    let status = endless.message().await.expect_err("the server has gone");
    assert!([Code::Unavailable, Code::Cancelled].contains(&status.code()), "{status}");
}

on_each_device!(
    a_server_that_is_dropped_drops_handlers_that_wait,
    a_server_that_is_dropped_drops_streams_that_wait,
);
