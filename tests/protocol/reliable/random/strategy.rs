//! Programs as proptest draws them, and makes them smaller when they fail.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec::IntoIter;

use doorbell_core::encap::Version;
use doorbell_simulation::Fabric;

use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

use super::coverage::Coverage;
use super::dice::Dice;
use super::model::Check;

/// How many runs it may take to make a failing program smaller: some need more than four thousand
/// before nothing can be taken away.
const MOST_RUNS: u32 = 20_000;

/// What is drawn from a seed, run, and made smaller when it fails.
pub trait Random: Clone + fmt::Debug + fmt::Display + Send {
    /// What such programs are called, and the test that runs them.
    const NAME: &'static str;
    const TEST: &'static str;

    fn draw(dice: &mut Dice) -> Self;

    fn run(&self) -> Report;

    /// The same with something taken away, those with the most first.
    fn smaller(&self) -> Vec<Self>;
}

/// What a run was like.
pub struct Report {
    pub result: Check,
    pub hash: u64,
    pub pcap: Vec<u8>,
    pub coverage: Coverage,
}

impl Report {
    pub fn new(result: Check, fabric: &Fabric, version: Version, mut coverage: Coverage) -> Self {
        let network = &fabric.network;
        let (hash, pcap) = (network.trace_hash(), network.pcap());
        if network.counters().corrupted == 0 {
            coverage.packets(&pcap, version);
        }
        Self { result, hash, pcap, coverage }
    }
}

/// What comes of a run. A panic is a failure like any other, and has a capture, too.
pub fn caught(run: impl FnOnce() -> Check) -> Check {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("a panic: {}", text.unwrap_or("of no words")))
    })
}

/// All programs of a kind.
#[derive(Debug)]
struct Programs<P>(PhantomData<P>);

/// A program, and those that may be tried instead of it.
struct Tree<P> {
    /// The smallest that failed, and what is tried now.
    failed: P,
    current: P,
    smaller: IntoIter<P>,
}

impl<P: Random> Strategy for Programs<P> {
    type Tree = Tree<P>;
    type Value = P;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let current = P::draw(&mut Dice(runner.new_rng()));
        Ok(Tree { failed: current.clone(), current, smaller: IntoIter::default() })
    }
}

impl<P: Random> ValueTree for Tree<P> {
    type Value = P;

    fn current(&self) -> P {
        self.current.clone()
    }

    fn simplify(&mut self) -> bool {
        self.failed = self.current.clone();
        self.smaller = self.failed.smaller().into_iter();
        self.complicate()
    }

    fn complicate(&mut self) -> bool {
        let next = self.smaller.next();
        let more = next.is_some();
        self.current = next.unwrap_or_else(|| self.failed.clone());
        more
    }
}

/// A runner, and the one program that it draws: so a seed is all that is needed to draw any again,
/// and as many run at a time as there are cores.
fn drawn<P: Random>(seed: u64) -> (TestRunner, Tree<P>) {
    let failure_persistence = None;
    let config = Config { failure_persistence, max_shrink_iters: MOST_RUNS, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, Dice::new(seed).0);
    let programs = Programs(PhantomData);
    let tree = programs.new_tree(&mut runner).expect("no program is rejected");
    (runner, tree)
}

/// The program of a seed.
pub fn program<P: Random>(seed: u64) -> P {
    drawn(seed).1.current
}

/// The smallest program that was found to fail, and what is wrong with it.
pub struct Failed<P> {
    pub program: P,
    pub why: String,
}

/// Runs the program of a seed, and if it fails, smaller ones for as long as one of them does.
/// `look` is shown every run.
pub fn check<P: Random>(seed: u64, look: impl Fn(&Report)) -> Option<Failed<P>> {
    let (mut runner, tree) = drawn::<P>(seed);
    let checked = runner.run_one(tree, |program| {
        let report = program.run();
        look(&report);
        report.result.map_err(TestCaseError::fail)
    });
    match checked {
        Ok(_) => None,
        Err(TestError::Fail(why, program)) => Some(Failed { program, why: why.to_string() }),
        Err(TestError::Abort(why)) => panic!("{why}"),
    }
}
