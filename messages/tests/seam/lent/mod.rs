//! Memory that programs lend to endpoints, and memory that they are given back: whatever is joined,
//! selected, cancelled and dropped in between, bytes that a program holds never change under it,
//! what comes is right, and every future ends or says why.
//!
//! The programs are safe code, drawn by proptest; each runs in shared memory, or on a simulated
//! network that loses, repeats, damages and reorders frames.

#![forbid(unsafe_code)]

mod framed;
mod program;
mod streamed;

use doorbell_kit::effort;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::ends::{Over, Runs, inline, run};

/// Runs a test with so many programs of a strategy, and finds the least that fails.
#[track_caller]
fn each<S: Strategy>(cases: u32, strategy: &S, test: impl Fn(S::Value)) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    );
    let ran = runner.run(strategy, |program| {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(program)));
        caught.map_err(|_| TestCaseError::fail("it panicked, as said above"))
    });
    ran.unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn tagged_messages_in_shared_memory_change_nothing_that_the_program_holds() {
    each(effort(24, 3000), &program::steps(), |steps| {
        run(Runs::CurrentThread, Over::Shm, inline(), move |ends| program::plays(ends, steps));
    });
}

#[test]
fn tagged_messages_on_several_threads_change_nothing_that_the_program_holds() {
    each(effort(20, 1000), &program::steps(), |steps| {
        run(Runs::MultiThread, Over::Shm, inline(), move |ends| program::plays(ends, steps));
    });
}

#[test]
fn tagged_messages_on_a_network_with_faults_change_nothing_that_the_program_holds() {
    each(effort(20, 1000), &(0_u64..1 << 32, program::steps()), |(seed, steps)| {
        let over = Over::Fabric { seed };
        run(Runs::CurrentThread, over, inline(), move |ends| program::plays(ends, steps));
    });
}

#[test]
fn streams_change_no_slices_that_the_program_holds() {
    each(effort(60, 3000), &streamed::program(), streamed::plays);
}

#[test]
fn frames_that_are_placed_change_no_message_that_the_program_holds() {
    each(effort(40, 2000), &framed::program(), framed::plays);
}
