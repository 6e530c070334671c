//! Barriers of many members, in the time of a simulated network.

use std::time::Duration;

use doorbell_am::group::{Group, GroupConfig};
use doorbell_am::{Bundle, BundleConfig};
use doorbell_kit::{PATIENCE, effort};
use doorbell_simulation::Faults;
use doorbell_verbs::Config;

use crate::group::common::{names, spmd, within};
use crate::promises::devices::Devices;

/// How many barriers are timed.
const BARRIERS: u32 = 4;

/// A NIC for a member that has no more than forty connections.
fn nic() -> Config {
    Config { queue_pairs: 64, registrations: 16, completions: 80, ..Config::default() }
}

/// A member that gives each peer a credit at first, and two at the most.
fn member() -> GroupConfig {
    GroupConfig {
        credits: 2,
        first_credits: 1,
        payload: 512,
        receives: 64,
        ..GroupConfig::default()
    }
}

/// How long a barrier takes in the time of the network, when all connections are made.
fn barrier(size: usize, seed: u64) -> Duration {
    // A thousand NICs on one thread take half a minute to connect to each other.
    within(PATIENCE * 20, 1, async {
        let devices = Devices::ether_with(size, seed, Faults::NONE, false, &nic());
        let run = async {
            let members = names(&devices.nics);
            let mut groups = Vec::new();
            for (rank, nic) in devices.nics.iter().enumerate() {
                let bundle = Bundle::new(nic, &BundleConfig { receives: 128, sends: 128 });
                let config = GroupConfig { rank, members: members.clone(), ..member() };
                groups.push(Group::join(&bundle.expect("room"), config).await.expect("room"));
            }
            let barriers = |count| {
                let program = move |group: Group| async move {
                    for _ in 0..count {
                        group.barrier().await?;
                    }
                    Ok::<_, doorbell_am::group::GroupError>(())
                };
                spmd(&groups, program)
            };
            for outcome in barriers(2).await {
                outcome.unwrap_or_else(|why| panic!("{size} members: {why}"));
            }
            let before = devices.now();
            for outcome in barriers(BARRIERS).await {
                outcome.unwrap_or_else(|why| panic!("{size} members: {why}"));
            }
            devices.now().since(before) / BARRIERS
        };
        devices.run(run).await
    })
}

/// To the nanosecond, for nothing else is under way. A thousand members take half a gigabyte of
/// memory: on average half a megabyte for each, with its NIC and twenty connections.
#[test]
fn a_barrier_takes_as_many_rounds_of_the_same_time_as_the_logarithm_of_the_members() {
    let round = barrier(2, 1);
    let most = effort(64_usize, 1024);
    for size in (1..).map(|bit| 1 << bit).take_while(|size| *size <= most) {
        for size in [size, size + 1].into_iter().filter(|size| *size <= most) {
            let rounds = size.next_power_of_two().trailing_zeros();
            assert_eq!(barrier(size, 1), round * rounds, "{size} members");
        }
    }
}
