//! Calls with one request and one response, over shared memory and over UDP: codes, deadlines,
//! limits, servers that end and come again, and the layers of tower around a channel.

mod codes;
mod deadlines;
mod endings;
mod gone;
mod layers;
mod limits;
mod relays;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use doorbell_rpc::{Channel, Client, Method, Router, Server, Status};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

/// Answers at once with what it was called with.
const ECHO: Method<String, String> = Method::new("stage/echo").schema("(String) -> String");
/// Answers with its argument, when the test lets it go.
const HOLD: Method<u64, u64> = Method::new("stage/hold");
/// As [`HOLD`], and may be called again.
const HOLD_AGAIN: Method<u64, u64> = Method::new("stage/hold again").idempotent();

/// Makes two tests of each function that takes a device.
macro_rules! over_each_device {
    ($($name:ident),* $(,)?) => {
        mod over_shm {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name($crate::unary::Device::Shm).await;
            })*
        }

        mod over_udp {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name($crate::unary::Device::Udp).await;
            })*
        }
    };
}
use over_each_device;

/// A kind of device on which a test runs.
#[derive(Clone, Copy, Debug)]
enum Device {
    Shm,
    Udp,
}

impl Device {
    /// A device that nobody else has.
    fn any(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            Self::Udp => "udp:127.0.0.1:0",
        }
    }

    /// A device that no other test has, and that can be opened again.
    fn fixed(self) -> String {
        crate::common::fixed(match self {
            Self::Shm => "shm",
            Self::Udp => "udp",
        })
    }
}

/// A server's handlers, which wait until the test lets them go, and tell when they begin and end.
#[derive(Clone, Default)]
struct Stage(Arc<Shared>);

struct Shared {
    /// A permit for each handler that has begun, until the test takes it.
    began: Semaphore,
    /// A permit for each handler that has ended or was dropped, until the test takes it.
    ended: Semaphore,
    /// A permit for each handler that may go on.
    go: Semaphore,
    running: AtomicUsize,
    most_running: AtomicUsize,
}

impl Default for Shared {
    fn default() -> Self {
        let [began, ended, go] = [0; 3].map(Semaphore::new);
        let [running, most_running] = [0; 2].map(AtomicUsize::new);
        Self { began, ended, go, running, most_running }
    }
}

/// A handler that runs.
struct OnStage(Arc<Shared>);

impl OnStage {
    fn enter(stage: &Stage) -> Self {
        let shared = stage.0.clone();
        let running = shared.running.fetch_add(1, Ordering::SeqCst) + 1;
        shared.most_running.fetch_max(running, Ordering::SeqCst);
        shared.began.add_permits(1);
        Self(shared)
    }
}

impl Drop for OnStage {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
        self.0.ended.add_permits(1);
    }
}

impl Stage {
    fn router(&self) -> Router {
        let [once, again] = [0; 2].map(|_| self.clone());
        Router::new()
            .unary(ECHO, async |request| Ok(request.into_inner()))
            .unary(HOLD, move |request| once.clone().hold(request.into_inner()))
            .unary(HOLD_AGAIN, move |request| again.clone().hold(request.into_inner()))
    }

    async fn hold(self, number: u64) -> Result<u64, Status> {
        let _on_stage = OnStage::enter(&self);
        self.0.go.acquire().await.expect("nobody closes it").forget();
        Ok(number)
    }

    /// A server of these handlers.
    async fn open(&self, device: Device) -> Server {
        self.open_at(device.any()).await
    }

    async fn open_at(&self, device: &str) -> Server {
        let server = Server::builder().add_service(self.router()).service(7).open(device).await;
        server.unwrap_or_else(|why| panic!("{device}: {why}"))
    }

    /// Lets handlers go on.
    fn go(&self, handlers: usize) {
        self.0.go.add_permits(handlers);
    }

    /// Waits until one more handler has begun.
    async fn has_begun(&self) {
        in_time(self.0.began.acquire()).await.expect("nobody closes it").forget();
    }

    /// Waits until one more handler has ended, or was dropped.
    async fn has_ended(&self) {
        in_time(self.0.ended.acquire()).await.expect("nobody closes it").forget();
    }

    /// How many handlers have begun that the test has not waited for.
    fn begun(&self) -> usize {
        self.0.began.available_permits()
    }
}

/// A server in a runtime of its own. When the server ends, so does all that belongs to it, as when
/// a process ends: the device can be opened again.
struct Apart {
    server: Server,
    runtime: Runtime,
}

impl Apart {
    async fn open(stage: &Stage, device: &str) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a thread can be started");
        let (stage, device) = (stage.clone(), device.to_owned());
        let server = runtime.spawn(async move { stage.open_at(&device).await });
        Self { server: server.await.expect("no panic"), runtime }
    }

    async fn end(self) {
        let Self { server, runtime } = self;
        let end = tokio::task::spawn_blocking(|| {
            drop(server);
            runtime.shutdown_timeout(Duration::from_secs(30));
        });
        end.await.expect("no panic");
    }
}

async fn connected(server: &Server) -> Client<Channel> {
    Client::new(Channel::connect(server.name()).await.expect("the server is there"))
}

/// A client whose calls wait for the next server when there is none.
async fn patient(server: &Server) -> Client<Channel> {
    let channel = Channel::builder().wait_for_ready(true).connect(server.name()).await;
    Client::new(channel.expect("the server is there"))
}

/// Echoes a text, which shows that the server takes calls.
async fn echoes(client: &Client<Channel>) {
    let echo = client.unary(ECHO, "still here".to_owned());
    assert_eq!(in_time(echo).await.expect("an answer").into_inner(), "still here");
}

/// Awaits a future that must not take for ever, and returns its output.
async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("it ends in time")
}

/// Polls a future once. Returns whether it waits.
async fn waits(future: &mut (impl Future + Unpin)) -> bool {
    std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context).is_pending()))
        .await
}
