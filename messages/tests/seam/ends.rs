//! Two NICs that reach each other, whatever they are over, for endpoints of tagged messages.

use std::future::Future;
use std::ops::Range;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use doorbell_am::{Bundle, BundleConfig};
use doorbell_core::encap::Version;
use doorbell_kit::{PATIENCE, lab};
use doorbell_messages::{Endpoint, EndpointBuilder, Message, Peer};
use doorbell_simulation::{Ether, Faults, LinkConfig, passing};
use doorbell_verbs::{Config, KeepAlive, Nic, Progress};
use tokio::runtime::Builder;

/// A kind of device that NICs use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    Shm,
    Udp,
    /// The two interfaces of a lab's cable.
    Packet,
    PacketV2,
    /// A simulated cable in virtual time, with faults that depend on the seed.
    Fabric {
        seed: u64,
    },
}

/// A runtime that a test runs in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runs {
    CurrentThread,
    MultiThread,
}

/// The interfaces of a lab's cable, both of which are in the namespace of the test's thread.
const CABLE: [&str; 2] = ["a0", "b0"];

/// What the simulated cable does to frames.
const FAULTS: Faults =
    Faults { loss: 0.02, duplication: 0.02, corruption: 0.01, reordering: 0.05, ..Faults::NONE };

/// A NIC that is run by the threads that wait for it, and whose connections rest for a moment only.
pub fn inline() -> Config {
    Config { time_wait: Duration::from_millis(5), ..Config::default() }
}

/// A NIC as by [`inline`], but run by a thread of its own.
pub fn dedicated() -> Config {
    Config { progress: Progress::Dedicated { core: None }, ..inline() }
}

/// Two NICs that reach each other, and what lets time pass for them if their time is virtual.
pub struct Ends {
    bundles: [Bundle; 2],
    ether: Option<Ether>,
}

impl Ends {
    fn new(over: Over, config: &Config) -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let name = |end: usize| match over {
            Over::Shm => format!("shm:messages-{process}-{number}/{end}"),
            Over::Udp => "udp:127.0.0.1:0".to_owned(),
            Over::Packet => format!("packet:{}", CABLE[end]),
            Over::PacketV2 => format!("packet-v2:{}", CABLE[end]),
            Over::Fabric { .. } => unreachable!("a simulated network has no names"),
        };
        if let Over::Fabric { seed } = over {
            return Self::simulated(seed, config);
        }
        let open = |end| {
            let nic = Nic::builder().config(config.clone()).open_blocking(&name(end));
            nic.unwrap_or_else(|why| panic!("{}: {}", name(end), doorbell_kit::chain(&why)))
        };
        Self { bundles: [0, 1].map(|end| bundle(&open(end))), ether: None }
    }

    fn simulated(seed: u64, config: &Config) -> Self {
        let link =
            LinkConfig { mtu: 4200, latency: Duration::from_micros(20), ..LinkConfig::default() };
        let (ether, _, stations) =
            Ether::cabled(seed, link.with_faults(FAULTS), Version::V2Ipv4, false);
        let bundles = [0, 1].map(|end| {
            let seed = Some(2 * seed + end as u64);
            // While a task waits for Tokio's clock, minutes of virtual time may pass, and a NIC
            // whose thread is about to run answers nothing: silence tells nothing here.
            let keep_alive = KeepAlive { idle: Duration::MAX, busy: Duration::MAX };
            let config = Config { seed, keep_alive, spin: Duration::ZERO, ..config.clone() };
            let station = ether.station(stations[end]).expect("descriptors");
            bundle(&Nic::builder().config(config).on(station).expect("a NIC"))
        });
        Self { bundles, ether: Some(ether) }
    }

    /// Opens an endpoint on the NIC of a number.
    pub async fn open(&self, end: usize, builder: EndpointBuilder) -> Endpoint {
        builder.on_bundle(&self.bundles[end]).await.expect("the NIC has room")
    }

    /// Opens an endpoint on each NIC, and connects the first to the second.
    pub async fn pair(&self, window: usize) -> Pair {
        let builder = || Endpoint::builder().window(window);
        let (near, far) = (self.open(0, builder()).await, self.open(1, builder()).await);
        let peer = near.connect(far.name()).await.expect("the other endpoint is there");
        Pair { near, far, peer }
    }
}

fn bundle(nic: &Nic) -> Bundle {
    Bundle::new(nic, &BundleConfig::default()).expect("the NIC has room")
}

/// Two endpoints of which the first has connected to the other.
pub struct Pair {
    pub near: Endpoint,
    pub far: Endpoint,
    /// The second endpoint, as the first sees it.
    pub peer: Peer,
}

/// Runs a test over a device in a runtime. The test must not take as long as nothing takes that
/// does not hang.
#[track_caller]
pub fn run<F, T>(runs: Runs, over: Over, config: Config, test: T)
where
    F: Future<Output = ()>,
    T: FnOnce(Ends) -> F + Send + 'static,
{
    let (done, is_done) = mpsc::channel();
    let thread = thread::spawn(move || {
        let built = match runs {
            Runs::CurrentThread => Builder::new_current_thread().enable_all().build(),
            Runs::MultiThread => Builder::new_multi_thread().worker_threads(2).enable_all().build(),
        };
        built.expect("a runtime").block_on(async {
            let ends = Ends::new(over, &config);
            match ends.ether.clone() {
                Some(ether) => passing(&ether, test(ends)).await,
                None => test(ends).await,
            }
        });
        let _ = done.send(());
    });
    if is_done.recv_timeout(2 * PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("it hangs: nothing takes twice {PATIENCE:?}");
    }
    thread.join().unwrap_or_else(|why| std::panic::resume_unwind(why));
}

/// Plugs in the cable of the devices [`Packet`](Over::Packet) and [`PacketV2`](Over::PacketV2).
pub fn plug(lab: &lab::Lab) {
    let [near, far] = CABLE;
    lab.loopback(near, far, 9000).expect("a lab has cables");
}

/// Makes a body that tells its number and the place of each byte.
pub fn body(number: u64, len: usize) -> Bytes {
    (0..len).map(|at| byte(number, at)).collect()
}

fn byte(number: u64, at: usize) -> u8 {
    (at.wrapping_mul(7) ^ (at / 251)) as u8 ^ number.wrapping_mul(0x9E37_79B9) as u8
}

/// Checks each byte of a message whose body was made by [`body`].
#[track_caller]
pub fn check(message: &Message, number: u64, len: usize) {
    assert_eq!(message.body.len(), len, "the length of message {number}");
    let wrong = (0..len).find(|&at| message.body[at] != byte(number, at));
    assert_eq!(wrong, None, "the first wrong byte of message {number}, which has {len} bytes");
}

/// Returns the numbers of a range in an order that a seed chooses.
pub fn shuffled(numbers: Range<u64>, seed: u64) -> Vec<u64> {
    let (mut luck, mut numbers) =
        (doorbell_simulation::Luck::new(seed), numbers.collect::<Vec<_>>());
    for at in (1..numbers.len()).rev() {
        numbers.swap(at, luck.below(at as u64 + 1) as usize);
    }
    numbers
}
