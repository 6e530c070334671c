//! Servers in processes of their own that are killed, stopped, blocked and restarted while 64
//! callers call them through a balancer. A history of all calls is judged afterwards.
//!
//! A run takes a few seconds, or as many as `DOORBELL_CHAOS` says, with the seed that
//! `DOORBELL_CHAOS_SEED` says. Ten minutes of each device:
//! `DOORBELL_CHAOS=600 cargo test -p doorbell-rpc --test seam chaos -- --nocapture --test-threads=1`

mod callers;
mod faults;
mod history;
mod server;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use doorbell_kit::child;
use doorbell_simulation::Luck;

use crate::common::fixed;
use callers::Callers;
use faults::{Fault, Fleet};
use history::History;

/// The time that calls have, as their callers say.
const DEADLINE: Duration = Duration::from_secs(1);

/// The time that calls have which must not fail: as long as a restart may take on a busy machine.
const PATIENT: Duration = Duration::from_secs(30);

/// How often each server is restarted in turn.
const ROUNDS: usize = 2;

/// How long faults are injected.
fn time() -> Duration {
    let asked = std::env::var("DOORBELL_CHAOS").ok();
    let seconds =
        asked.map_or(3, |text| text.parse().expect("DOORBELL_CHAOS is a number of seconds"));
    Duration::from_secs(seconds)
}

fn seed() -> u64 {
    let asked = std::env::var("DOORBELL_CHAOS_SEED").ok();
    let asked = asked.map(|text| text.parse().expect("DOORBELL_CHAOS_SEED is a number"));
    asked.unwrap_or_else(|| u64::from(std::process::id()))
}

/// The directory of the servers' records, which is removed when this is dropped.
struct Records(PathBuf);

impl Records {
    fn new(test: &str) -> Self {
        let name = format!("doorbell-chaos-{test}-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).expect("temporary files can be made");
        Self(directory)
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Injects faults while callers call, and judges what became of the calls.
fn chaos(test: &str, kind: &str) {
    if let Some(part) = child::part() {
        return server::serve(&part);
    }
    let seed = seed();
    println!("DOORBELL_CHAOS_SEED={seed}");
    let (records, mut luck) = (Records::new(test), Luck::new(seed));
    let mut fleet = Fleet::start(test, &[(); 3].map(|()| fixed(kind)), &records.0);
    let callers = Callers::start(&fleet.names(), DEADLINE);
    let began = Instant::now();
    while began.elapsed() < time() {
        fleet.suffer(Fault::draw(&mut luck));
    }
    let calls = callers.stop();
    fleet.shut_down();
    let history = History::new(calls, &records.0);
    println!("{history}");
    history.judge();
}

/// Restarts one server after the other while callers call, none of whose calls may fail.
fn restarts(test: &str, kind: &str) {
    if let Some(part) = child::part() {
        return server::serve(&part);
    }
    let records = Records::new(test);
    let mut fleet = Fleet::start(test, &[(); 3].map(|()| fixed(kind)), &records.0);
    let callers = Callers::start(&fleet.names(), PATIENT);
    for _ in 0..ROUNDS {
        for server in 0..3 {
            callers.more(200);
            fleet.suffer(Fault::Restarts { server });
        }
    }
    callers.more(200);
    let calls = callers.stop();
    fleet.shut_down();
    let history = History::new(calls, &records.0);
    println!("{history}");
    history.judge();
    history.nothing_failed();
}

#[test]
fn over_sockets_no_call_runs_twice_or_is_lost_while_servers_are_killed_and_stopped() {
    let test =
        "chaos::over_sockets_no_call_runs_twice_or_is_lost_while_servers_are_killed_and_stopped";
    chaos(test, "udp");
}

#[test]
fn over_shared_memory_no_call_runs_twice_or_is_lost_while_servers_are_killed_and_stopped() {
    let test = "chaos::over_shared_memory_no_call_runs_twice_or_is_lost_while_servers_are_killed_and_stopped";
    chaos(test, "shm");
}

#[test]
fn over_sockets_servers_that_are_restarted_in_turn_cost_no_call() {
    restarts("chaos::over_sockets_servers_that_are_restarted_in_turn_cost_no_call", "udp");
}

#[test]
fn over_shared_memory_servers_that_are_restarted_in_turn_cost_no_call() {
    restarts("chaos::over_shared_memory_servers_that_are_restarted_in_turn_cost_no_call", "shm");
}
