//! Programs whose processes are threads, each with a NIC over a device that was opened before: raw
//! Ethernet, and UDP of which packets are lost, repeated, damaged and reordered.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use doorbell_kit::{effort, lab};
use doorbell_splitc::{Config, World};
use doorbell_transports::udp::Udp;
use doorbell_transports::wrap::{Faults, Faulty};
use doorbell_verbs::Nic;
use tokio::task::LocalSet;

use crate::common::{carriers, config, in_time};
use crate::programs::Carriers;
use crate::programs::devices::Devices;
use crate::programs::perform::program;

/// How long a process may be silent, or wait to join.
const PATIENCE: Duration = Duration::from_secs(20);

/// Plays the program of a seed, with a thread for each NIC.
#[track_caller]
fn play_on(nics: Vec<Nic>, seed: u64, by: Carriers, phases: usize) {
    let (carrier, changing) = match by {
        Carriers::Only(carrier) => (Some(carrier), &[][..]),
        Carriers::Changing => (None, carriers("udp")),
    };
    let credits = [1, 2, 7, 64][seed as usize % 4];
    let config = Config { carrier, credits, patience: PATIENCE, ..config() };
    let addresses: Vec<_> = nics.iter().map(|nic| nic.address().to_string()).collect();
    let plays = move |rank: usize, nic: &Nic| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let process = async {
            let world = World::join_on(nic, rank, &addresses, &config).await;
            let world = world.unwrap_or_else(|why| panic!("process {rank}: {why}"));
            let done = program(&world, seed, changing.to_vec(), phases, false).await;
            done.unwrap_or_else(|why| panic!("process {rank}: {why}"));
            world.leave().await.unwrap_or_else(|why| panic!("process {rank}: {why}"));
        };
        runtime.expect("a runtime").block_on(LocalSet::new().run_until(process));
    };
    in_time(move || {
        std::thread::scope(|scope| {
            for (rank, nic) in nics.iter().enumerate() {
                let plays = &plays;
                scope.spawn(move || plays(rank, nic));
            }
        });
    });
}

/// Plays programs of several seeds with each carrier and with changing ones, on NICs that are
/// opened for each seed.
fn play_all(seeds: u64, phases: usize, open: impl Fn(u64) -> Vec<Nic>) {
    let only = carriers("udp").iter().map(|carrier| Carriers::Only(*carrier));
    for (number, by) in (0..).zip(only.chain([Carriers::Changing])) {
        for seed in 0..seeds {
            let seed = seed * 10 + number;
            println!("play_on(…, {seed}, {by:?}, {phases}), to be called again like that");
            play_on(open(seed), seed, by, phases);
        }
    }
}

#[test]
fn by_raw_ethernet_random_programs_do_what_the_model_does_by_each_carrier() {
    lab::test(|lab| {
        lab.loopback("a0", "b0", 9000).expect("a cable");
        for device in ["packet", "packet-v2"] {
            play_all(effort(2, 30), 8, |_| Devices::packet(device).nics);
        }
    });
}

/// A NIC at an address of this machine, of what comes to which much goes wrong.
fn faulty(faults: Faults, seed: u64) -> Nic {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let device = Udp::open(anywhere).expect("a port");
    let device = Faulty::new(device, faults, seed).expect("it may lose");
    let keep_alive = doorbell_verbs::KeepAlive { idle: PATIENCE, busy: PATIENCE };
    let config = doorbell_verbs::Config {
        keep_alive,
        time_wait: Duration::from_millis(5),
        ..doorbell_verbs::Config::default()
    };
    Nic::builder().config(config).on(device).expect("a NIC")
}

#[test]
fn by_udp_with_faults_random_programs_do_what_the_model_does_by_each_carrier() {
    let some = Faults {
        loss: 0.01,
        duplication: 0.02,
        corruption: 0.01,
        reordering: 0.03,
        reordering_delay: Duration::from_micros(300),
        duplication_delay: Duration::from_millis(1),
        ..Faults::NONE
    };
    let reordered = Faults { loss: 0.001, duplication: 0.1, reordering: 0.3, ..some };
    play_all(effort(3, 20), 6, |seed| {
        let faults = [some, reordered][seed as usize / 10 % 2];
        let size = 2 + seed / 10 % 3;
        (0..size).map(|rank| faulty(faults, seed * 10 + rank)).collect()
    });
}
