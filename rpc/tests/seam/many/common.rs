//! The server that all tests call, in a process of its own, and what a process takes.

use std::time::Duration;

use doorbell_kit::child::{self, Child};
use doorbell_rpc::{Channel, Client, Method, Router, Server, Status};
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::runtime::Runtime;

/// Adds one.
pub const NEXT: Method<u64, u64> = Method::new("next");

/// The longest that anything here may take.
pub const LONG: Duration = Duration::from_secs(300);

/// How many channels connect at a time.
const AT_ONCE: usize = 64;

/// A runtime with two workers, for tests that run in several processes.
pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("one")
}

/// The router of the server that tests call.
pub fn router() -> Router {
    Router::new().unary(NEXT, |request| async move {
        let number: u64 = request.into_inner();
        Ok(number + 1)
    })
}

/// Serves on a device until the parent says something, and then tells how many sessions there are,
/// as often as the parent says anything. The child ends with its parent.
pub fn serve(device: &str) {
    runtime().block_on(async {
        let server = Server::builder().add_service(router()).open(device).await.expect("it opens");
        child::tell(server.name());
        while tokio::task::spawn_blocking(child::listen).await.expect("it listens").is_some() {
            child::tell(server.sessions());
        }
    });
}

/// Starts the part of this test that serves, and returns its process and its name.
pub fn server(test: &str) -> (Child, String) {
    let mut server = Child::start(test, "server", None);
    let name = server.hear();
    (server, name)
}

/// The number of clients that the server knows.
pub fn sessions(server: &mut Child) -> usize {
    server.say("how many?");
    server.hear().parse().expect("a number")
}

/// Makes channels that all have called the server.
pub async fn channels(count: usize, connects: impl AsyncFn() -> Channel) -> Vec<Channel> {
    let made = stream::iter(0..count).map(|number| {
        let connects = &connects;
        async move {
            let channel = connects().await;
            calls(&channel, number as u64).await.map(|()| channel)
        }
    });
    let made = made.buffer_unordered(AT_ONCE).try_collect();
    let made = tokio::time::timeout(LONG, made).await.expect("it ends");
    made.unwrap_or_else(|why: Status| panic!("a channel is not served: {why}"))
}

/// Calls the server, which must answer.
pub async fn calls(channel: &Channel, number: u64) -> Result<(), Status> {
    let answer = Client::new(channel.clone()).unary(NEXT, number).await?;
    assert_eq!(answer.into_inner(), number + 1);
    Ok(())
}

/// The number of descriptors that the process has open.
pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("Linux tells").count()
}

/// The bytes of the process that are resident.
pub fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux tells");
    let resident = pages.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    4096 * resident.expect("the second number")
}
