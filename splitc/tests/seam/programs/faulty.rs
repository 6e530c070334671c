//! Programs on a simulated network that loses, repeats, reorders and corrupts packets.

use doorbell_simulation::Faults;
use doorbell_splitc::{Carrier, Config, World};
use tokio::task::LocalSet;

use crate::common::{carriers, config, in_time};
use crate::programs::devices::Devices;
use crate::programs::perform::program;

/// Plays the program of a seed as tasks of one thread, over a network whose faults have that seed,
/// too.
fn play(seed: u64, size: usize, carrier: Option<Carrier>, faults: Faults) {
    println!("play({seed}, {size}, {carrier:?}, {faults:?}), to be called again like that");
    // Calls that wait for credits would keep the thread from the process that gives them: of other
    // seeds some programs would.
    let config = Config { carrier, credits: 256, ..config() };
    let changing = if carrier.is_none() { carriers("ether").to_vec() } else { Vec::new() };
    let played = async move || {
        let devices = Devices::ether(size, seed, faults, false);
        let addresses: Vec<_> = devices.nics.iter().map(|nic| nic.address().to_string()).collect();
        let tasks = LocalSet::new();
        let ranks: Vec<_> = (0..size)
            .map(|rank| {
                let (nic, addresses) = (devices.nics[rank].clone(), addresses.clone());
                let (config, changing) = (config.clone(), changing.clone());
                tasks.spawn_local(async move {
                    let world = World::join_on(&nic, rank, &addresses, &config).await;
                    let world = world.unwrap_or_else(|why| panic!("process {rank}: {why}"));
                    let done = program(&world, seed, changing, 5, true).await;
                    done.unwrap_or_else(|why| panic!("process {rank}: {why}"));
                    let left = world.leave().await;
                    left.unwrap_or_else(|why| panic!("process {rank}: {why}"));
                })
            })
            .collect();
        let all = tasks.run_until(async {
            for rank in ranks {
                rank.await.unwrap_or_else(|why| std::panic::resume_unwind(why.into_panic()));
            }
        });
        devices.run(all).await;
    };
    in_time(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(played());
    });
}

#[test]
fn on_a_network_with_faults_random_programs_do_what_the_model_does() {
    let all = [None, Some(Carrier::OneSided), Some(Carrier::Messages), Some(Carrier::Mixed)];
    let some = Faults {
        loss: 0.01,
        duplication: 0.01,
        reordering: 0.01,
        corruption: 0.005,
        ..Faults::NONE
    };
    let many = Faults { loss: 0.05, duplication: 0.1, reordering: 0.2, ..Faults::NONE };
    for seed in 0..6 {
        for (number, carrier) in (0..).zip(all) {
            let seed = 4 * seed + number;
            let faults = [Faults::NONE, some, many][seed as usize % 3];
            play(seed, 2 + seed as usize / 4 % 3, carrier, faults);
        }
    }
}
