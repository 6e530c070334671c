//! Random programs of tagged messages against MPI's rules of matching, by seeds: in shared memory,
//! and on a simulated network that loses, repeats, damages and reorders frames.

mod model;
mod program;

use doorbell_kit::effort;

use crate::ends::{Over, Runs, inline, run};

#[track_caller]
fn plays(runs: Runs, over: Over, seed: u64) {
    println!("seed {seed}");
    run(runs, over, inline(), move |ends| program::play(ends, seed));
}

#[test]
fn random_programs_on_one_thread_in_shared_memory_follow_the_rules() {
    for seed in 0..effort(40, 4000) {
        plays(Runs::CurrentThread, Over::Shm, seed);
    }
}

#[test]
fn random_programs_on_several_threads_in_shared_memory_follow_the_rules() {
    for seed in 0..effort(40, 4000) {
        plays(Runs::MultiThread, Over::Shm, seed);
    }
}

#[test]
fn random_programs_on_a_network_with_faults_follow_the_rules() {
    for seed in 0..effort(12, 1000) {
        plays(Runs::CurrentThread, Over::Fabric { seed }, seed);
    }
}
