//! Two NICs, whatever they are over and whoever runs them.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use doorbell_kit::PATIENCE;
use doorbell_verbs::{
    Buf, Config, Domain, Nic, Progress, QueuePair, QueuePairConfig, Queues, QueuesConfig, Region,
    Registered, RemoteMemory, Rights, ServiceId,
};
use tokio::runtime::{Builder, Handle, Runtime};

/// What everybody listens to here.
pub const SERVICE: ServiceId = ServiceId(7);

/// What a NIC may be over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    Shm,
    Udp,
    /// In a lab, of which this is the cable.
    Packet,
    PacketV2,
}

/// Where programs run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runs {
    CurrentThread,
    MultiThread,
    /// On threads of their own, without a runtime.
    Nowhere,
}

/// The two interfaces of a lab's cable, both of which this thread's namespace has.
pub const CABLE: [&str; 2] = ["a0", "b0"];

/// The names of two devices that nobody else has.
pub fn names(over: Over) -> [String; 2] {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (own, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    [0, 1].map(|end| match over {
        Over::Shm => format!("shm:seam-{own}-{count}/{end}"),
        Over::Udp => "udp:127.0.0.1:0".to_owned(),
        Over::Packet => format!("packet:{}", CABLE[end]),
        Over::PacketV2 => format!("packet-v2:{}", CABLE[end]),
    })
}

/// Everything as customary, but that connections rest for a moment only.
pub fn brief() -> Config {
    Config { time_wait: Duration::from_millis(5), ..Config::default() }
}

/// The same, and nobody spins: everybody sleeps each time.
pub fn sleepy() -> Config {
    Config { spin: Duration::ZERO, ..brief() }
}

/// Two NICs that can reach each other.
pub fn nics(over: Over, config: &Config) -> (Nic, Nic) {
    let [near, far] = names(over);
    let open = |name: &str| Nic::open(name, config.clone()).expect("nobody else has that name");
    (open(&near), open(&far))
}

/// A NIC's address, as others ask for it.
pub fn address(nic: &Nic) -> String {
    nic.address().to_string()
}

/// A runtime of that kind.
pub fn runtime(runs: Runs) -> Option<Runtime> {
    let built = match runs {
        Runs::CurrentThread => Builder::new_current_thread().enable_all().build(),
        Runs::MultiThread => Builder::new_multi_thread().worker_threads(2).enable_all().build(),
        Runs::Nowhere => return None,
    };
    Some(built.expect("a runtime"))
}

/// Does something that must not take as long as nothing does that does not hang.
///
/// # Panics
/// As what is done, and when it hangs.
#[track_caller]
pub fn bounded<R: Send + 'static>(does: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, is_done) = mpsc::channel();
    let thread = thread::spawn(move || {
        let result = does();
        let _ = done.send(());
        result
    });
    if is_done.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("it hangs: nothing takes {PATIENCE:?}");
    }
    thread.join().unwrap_or_else(|why| std::panic::resume_unwind(why))
}

/// Runs a future where programs are said to run.
#[track_caller]
pub fn run<F>(runs: Runs, future: impl FnOnce() -> F + Send + 'static) -> F::Output
where
    F: Future,
    F::Output: Send + 'static,
{
    bounded(move || match runtime(runs) {
        Some(runtime) => runtime.block_on(async { future().await }),
        None => wait_for(future()),
    })
}

/// Waits for a future on this thread, without a runtime.
pub fn wait_for<F: Future>(future: F) -> F::Output {
    struct Unpark(thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Unpark(thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        let mut context = std::task::Context::from_waker(&waker);
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => thread::park(),
        }
    }
}

/// Runs two programs beside each other: as tasks, or without a runtime, as threads.
pub async fn both<A, B>(
    near: impl Future<Output = A> + Send + 'static,
    far: impl Future<Output = B> + Send + 'static,
) -> (A, B)
where
    A: Send + 'static,
    B: Send + 'static,
{
    if Handle::try_current().is_ok() {
        let (near, far) = (tokio::spawn(near), tokio::spawn(far));
        // Of two that wait for each other, the one that fails is to be heard of.
        let (near, far) = tokio::try_join!(near, far).expect("neither of them fails");
        return (near, far);
    }
    let (near, far) = (thread::spawn(move || wait_for(near)), thread::spawn(move || wait_for(far)));
    let failed = "neither of them fails";
    (near.join().expect(failed), far.join().expect(failed))
}

/// A program's end of a connection, and memory in which the other may do everything.
pub struct End<K = QueuePair> {
    pub pair: K,
    pub domain: Domain,
    pub memory: Registered,
    /// The other's memory.
    pub peer: RemoteMemory,
}

/// How much memory an end has.
pub const MEMORY: usize = 1 << 17;

/// Memory in which a peer may do everything.
pub fn lent(domain: &Domain) -> Registered {
    let rights = Rights::LOCAL_WRITE | Rights::REMOTE;
    domain.register(Region::new(MEMORY), rights).expect("room")
}

fn ends<K>((near, here): (K, Domain), (far, there): (K, Domain)) -> (End<K>, End<K>) {
    let (own, theirs) = (lent(&here), lent(&there));
    let peers = (theirs.remote(), own.remote());
    (
        End { pair: near, domain: here, memory: own, peer: peers.0 },
        End { pair: far, domain: there, memory: theirs, peer: peers.1 },
    )
}

/// What two queue pairs are if nothing else is said.
pub fn customary() -> [QueuePairConfig; 2] {
    [(); 2].map(|()| QueuePairConfig::default())
}

/// Two queue pairs of domains of their own, connected.
pub async fn connected(near: &Nic, far: &Nic) -> (End, End) {
    connected_as((&near.domain(), &far.domain()), customary()).await
}

/// The same in these domains, configured so.
pub async fn connected_as(
    domains: (&Domain, &Domain),
    configs: [QueuePairConfig; 2],
) -> (End, End) {
    connected_by(SERVICE, domains, configs).await
}

/// The same by a service, of which each of several that connect at a time needs one of its own.
pub async fn connected_by(
    service: ServiceId,
    (near, far): (&Domain, &Domain),
    [here, there]: [QueuePairConfig; 2],
) -> (End, End) {
    let mut listener = far.nic().listen(service).await.expect("nobody else listens");
    let asks = async {
        let pair = near.queue_pair(&here).expect("room");
        pair.connect(&address(far.nic()), service, &[]).await.expect("the peer listens").0
    };
    let takes = async {
        let pair = far.queue_pair(&there).expect("room");
        pair.accept(listener.accept().await, &[]).await.expect("the peer waits").0
    };
    let (asked, taken) = tokio::join!(asks, takes);
    ends((asked, near.clone()), (taken, far.clone()))
}

/// Two pairs of queues, whose completions go where their configurations say.
pub async fn joined(
    (near, here): (&Domain, &QueuesConfig),
    (far, there): (&Domain, &QueuesConfig),
) -> (End<Queues>, End<Queues>) {
    let mut listener = far.nic().listen(SERVICE).await.expect("nobody else listens");
    let asks = async {
        let pair = near.queues(here).expect("room");
        pair.connect(&address(far.nic()), SERVICE, &[]).await.expect("the peer listens").0
    };
    let takes = async {
        let pair = far.queues(there).expect("room");
        pair.accept(listener.accept().await, &[]).await.expect("the peer waits").0
    };
    let (asked, taken) = tokio::join!(asks, takes);
    ends((asked, near.clone()), (taken, far.clone()))
}

/// Bytes by which a message is known from another.
pub fn bytes(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251 + number * 13) as u8).collect()
}

/// The same as a buffer.
pub fn buf(number: usize, len: usize) -> Buf {
    Buf::from(bytes(number, len))
}

/// The first bytes of a region.
pub fn first(region: &Region, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    region.read_at(0, &mut bytes).expect("within");
    bytes
}

/// Everything as customary, run by a thread of its own.
pub fn dedicated() -> Config {
    Config { progress: Progress::Dedicated { core: None }, ..brief() }
}

/// What a future gives at once, if it does.
pub async fn now<F: Future>(future: F) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
