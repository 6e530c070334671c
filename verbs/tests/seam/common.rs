//! Two NICs over any device, in any mode of progress, for the tests of this folder.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use doorbell_kit::PATIENCE;
use doorbell_verbs::{
    Buf, Config, Domain, Name, Nic, Progress, QueuePair, QueuePairConfig, Queues, QueuesConfig,
    Region, Registered, RemoteMemory, Rights, ServiceId,
};
use tokio::runtime::{Builder, Handle, Runtime};

/// The service that listeners of these tests listen to.
pub const SERVICE: ServiceId = ServiceId(7);

/// The devices that a NIC may be over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    Shm,
    Udp,
    /// Raw Ethernet, on the cable of a lab.
    Packet,
    PacketV2,
}

/// The places where the tests' programs run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runs {
    CurrentThread,
    MultiThread,
    /// On threads of their own, without a runtime.
    Nowhere,
}

/// The two interfaces of a lab's cable, both of which are in this thread's namespace.
pub const CABLE: [&str; 2] = ["a0", "b0"];

/// Returns the names of two devices that no other test has.
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

/// Returns the default configuration with a time-wait that lasts only a moment.
pub fn brief() -> Config {
    Config { time_wait: Duration::from_millis(5), ..Config::default() }
}

/// Returns a configuration in which no task spins, so that tasks sleep each time.
pub fn sleepy() -> Config {
    Config { spin: Duration::ZERO, ..brief() }
}

/// Opens two NICs that can reach each other.
pub fn nics(over: Over, config: &Config) -> (Nic, Nic) {
    let [near, far] = names(over);
    let open = |name: &str| {
        Nic::builder()
            .config(config.clone())
            .open_blocking(name)
            .expect("nobody else has that name")
    };
    (open(&near), open(&far))
}

/// Returns a NIC's address as peers ask for it.
pub fn address(nic: &Nic) -> String {
    nic.address().to_string()
}

/// Makes a runtime of the given kind.
pub fn runtime(runs: Runs) -> Option<Runtime> {
    let built = match runs {
        Runs::CurrentThread => Builder::new_current_thread().enable_all().build(),
        Runs::MultiThread => Builder::new_multi_thread().worker_threads(2).enable_all().build(),
        Runs::Nowhere => return None,
    };
    Some(built.expect("a runtime"))
}

/// Runs something that may take only as long as something does that does not hang.
///
/// # Panics
/// Panics as `does` does, and when it hangs.
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

/// Runs a future in the given place.
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

/// A program's end of a connection, with memory in which the peer has all rights.
pub struct End<K = QueuePair> {
    pub pair: K,
    pub domain: Domain,
    pub memory: Registered,
    /// The memory of the peer's program.
    pub peer: RemoteMemory,
}

/// How much memory each end has.
pub const MEMORY: usize = 1 << 17;

/// Registers memory in which a peer has all rights.
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

/// Returns the configurations of two queue pairs with the tests' defaults.
pub fn customary() -> [QueuePairConfig; 2] {
    [(); 2].map(|()| QueuePairConfig::default())
}

/// Makes two connected queue pairs in domains of their own.
pub async fn connected(near: &Nic, far: &Nic) -> (End, End) {
    connected_as((&near.domain(), &far.domain()), customary()).await
}

/// Makes two connected queue pairs in the given domains with the given configurations.
pub async fn connected_as(
    domains: (&Domain, &Domain),
    configs: [QueuePairConfig; 2],
) -> (End, End) {
    connected_by(SERVICE, domains, configs).await
}

/// Makes two connected queue pairs by a service of their own: of several that connect at a time,
/// each needs one.
pub async fn connected_by(
    service: ServiceId,
    (near, far): (&Domain, &Domain),
    [here, there]: [QueuePairConfig; 2],
) -> (End, End) {
    let mut listener = far.nic().listen(service).await.expect("nobody else listens");
    let asks = async {
        let pair = near.queue_pair(&here).expect("room");
        pair.connect(Name::at(&*address(far.nic()), service.0), &[])
            .await
            .expect("the peer listens")
            .0
    };
    let takes = async {
        let pair = far.queue_pair(&there).expect("room");
        pair.accept(listener.accept().await.expect("a request"), &[])
            .await
            .expect("the peer waits")
            .0
    };
    let (asked, taken) = tokio::join!(asks, takes);
    ends((asked, near.clone()), (taken, far.clone()))
}

/// Makes two connected pairs of queues, whose completions go where their configurations say.
pub async fn joined(
    (near, here): (&Domain, &QueuesConfig),
    (far, there): (&Domain, &QueuesConfig),
) -> (End<Queues>, End<Queues>) {
    let mut listener = far.nic().listen(SERVICE).await.expect("nobody else listens");
    let asks = async {
        let pair = near.queues(here).expect("room");
        pair.connect(Name::at(&*address(far.nic()), SERVICE.0), &[])
            .await
            .expect("the peer listens")
            .0
    };
    let takes = async {
        let pair = far.queues(there).expect("room");
        pair.accept(listener.accept().await.expect("a request"), &[])
            .await
            .expect("the peer waits")
            .0
    };
    let (asked, taken) = tokio::join!(asks, takes);
    ends((asked, near.clone()), (taken, far.clone()))
}

/// Returns bytes that tell one message from another.
pub fn bytes(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251 + number * 13) as u8).collect()
}

/// Returns a buffer of bytes that tell one message from another.
pub fn buf(number: usize, len: usize) -> Buf {
    Buf::from(bytes(number, len))
}

/// Returns the first bytes of a region.
pub fn first(region: &Region, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    region.read_at(0, &mut bytes).expect("within");
    bytes
}

/// Returns the default configuration in dedicated mode.
pub fn dedicated() -> Config {
    Config { progress: Progress::Dedicated { core: None }, ..brief() }
}

/// Polls a future once, and returns its output if it is ready.
pub async fn now<F: Future>(future: F) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
