//! A server and its clients, whatever they are over and whoever runs their NICs.

use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::common::fixed;
use bytes::Bytes;
use doorbell_kit::PATIENCE;
use doorbell_rpc::{
    Channel, ChannelBuilder, Client, Method, Raw, Router, Server, ServerBuilder, Status, Streaming,
};
use doorbell_verbs::{Config, Progress};
use futures_util::{StreamExt, stream};
use tokio::runtime::Builder;
use tokio::sync::Semaphore;

/// Adds two numbers, where the request is received.
pub const ADD: Method<(u64, u64), u64> = Method::new("add").idempotent();
/// Fails with a status.
pub const FAIL: Method<String, ()> = Method::new("fail");
/// Answers with what it was called with, in a task.
pub const ECHO: Method<Bytes, Bytes, Raw> = Method::new("echo");
/// Answers when the test lets it go.
pub const HOLD: Method<u64, u64> = Method::new("hold");
/// Streams the numbers below its argument.
pub const COUNT: Method<u64, u64> = Method::new("count");
/// Adds the numbers of a stream.
pub const SUM: Method<u64, u64> = Method::new("sum");
/// Streams what it is sent.
pub const REPEAT: Method<Bytes, Bytes, Raw> = Method::new("repeat");

/// A kind of device that NICs use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    Shm,
    Udp,
    /// In a lab, of which this is the cable.
    Packet,
    PacketV2,
}

/// Where the programs of a test run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runs {
    CurrentThread,
    MultiThread,
}

/// The two interfaces of a lab's cable, both of which this thread's namespace has.
pub const CABLE: [&str; 2] = ["a0", "b0"];

/// A NIC as customary, but that connections rest for a moment only.
pub fn inline() -> Config {
    Config { time_wait: Duration::from_millis(5), ..Config::default() }
}

/// As [`inline`], run by a thread of its own.
pub fn dedicated() -> Config {
    Config { progress: Progress::Dedicated { core: None }, ..inline() }
}

/// The devices of a server and of its clients, which nobody else has, and how their NICs are run.
#[derive(Clone, Debug)]
pub struct Ends {
    /// The server's device, which can be opened again under the same name.
    pub server: String,
    pub client: String,
    pub config: Config,
}

impl Ends {
    pub fn new(over: Over, config: Config) -> Self {
        let [server, client] = match over {
            Over::Shm => [fixed("shm"), "shm".to_owned()],
            Over::Udp => [fixed("udp"), "udp:127.0.0.1:0".to_owned()],
            Over::Packet => CABLE.map(|end| format!("packet:{end}")),
            // Addresses that the kernel does not have. Without one, a device draws another name
            // each time.
            Over::PacketV2 => [(CABLE[0], 11), (CABLE[1], 12)]
                .map(|(end, host)| format!("packet-v2:{end},10.219.0.{host}/24")),
        };
        Self { server, client, config }
    }

    /// Opens a server, always under the same name.
    pub async fn open(&self, server: ServerBuilder) -> Server {
        let config = self.config.clone();
        let server = server.service(7).endpoint(|endpoint| endpoint.nic(config));
        let opened = server.open(&self.server).await;
        opened.unwrap_or_else(|why| panic!("{}: {}", self.server, doorbell_kit::chain(&why)))
    }

    /// The configuration of a client's channel.
    pub fn channel(&self) -> ChannelBuilder {
        let config = self.config.clone();
        Channel::builder().device(&self.client).endpoint(|endpoint| endpoint.nic(config))
    }

    /// A client of a server.
    pub async fn client(&self, server: &Server) -> Client<Channel> {
        // Servers end and come again, and calls wait for them.
        let channel = self.channel().wait_for_ready(true).connect(server.name()).await;
        Client::new(channel.unwrap_or_else(|why| panic!("{}: {why}", self.client)))
    }
}

/// Tells when handlers begin and end, and lets them go.
#[derive(Clone)]
pub struct Stage(Arc<[Semaphore; 3]>);

impl Default for Stage {
    fn default() -> Self {
        Self(Arc::new([0; 3].map(Semaphore::new)))
    }
}

/// A handler that holds, until this is dropped.
struct Held(Stage);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.0[1].add_permits(1);
    }
}

impl Stage {
    /// Waits until one more handler has begun.
    pub async fn has_begun(&self) {
        self.0[0].acquire().await.expect("nobody closes it").forget();
    }

    /// How many handlers have begun that nobody has waited for.
    pub fn begun(&self) -> usize {
        self.0[0].available_permits()
    }

    /// Waits until one more handler has ended, or was dropped.
    pub async fn has_ended(&self) {
        self.0[1].acquire().await.expect("nobody closes it").forget();
    }

    /// Lets a handler go on.
    pub fn go(&self) {
        self.0[2].add_permits(1);
    }

    async fn hold(self, number: u64) -> Result<u64, Status> {
        let _held = Held(self.clone());
        self.0[0].add_permits(1);
        self.0[2].acquire().await.expect("nobody closes it").forget();
        Ok(number)
    }

    /// A server with a method of each kind.
    pub fn server(&self) -> ServerBuilder {
        let stage = self.clone();
        let router = Router::new()
            .unary(ADD, async |request| {
                let (one, other) = request.into_inner();
                Ok(one + other)
            })
            .inline(ADD)
            .unary(FAIL, async |request| Err::<(), _>(Status::data_loss(request.into_inner())))
            .unary(ECHO, async |request| Ok(request.into_inner()))
            .unary(HOLD, move |request| stage.clone().hold(request.into_inner()))
            .server_streaming(COUNT, async |request| {
                Ok(Streaming::new(stream::iter((0..request.into_inner()).map(Ok))))
            })
            .client_streaming(SUM, async |request| {
                let numbers: Streaming<u64> = request.into_inner();
                numbers.fold(Ok(0), async |sum, number| Ok(sum? + number?)).await
            })
            .streaming(REPEAT, async |request| {
                let pieces: Streaming<Bytes> = request.into_inner();
                Ok(pieces)
            });
        Server::builder().add_service(router)
    }
}

/// Checks that a client's server answers.
pub async fn answers(client: &Client<Channel>) {
    assert_eq!(client.unary(ADD, (2, 3)).await.expect("an answer").into_inner(), 5);
}

/// Runs a future where programs are said to run. It must not take as long as nothing takes that
/// does not hang.
#[track_caller]
pub fn run<F>(runs: Runs, future: impl FnOnce() -> F + Send + 'static)
where
    F: Future<Output = ()>,
{
    let (done, is_done) = mpsc::channel();
    let thread = thread::spawn(move || {
        let built = match runs {
            Runs::CurrentThread => Builder::new_current_thread().enable_all().build(),
            Runs::MultiThread => Builder::new_multi_thread().worker_threads(2).enable_all().build(),
        };
        built.expect("a runtime").block_on(async { future().await });
        let _ = done.send(());
    });
    if is_done.recv_timeout(2 * PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("it hangs: nothing takes twice {PATIENCE:?}");
    }
    thread.join().unwrap_or_else(|why| std::panic::resume_unwind(why));
}
