//! Safe programs of two or three NICs, drawn at random: whatever futures they join, race and drop,
//! memory that is private, revoked or lent changes by nobody but its owner, all other memory holds
//! what a model allows, and every future ends.
//!
//! `plan` draws what is done, `run` does it in a `world` of NICs and connections, with the `steps`
//! that there are, and `model` says what each word may hold. Nothing in here is `unsafe`: what these
//! programs could break, any program could.

mod model;
mod plan;
mod run;
mod steps;
mod world;

use doorbell_kit::effort;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

use plan::{Over, Plan, plan};

/// Draws so many plans, and returns the smallest that fails, with why. Each plan runs while what
/// `prepare` returns is alive.
fn search<P>(over: Over, cases: u32, prepare: impl Fn() -> P) -> Result<(), (Plan, String)> {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let config = Config { max_shrink_iters: 200, ..config };
    let mut runner = TestRunner::new(config);
    let found = runner.run(&plan(over), |plan| {
        let runs = std::panic::AssertUnwindSafe(|| {
            let _prepared = prepare();
            run::run(&plan);
        });
        std::panic::catch_unwind(runs).map_err(|why| {
            let text = why.downcast_ref::<String>().cloned();
            let text = text.or_else(|| why.downcast_ref::<&str>().map(ToString::to_string));
            TestCaseError::fail(text.unwrap_or_default())
        })
    });
    match found {
        Ok(()) => Ok(()),
        Err(TestError::Fail(why, plan)) => Err((plan, why.to_string())),
        Err(TestError::Abort(why)) => panic!("no plan could be drawn: {why}"),
    }
}

fn holds(over: Over) {
    if let Err((plan, why)) = search(over, effort(40, 2000), || {}) {
        panic!("{why}\nthe smallest plan that shows it: {plan:#?}");
    }
}

#[test]
fn on_a_network_that_loses_frames_memory_is_its_owners() {
    holds(Over::Lossy);
}

#[test]
fn on_a_network_that_loses_nothing_memory_is_its_owners() {
    holds(Over::Lossless);
}

#[test]
fn over_shared_memory_memory_is_its_owners() {
    holds(Over::Shm);
}

#[cfg(feature = "planted-bugs")]
mod planted {
    use doorbell_core::{Bug, plant};

    use super::plan::Over;
    use super::search;

    /// The plans would find a NIC that leaves memory to peers after it was revoked, and one that carries
    /// out an atomic operation again when it comes again.
    #[test]
    fn plans_find_bugs_that_are_planted() {
        for (bug, over) in [(Bug::KeepsRevoked, Over::Lossless), (Bug::RepeatsAtomics, Over::Lossy)]
        {
            let (_, why) = search(over, 1000, || plant(bug)).expect_err("the bug is found");
            println!("{bug:?}: {}", why.lines().next().unwrap_or_default());
        }
    }
}
