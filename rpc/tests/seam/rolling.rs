//! A rolling restart of three servers under load: no idempotent call fails.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use doorbell_am::Name;
use doorbell_kit::child::{self, Child};
use doorbell_rpc::{Client, Method, Request, Retries, Router, Server, Servers};
use tower::ServiceBuilder;
use tower::balance::p2c::Balance;
use tower::buffer::Buffer;
use tower::load::{CompleteOnResponse, PendingRequestsDiscover};

/// Answers with twice the number.
use crate::common::fixed;

const DOUBLE: Method<u64, u64> = Method::new("double").idempotent();

/// The time that a call has, on a machine that does much else.
const DEADLINE: Duration = Duration::from_secs(60);

/// How many tasks call, one call after the other.
const CALLERS: u64 = 32;

/// Serves until the process is killed. Tells when the server is there, and when it is called first.
async fn serves(device: &str) -> ! {
    let called = Arc::new(Once::new());
    let router = Router::new().unary(DOUBLE, move |request| {
        called.call_once(|| child::tell("called"));
        async move { Ok(2 * request.into_inner()) }
    });
    let server = Server::builder().add_service(router).service(7).open(device).await;
    let server = server.expect("nobody has the device");
    child::tell(server.name());
    std::future::pending().await
}

/// Kills three servers, one after the other, each of which is started again before the next one is
/// killed, while tasks call.
async fn rolls(test: &str, kind: &str) {
    if let Some(device) = child::part() {
        serves(&device).await;
    }
    let devices = [0; 3].map(|_| fixed(kind));
    let mut children = devices.each_ref().map(|device| Child::start(test, device, None));
    let names = children.each_mut().map(|child| child.hear().parse::<Name>().expect("a name"));
    let servers = Servers::list(names).watch().expect("there is a runtime");
    let servers = PendingRequestsDiscover::new(servers, CompleteOnResponse::default());
    let balance = Buffer::new(Balance::new(servers), 2 * CALLERS as usize);
    let retries = ServiceBuilder::new().retry(Retries::new()).service(balance);
    let client = Client::new(retries);
    let (over, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let callers = (0..CALLERS).map(|caller| {
        let (client, over, answered) = (client.clone(), over.clone(), answered.clone());
        tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                let mut request = Request::new(caller);
                request.set_timeout(DEADLINE);
                let twice = client.unary(DOUBLE, request).await?;
                assert_eq!(twice.into_inner(), 2 * caller);
                answered.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<_, doorbell_rpc::Status>(())
        })
    });
    let callers: Vec<_> = callers.collect();
    let restarts = tokio::task::spawn_blocking({
        let test = test.to_owned();
        move || {
            for child in &mut children {
                assert_eq!(child.hear(), "called");
            }
            for (child, device) in children.iter_mut().zip(&devices) {
                assert!(!child.kill().success());
                *child = Child::start(&test, device, None);
                // The next server goes when this one has calls again. A caller that waited for it
                // may be quicker than this server's word that it is there.
                let told = [child.hear(), child.hear()];
                assert!(told.iter().any(|word| word == "called"), "{told:?}");
            }
            children
        }
    });
    let _children = restarts.await.expect("each server is started again");
    over.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.expect("no panic").expect("no call fails");
    }
    println!("{kind}: {} calls were answered", answered.load(Ordering::Relaxed));
}

#[tokio::test(flavor = "multi_thread")]
async fn over_udp_a_rolling_restart_of_three_servers_costs_no_idempotent_call() {
    rolls("rolling::over_udp_a_rolling_restart_of_three_servers_costs_no_idempotent_call", "udp")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_shared_memory_a_rolling_restart_of_three_servers_costs_no_idempotent_call() {
    let test =
        "rolling::over_shared_memory_a_rolling_restart_of_three_servers_costs_no_idempotent_call";
    rolls(test, "shm").await;
}
