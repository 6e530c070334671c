//! Two endpoints, whatever they are over and whoever runs their NICs.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use doorbell_bytestream::{Config, Endpoint, ServiceId, Stream};
use doorbell_kit::PATIENCE;
use doorbell_verbs::{Config as NicConfig, Nic, Progress};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::runtime::{Builder, Runtime};

pub const SERVICE: ServiceId = ServiceId(7);

/// A kind of device that a NIC runs on.
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

/// The names of two devices that nobody else has.
pub fn names(over: Over) -> [String; 2] {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (own, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    [0, 1].map(|end| match over {
        Over::Shm => format!("shm:streams-{own}-{count}/{end}"),
        Over::Udp => "udp:127.0.0.1:0".to_owned(),
        Over::Packet => format!("packet:{}", CABLE[end]),
        Over::PacketV2 => format!("packet-v2:{}", CABLE[end]),
    })
}

/// A NIC as customary, but that connections rest for a moment only.
pub fn inline() -> NicConfig {
    NicConfig { time_wait: Duration::from_millis(5), ..NicConfig::default() }
}

/// A NIC of the given kind that a thread of its own runs.
pub fn dedicated() -> NicConfig {
    NicConfig { progress: Progress::Dedicated { core: None }, ..inline() }
}

/// Two NICs that can reach each other.
pub fn nics(over: Over, config: &NicConfig) -> [Nic; 2] {
    names(over).map(|name| {
        Nic::builder()
            .config(config.clone())
            .open_blocking(&name)
            .expect("nobody else has that name")
    })
}

/// Endpoints on two NICs.
pub async fn endpoints(nics: &[Nic; 2], config: &Config) -> [Endpoint; 2] {
    let open = async |nic| Endpoint::builder().config(config.clone()).on(nic).await.expect("room");
    [open(&nics[0]).await, open(&nics[1]).await]
}

/// A stream between two endpoints.
pub async fn connected([near, far]: &[Endpoint; 2]) -> (Stream, Stream) {
    let mut listener = far.listen(SERVICE).await.expect("nobody else listens");
    let name = listener.name().clone();
    let (asked, taken) = tokio::join!(near.connect(&name), listener.accept());
    (asked.expect("the peer listens"), taken.expect("a peer asks"))
}

/// A runtime of that kind.
pub fn runtime(runs: Runs) -> Runtime {
    let built = match runs {
        Runs::CurrentThread => Builder::new_current_thread().enable_all().build(),
        Runs::MultiThread => Builder::new_multi_thread().worker_threads(2).enable_all().build(),
    };
    built.expect("a runtime")
}

/// Runs a future where programs are said to run. It must not take as long as nothing takes that
/// does not hang.
#[track_caller]
pub fn run<F>(runs: Runs, future: impl FnOnce() -> F + Send + 'static) -> F::Output
where
    F: Future,
    F::Output: Send + 'static,
{
    let (done, is_done) = mpsc::channel();
    let thread = thread::spawn(move || {
        let result = runtime(runs).block_on(async { future().await });
        let _ = done.send(());
        result
    });
    if is_done.recv_timeout(2 * PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("it hangs: nothing takes twice {PATIENCE:?}");
    }
    thread.join().unwrap_or_else(|why| std::panic::resume_unwind(why))
}

/// Runs a program over NICs that are opened where it runs.
#[track_caller]
pub fn over<F>(
    over: Over,
    config: NicConfig,
    runs: Runs,
    program: impl FnOnce([Nic; 2]) -> F + Send + 'static,
) where
    F: Future<Output = ()>,
{
    run(runs, move || async move { program(nics(over, &config)).await });
}

/// The bytes of a stream by their places: those of different directions differ.
pub fn bytes(direction: u8, from: usize, len: usize) -> Vec<u8> {
    let byte = |at: usize| (at.wrapping_mul(31) ^ at >> 8 ^ at >> 16) as u8;
    (from..from + len).map(|at| byte(at) ^ direction).collect()
}

/// Reads to the end of a stream, and checks each byte. How many there were.
pub async fn read_all(mut stream: impl AsyncRead + Unpin, direction: u8) -> usize {
    let (mut buffer, mut at) = (vec![0; 50_000], 0);
    loop {
        let read = stream.read(&mut buffer).await.expect("the stream does not fail");
        if read == 0 {
            return at;
        }
        assert!(buffer[..read] == bytes(direction, at, read), "not what was written at {at}");
        at += read;
    }
}
