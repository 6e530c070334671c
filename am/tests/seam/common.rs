//! Two endpoints, whatever they are over.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use doorbell_am::{
    Bundle, BundleConfig, CallError, Endpoint, EndpointConfig, Handlers, Peer, Reply, ReplyId,
    RequestId, Tag, Undeliverable,
};
use doorbell_kit::PATIENCE;
use doorbell_verbs::{Config, Nic};

pub const ADD: RequestId<(u64, u64)> = RequestId::new(0, "add");
pub const SUM: ReplyId<u64> = ReplyId::new(0, "sum");
pub const GO_ON: RequestId<()> = RequestId::new(1, "go on");

/// A runtime for a program that has a thread to itself.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// How many packets a NIC has received that were messages, where nothing is acknowledged by
/// packets: others make and end connections, and come when they like.
pub fn messages(nic: &Nic) -> u64 {
    let counters = nic.statistics().nic;
    counters.received - counters.management - counters.management_dropped
}

/// The devices that bundles are tested over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    Shm,
    Udp,
}

pub const ALL: [Over; 2] = [Over::Shm, Over::Udp];

/// A bundle on a NIC of its own.
pub fn bundle(over: Over) -> Bundle {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (own, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let device = match over {
        Over::Shm => format!("shm:am-{own}/{count}"),
        Over::Udp => "udp:127.0.0.1:0".to_owned(),
    };
    let config = Config { time_wait: Duration::from_millis(5), ..Config::default() };
    let nic =
        Nic::builder().config(config).open_blocking(&device).expect("nobody else has that name");
    Bundle::new(&nic, &BundleConfig::default()).expect("room")
}

/// An endpoint of a bundle of its own.
pub async fn endpoint<S>(over: Over, handlers: Handlers<S>) -> Endpoint {
    endpoint_with(over, handlers, EndpointConfig::default()).await
}

pub async fn endpoint_with<S>(
    over: Over,
    handlers: Handlers<S>,
    config: EndpointConfig,
) -> Endpoint {
    Endpoint::builder()
        .config(config)
        .on_bundle(&bundle(over), handlers)
        .await
        .expect("nobody else has that name")
}

/// Why a call was not delivered, or not answered.
#[track_caller]
pub fn undeliverable(answer: Result<Reply, CallError>) -> Undeliverable {
    match answer {
        Err(CallError::Undeliverable { why, .. }) => why,
        other => panic!("not as it should be: {other:?}"),
    }
}

/// The configuration of an endpoint whose peers have eight credits each, and never more.
pub fn of_eight_credits() -> EndpointConfig {
    EndpointConfig { credits: 8, ..EndpointConfig::default() }
}

/// Two endpoints, of which one has mapped the other at 0. Their peers have eight credits.
pub async fn mapped(over: Over, near: Handlers, far: Handlers) -> (Endpoint, Peer, Endpoint) {
    let near = endpoint_with(over, near, of_eight_credits()).await;
    let far = endpoint_with(over, far, of_eight_credits()).await;
    let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
    (near, peer, far)
}

/// Runs a program on every device, on runtimes of one thread and of several.
#[track_caller]
pub fn everywhere<F>(program: impl Fn(Over) -> F + Send + Sync + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    for over in ALL {
        for threads in [1, 2] {
            let mut builder = match threads {
                1 => tokio::runtime::Builder::new_current_thread(),
                _ => tokio::runtime::Builder::new_multi_thread(),
            };
            let runtime = builder.enable_all().build().expect("a runtime");
            let bounded = async { tokio::time::timeout(PATIENCE, program(over)).await };
            let in_time = runtime.block_on(bounded).is_ok();
            assert!(in_time, "{over:?} on {threads} threads hangs");
        }
    }
}
