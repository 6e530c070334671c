//! Programs as proptest draws them, and makes them smaller when they fail.

use std::vec::IntoIter;

use doorbell_kit::Faults;
use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

use super::dice::Dice;
use super::message::{Extra, Message, Store, What};
use super::program::{Op, Program};
use super::run::{Report, run};

/// How many runs it may take to make a failing program smaller.
const MOST_RUNS: u32 = 2000;

/// All programs.
#[derive(Debug)]
struct Programs;

/// A program, and those that may be tried instead of it.
struct Tree {
    /// The smallest that failed, and what is tried now.
    failed: Program,
    current: Program,
    smaller: IntoIter<Program>,
}

impl Strategy for Programs {
    type Tree = Tree;
    type Value = Program;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let current = Program::draw(&mut Dice(runner.new_rng()));
        Ok(Tree { failed: current.clone(), current, smaller: IntoIter::default() })
    }
}

impl ValueTree for Tree {
    type Value = Program;

    fn current(&self) -> Program {
        self.current.clone()
    }

    fn simplify(&mut self) -> bool {
        self.failed = self.current.clone();
        self.smaller = smaller(&self.failed).into_iter();
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
fn drawn(seed: u64) -> (TestRunner, Tree) {
    let failure_persistence = None;
    let config = Config { failure_persistence, max_shrink_iters: MOST_RUNS, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, Dice::new(seed).0);
    let tree = Programs.new_tree(&mut runner).expect("no program is rejected");
    (runner, tree)
}

/// The program of a seed.
pub fn program(seed: u64) -> Program {
    drawn(seed).1.current
}

/// The smallest program that was found to fail, and what is wrong with it.
pub struct Failed {
    pub program: Program,
    pub why: String,
}

/// Runs the program of a seed, and if it fails, smaller ones for as long as one of them does.
/// `look` is shown every run.
pub fn check(seed: u64, look: impl Fn(&Report)) -> Option<Failed> {
    let (mut runner, tree) = drawn(seed);
    let checked = runner.run_one(tree, |program| {
        let report = run(&program);
        look(&report);
        report.result.map_err(TestCaseError::fail)
    });
    match checked {
        Ok(_) => None,
        Err(TestError::Fail(why, program)) => Some(Failed { program, why: why.to_string() }),
        Err(TestError::Abort(why)) => panic!("{why}"),
    }
}

/// Programs with something taken away, those with the most first.
pub fn smaller(program: &Program) -> Vec<Program> {
    let mut found = Vec::new();
    let mut offer = |change: &dyn Fn(&mut Program)| {
        let mut candidate = program.clone();
        change(&mut candidate);
        found.push(candidate);
    };
    for round in 0..program.rounds.len() {
        if program.rounds.len() > 1 {
            offer(&|program| drop(program.rounds.remove(round)));
        }
    }
    for pair in 0..program.pairs.len() {
        if program.pairs.len() > 1 {
            offer(&|program| without_pair(program, pair));
        }
    }
    if program.net.faults != Faults::NONE {
        offer(&|program| program.net.faults = Faults::NONE);
    }
    for (round, content) in program.rounds.iter().enumerate() {
        let count = content.ops.len();
        for size in [count / 2, count / 4, 1] {
            for at in (0..count).step_by(size.max(1)).filter(|_| size > 0) {
                offer(&|program| {
                    program.rounds[round].ops.drain(at..(at + size).min(count));
                });
            }
        }
        for (pair, streams) in content.streams.iter().enumerate() {
            for (end, stream) in streams.iter().enumerate() {
                for at in 0..stream.messages.len() {
                    offer(&|program| {
                        program.rounds[round].streams[pair][end].messages.remove(at);
                    });
                }
                for (at, message) in stream.messages.iter().enumerate() {
                    for plainer in plainer(message) {
                        offer(&|program| {
                            program.rounds[round].streams[pair][end].messages[at] = plainer.clone();
                        });
                    }
                }
            }
        }
    }
    for (pair, ends) in program.pairs.iter().enumerate() {
        for (end, own) in ends.iter().enumerate() {
            if own.asks > 1 {
                offer(&|program| program.pairs[pair][end].asks = 1);
            }
            if own.reads > 1 && ends[1 - end].asks <= 1 {
                offer(&|program| program.pairs[pair][end].reads = 1);
            }
        }
    }
    found
}

/// A message with less to it.
fn plainer(message: &Message) -> Vec<Message> {
    let mut found = Vec::new();
    if message.wrong.is_some() {
        return found;
    }
    let takes_back = message.extra == Extra::Invalidate;
    // Some of those that take a key back must wait for reads by it.
    if message.fenced && !takes_back {
        found.push(Message { fenced: false, ..message.clone() });
    }
    if message.extra != Extra::Nothing {
        found.push(Message { extra: Extra::Nothing, ..message.clone() });
    }
    let what = match message.what {
        What::Write { to, lent: true } => Some(What::Write { to, lent: false }),
        What::Read { from: Store::Lent, at } => Some(What::Read { from: Store::Target, at }),
        What::Swap { word, .. } => Some(What::Add { word }),
        _ => None,
    };
    found.extend(what.map(|what| Message { what, ..message.clone() }));
    found
}

fn without_pair(program: &mut Program, gone: usize) {
    program.pairs.remove(gone);
    for round in &mut program.rounds {
        round.streams.remove(gone);
        round.ops.retain_mut(|op| match op {
            Op::Send { pair, .. }
            | Op::Receive { pair, .. }
            | Op::Drain { pair, .. }
            | Op::Resume { pair, .. }
            | Op::Stop { pair, .. }
            | Op::TakeDown { pair, .. }
            | Op::Revoke { pair, .. } => {
                let stays = *pair != gone;
                *pair -= usize::from(*pair > gone);
                stays
            }
            Op::Poll { .. } | Op::Wait { .. } | Op::Arm { .. } => true,
        });
    }
}
