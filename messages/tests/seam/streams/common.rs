//! Endpoints at the two ends of something, and what tests send.

use std::future::Future;
use std::sync::mpsc;
use std::thread;

use bytes::Bytes;
use doorbell_kit::PATIENCE;
use doorbell_messages::streams::{Endpoint, EndpointBuilder, Peer};
use doorbell_verbs::{Config, Progress};
use tokio::runtime::Builder;

/// The devices of two endpoints, and how their NICs are run.
#[derive(Clone, Debug)]
pub struct Ends {
    pub devices: [String; 2],
    pub config: Config,
}

/// The two interfaces of a lab's cable, both of which this thread's namespace has.
pub const CABLE: [&str; 2] = ["a0", "b0"];

impl Ends {
    pub fn shm() -> Self {
        Self::of(["shm", "shm"])
    }

    /// As [`shm`](Self::shm), with NICs that threads of their own run.
    pub fn shm_dedicated() -> Self {
        let config = Config { progress: Progress::Dedicated { core: None }, ..Config::default() };
        Self { config, ..Self::shm() }
    }

    pub fn udp() -> Self {
        Self::of(["udp:127.0.0.1:0", "udp:127.0.0.1:0"])
    }

    pub fn packet() -> Self {
        Self::of(CABLE.map(|end| format!("packet:{end}")))
    }

    pub fn packet_v2() -> Self {
        // Addresses that the kernel does not have.
        Self::of(
            [(CABLE[0], 11), (CABLE[1], 12)]
                .map(|(end, host)| format!("packet-v2:{end},10.219.0.{host}/24")),
        )
    }

    fn of(devices: [impl Into<String>; 2]) -> Self {
        Self { devices: devices.map(Into::into), config: Config::default() }
    }

    async fn open(&self, end: usize, builder: EndpointBuilder) -> Endpoint {
        let config = self.config.clone();
        let opened = builder.endpoint(|endpoint| endpoint.nic(config)).open(&self.devices[end]);
        opened.await.unwrap_or_else(|why| panic!("{}: {}", self.devices[end], why))
    }

    /// Opens a server, and a client without handlers that has connected to it.
    pub async fn pair(&self, server: EndpointBuilder) -> (Endpoint, Endpoint, Peer) {
        self.pair_of(server, Endpoint::builder()).await
    }

    /// Opens a server, and a client that has connected to it.
    pub async fn pair_of(
        &self,
        server: EndpointBuilder,
        client: EndpointBuilder,
    ) -> (Endpoint, Endpoint, Peer) {
        let server = self.open(0, server).await;
        let client = self.open(1, client).await;
        let peer = client.connect(server.name()).await.expect("the server is there");
        (server, client, peer)
    }
}

/// Runs a test in a runtime of one thread, or of two. It must not take as long as nothing takes
/// that does not hang.
#[track_caller]
pub fn run<F>(threads: usize, future: impl FnOnce() -> F + Send + 'static)
where
    F: Future<Output = ()>,
{
    let (done, is_done) = mpsc::channel();
    let thread = thread::spawn(move || {
        let built = match threads {
            1 => Builder::new_current_thread().enable_all().build(),
            _ => Builder::new_multi_thread().worker_threads(threads).enable_all().build(),
        };
        built.expect("a runtime").block_on(async { future().await });
        let _ = done.send(());
    });
    if is_done.recv_timeout(2 * PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("it hangs: nothing takes twice {PATIENCE:?}");
    }
    thread.join().unwrap_or_else(|why| std::panic::resume_unwind(why));
}

/// Numbers that look like chance, and are the same each time.
#[derive(Clone)]
pub struct Numbers(pub u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below another.
    pub fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }

    /// A length: often a short one, sometimes one around that of a packet, or of several.
    pub fn len(&mut self) -> usize {
        match self.below(8) {
            0 => 0,
            1..4 => self.below(64),
            4..6 => self.below(2000),
            6 => 4000 + self.below(300),
            _ => self.below(20_000),
        }
    }
}

/// The bytes of a message of a number.
pub fn body(number: u64, len: usize) -> Bytes {
    let mut numbers = Numbers::new(number + 1);
    (0..len).map(|_| numbers.next() as u8).collect()
}

/// Lets other tasks run until a condition holds.
pub async fn until(mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("it comes to hold");
}
