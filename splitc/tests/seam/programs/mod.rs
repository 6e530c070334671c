//! Random programs of accesses, syncs and barriers, by seed, against a sequential model.

#[path = "../../../../am/tests/seam/promises/devices.rs"]
#[allow(dead_code, reason = "these programs run on some kinds of devices only")]
mod devices;
mod faulty;
mod kinds;
mod objects;
mod perform;
mod plan;
mod threads;

use std::time::Duration;

use doorbell_kit::effort;
use doorbell_splitc::{Carrier, Config};

use crate::common::{carriers, run};

/// The carriers that a program uses.
#[derive(Clone, Copy, Debug)]
enum Carriers {
    Only(Carrier),
    /// Each process chooses a carrier for each other one, and again in each phase.
    Changing,
}

/// Plays the program of a seed.
#[track_caller]
fn play(seed: u64, size: usize, device: &'static str, by: Carriers, phases: usize) {
    let all = carriers(device);
    let (carrier, changing) = match by {
        Carriers::Only(carrier) => (Some(carrier), &[][..]),
        Carriers::Changing => (None, all),
    };
    let credits = [1, 2, 7, 64][seed as usize % 4];
    let config =
        Config { carrier, credits, patience: Duration::from_secs(5), ..crate::common::config() };
    println!("play({seed}, {size}, {device:?}, {by:?}, {phases}), to be called again like that");
    run(size, device, config, async move |world| {
        Ok(perform::program(&world, seed, changing.to_vec(), phases, false).await?)
    });
}

/// Plays programs of several seeds with each carrier and with changing ones.
#[track_caller]
fn play_all(device: &'static str, sizes: std::ops::RangeInclusive<u64>, seeds: u64, phases: usize) {
    let only = carriers(device).iter().map(|carrier| Carriers::Only(*carrier));
    for (number, by) in (0..).zip(only.chain([Carriers::Changing, Carriers::Changing])) {
        for seed in 0..seeds {
            let seed = seed * 10 + number;
            let size = sizes.start() + seed / 2 % (sizes.end() - sizes.start() + 1);
            play(seed, size as usize, device, by, phases);
        }
    }
}

#[test]
fn in_shared_memory_random_programs_do_what_the_model_does_by_each_carrier() {
    play_all("shm", 1..=5, effort(10, 150), 12);
}

#[test]
fn by_udp_random_programs_do_what_the_model_does_by_each_carrier() {
    play_all("udp", 2..=3, effort(2, 25), 8);
}
