//! A server in one process, and its client in another.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use doorbell_kit::child;
use doorbell_rpc::{
    Channel, ChannelBuilder, Client, Method, Router, Server, ServerBuilder, Status, Streaming,
};
use futures_util::stream;
use tokio::sync::Semaphore;

/// A method that never answers.
pub const FOREVER: Method<(), ()> = Method::new("forever");
/// As [`FOREVER`], and may be called again.
pub const FOREVER_AGAIN: Method<(), ()> = Method::new("forever again").idempotent();
/// Streams a number, and then nothing, without an end.
pub const ENDLESS: Method<(), u64> = Method::new("endless");
/// Reads a stream to its end.
pub const SINK: Method<u64, ()> = Method::new("sink");
/// Notes that it has run with a number.
pub const NOTE: Method<u64, ()> = Method::new("note");
/// How often `NOTE` has run with each number.
pub const NOTED: Method<(), HashMap<u64, u64>> = Method::new("noted").idempotent();

/// How long a peer may be silent.
pub const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// The most that anything here takes on a machine that does much else.
pub const LONG: Duration = Duration::from_secs(60);

/// A kind of device that peers use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    Shm,
    Udp,
}

impl Over {
    /// A device that nobody else has, and that can be opened again under the same name.
    pub fn fixed(self) -> String {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        match self {
            Self::Shm => format!("shm:rpc-peers/{process}/{number}"),
            Self::Udp => {
                let [_, a, b, c] = process.to_be_bytes();
                format!("udp:127.{}.{b}.{c}:{}", a | 0xc0, 5000 + number)
            }
        }
    }
}

/// The events that handlers report: that they have begun, and that they have ended or were dropped.
#[derive(Clone)]
pub struct Seen {
    pub begun: Arc<Semaphore>,
    pub ended: Arc<Semaphore>,
}

impl Default for Seen {
    fn default() -> Self {
        let [begun, ended] = [0; 2].map(|_| Arc::new(Semaphore::new(0)));
        Self { begun, ended }
    }
}

/// Tells that a handler has ended when it is dropped.
struct Runs(Seen);

impl Seen {
    fn runs(&self) -> Runs {
        self.begun.add_permits(1);
        Runs(self.clone())
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.0.ended.add_permits(1);
    }
}

/// Waits until so many more handlers have begun, or ended.
pub async fn many(handlers: &Semaphore, count: u32) {
    let all = tokio::time::timeout(LONG, handlers.acquire_many(count)).await;
    all.expect("it comes").expect("nobody closes it").forget();
}

/// A server of these methods.
pub fn server(seen: &Seen) -> ServerBuilder {
    let noted: Arc<Mutex<HashMap<u64, u64>>> = Arc::default();
    let notes = noted.clone();
    let [once, again, endless, sink] = [0; 4].map(|_| seen.clone());
    let forever = |runs: Runs| async move {
        let _runs = runs;
        std::future::pending::<Result<(), Status>>().await
    };
    let router = Router::new()
        .unary(FOREVER, move |_| forever(once.runs()))
        .unary(FOREVER_AGAIN, move |_| forever(again.runs()))
        .server_streaming(ENDLESS, move |_| {
            let runs = endless.runs();
            async move {
                let numbers = stream::unfold((0, runs), async |(number, runs)| match number {
                    0 => Some((Ok(0), (1, runs))),
                    _ => std::future::pending().await,
                });
                Ok(Streaming::new(Box::pin(numbers)))
            }
        })
        .client_streaming(SINK, move |request| {
            let runs = sink.runs();
            async move {
                let _runs = runs;
                let mut numbers: Streaming<u64> = request.into_inner();
                while numbers.message().await?.is_some() {}
                Ok(())
            }
        })
        .unary(NOTE, move |request| {
            let number = request.into_inner();
            *notes.lock().expect("nobody panics").entry(number).or_default() += 1;
            async { Ok(()) }
        })
        .unary(NOTED, move |_| {
            let noted = noted.lock().expect("nobody panics").clone();
            async move { Ok(noted) }
        });
    Server::builder().add_service(router).service(7)
}

/// The part of a process that serves until it is killed.
pub async fn serves(device: &str) -> ! {
    let server = server(&Seen::default()).open(device).await.expect("nobody has it");
    child::tell(server.name());
    std::future::pending().await
}

/// A client of a server whose name a process has told.
pub async fn client(channel: ChannelBuilder, name: &str) -> Client<Channel> {
    Client::new(channel.connect(name).await.expect("the server is there"))
}

/// Waits for what an error says, which must not come before a time has passed: but for what had
/// passed already when the peer was heard last.
pub fn after(since: Instant, least: Duration) {
    let took = since.elapsed();
    assert!(took >= least, "a peer was given up after {took:?}, before its time was over");
}
