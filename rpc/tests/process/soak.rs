//! Calls of all kinds at full load, over sockets and over a simulated cable with faults: each
//! answer is right, memory does not grow, and nothing is left at either end.
//!
//! A run takes a few seconds, or as many as `DOORBELL_SOAK` says. Ten minutes of each:
//! `DOORBELL_SOAK=600 cargo test -p doorbell-rpc --test process soak -- --nocapture --test-threads=1`

use std::time::{Duration, Instant};

use doorbell_kit::child;
use doorbell_rpc::{Channel, Server, ServerBuilder};
use doorbell_simulation::{Faults, passing};

use crate::mixed::{Company, holds_nothing, router};
use crate::virtual_time::ends;

use crate::ALLOCATED;

/// How long calls are made before they are stopped, and what is left is counted.
const PHASE: Duration = Duration::from_millis(500);

/// The phases after which everything is there that is kept for later use.
const WARM_UP: usize = 2;

/// The fewest phases, in a run that is asked to be short.
const FEWEST: usize = WARM_UP + 4;

/// The most bytes that may be allocated when all calls are over, beyond those after the warm-up.
/// Kept for later use are memory for bodies, and tables as long as they have ever been.
const MOST_GROWN: isize = 16 << 20;

fn time() -> Duration {
    let asked = std::env::var("DOORBELL_SOAK").ok();
    let seconds =
        asked.map_or(3, |text| text.parse().expect("DOORBELL_SOAK is a number of seconds"));
    Duration::from_secs(seconds)
}

fn builder() -> ServerBuilder {
    // A client that has gone is soon forgotten.
    Server::builder().add_service(router()).sessions(64, Duration::from_millis(100))
}

/// Has a client that stays, and another one in each phase, make calls of all kinds.
async fn soak(server: Server, connect: impl AsyncFn() -> Channel) {
    let mut channel = connect().await;
    let began = Instant::now();
    let (mut calls, mut after_warm_up, mut phases) = (0, 0, 0);
    while phases < FEWEST || began.elapsed() < time() {
        let first = 1000 * phases as u64;
        let mut company = Company::over(channel, first..first + 48);
        let mut guest = Company::over(connect().await, first + 500..first + 516);
        tokio::time::sleep(PHASE).await;
        // However slow the machine is, either is answered.
        company.more(1).await;
        guest.more(1).await;
        calls += company.made() + guest.made();
        channel = company.stop().await;
        let guest = guest.stop().await;
        holds_nothing(|| guest.usage()).await;
        drop(guest);
        holds_nothing(|| channel.usage()).await;
        holds_nothing(|| server.usage()).await;
        if phases == WARM_UP {
            after_warm_up = ALLOCATED.bytes();
        }
        phases += 1;
        let grown = ALLOCATED.bytes() - after_warm_up;
        assert!(phases <= WARM_UP || grown <= MOST_GROWN, "{grown} bytes more after {calls} calls");
    }
    let grown = ALLOCATED.bytes() - after_warm_up;
    println!("{calls} calls in {phases} phases: {after_warm_up} bytes are held, and {grown} more");
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
}

#[test]
fn over_sockets_memory_does_not_grow_at_full_load() {
    child::alone(|| {
        runtime().block_on(async {
            let server = builder().open("udp:127.0.0.1:0").await.expect("the device opens");
            let name = server.name().clone();
            let connect = async || Channel::connect(&name).await.expect("the server is there");
            soak(server, connect).await;
        });
    });
}

#[test]
fn over_a_cable_with_faults_memory_does_not_grow_at_full_load() {
    child::alone(|| {
        let faults = Faults {
            loss: 0.02,
            duplication: 0.02,
            corruption: 0.01,
            reordering: 0.05,
            ..Faults::NONE
        };
        runtime().block_on(async {
            let (ether, _, [far, near]) = ends(2, faults);
            let soaks = async {
                let server = builder().on_bundle(&far).await.expect("there is room");
                let name = server.name().clone();
                let connect = async || {
                    // A lost packet is repeated when time has passed on the cable, which is slow at
                    // full load on a busy machine.
                    let patient = Channel::builder().connect_timeout(Duration::from_secs(60));
                    let channel = patient.on_bundle(&near).connect_lazily(&name).await;
                    channel.expect("there is room")
                };
                soak(server, connect).await;
            };
            passing(&ether, soaks).await;
        });
    });
}
