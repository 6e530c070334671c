//! Calls to a process that is killed.

use std::time::{Duration, Instant};

use doorbell_am::{
    Bundle, BundleConfig, CallError, Endpoint, EndpointConfig, Handlers, Kept, RequestId,
    SendError, Tag,
};
use doorbell_kit::child::{self, Child};
use doorbell_verbs::Nic;

use crate::common::{Over, runtime};

const KEEP: RequestId<u64> = RequestId::new(0, "keep");
const CALLS: usize = 100;

/// Much less than the half minute for which a connection may be idle, and much more than a busy
/// machine takes for the second or so that it should be.
const AT_MOST: Duration = Duration::from_secs(15);

/// Keeps what comes, and tells when that is all.
fn serves(at: &str) {
    runtime().block_on(async {
        let mut kept: Vec<Kept> = Vec::new();
        let keeps = Handlers::new().request(KEEP, move |request, _| {
            kept.push(request.keep());
            if kept.len() == CALLS {
                child::tell("all have come");
            }
        });
        let nic = Nic::open(at).await.expect("nobody has it");
        let bundle = Bundle::new(&nic, &BundleConfig::default()).expect("room");
        let config =
            EndpointConfig { credits: CALLS, first_credits: CALLS, ..EndpointConfig::default() };
        let server =
            Endpoint::builder().config(config).on_bundle(&bundle, keeps).await.expect("room");
        child::tell(server.name());
        std::future::pending::<()>().await;
    });
}

fn killed_with_calls_pending(test: &'static str, over: Over) {
    if let Some(at) = child::part() {
        return serves(&at);
    }
    let own = std::process::id();
    let [here, there] = match over {
        Over::Shm => ["here", "there"].map(|end| format!("shm:am-killed-{own}/{end}")),
        Over::Udp => ["udp:127.0.0.1:0", "udp:127.0.0.1:0"].map(str::to_owned),
    };
    runtime().block_on(async {
        let mut child = Child::start(test, &there, None);
        let name = child.hear().parse().expect("it tells its name");
        let nic = Nic::open(&here).await.expect("nobody has it");
        let bundle = Bundle::new(&nic, &BundleConfig::default()).expect("room");
        let config =
            EndpointConfig { credits: CALLS, first_credits: CALLS, ..EndpointConfig::default() };
        let near = Endpoint::builder()
            .config(config)
            .on_bundle(&bundle, Handlers::new())
            .await
            .expect("room");
        let peer = near.map(0, &name, Tag(1)).await.expect("it is there");
        let calls: Vec<_> = (0..CALLS)
            .map(|number| {
                let peer = peer.clone();
                tokio::spawn(async move { peer.call(KEEP, number as u64).await })
            })
            .collect();
        let heard = tokio::task::spawn_blocking(move || {
            assert_eq!(child.hear(), "all have come");
            child
        });
        let mut child = heard.await.expect("it tells");
        let waits = tokio::spawn(async move { peer.request(KEEP, 0).await });
        // All are acknowledged, and nothing is under way.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!child.kill().success());
        let killed = Instant::now();
        for call in calls {
            match call.await.expect("it does not panic") {
                Err(CallError::PeerGone { .. }) => {}
                other => panic!("{other:?}"),
            }
        }
        let waited = waits.await.expect("it does not panic");
        assert!(matches!(waited, Err(SendError::Gone { .. })), "{waited:?}");
        assert!(killed.elapsed() < AT_MOST, "{:?} until all were told", killed.elapsed());
    });
}

#[test]
fn over_shared_memory_all_callers_of_a_process_that_is_killed_are_told_soon() {
    let test = "killed::over_shared_memory_all_callers_of_a_process_that_is_killed_are_told_soon";
    killed_with_calls_pending(test, Over::Shm);
}

#[test]
fn over_udp_all_callers_of_a_process_that_is_killed_are_told_soon() {
    let test = "killed::over_udp_all_callers_of_a_process_that_is_killed_are_told_soon";
    killed_with_calls_pending(test, Over::Udp);
}
