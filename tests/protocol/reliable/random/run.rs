//! A program run on a fabric, and held against the model at every step.

mod act;
mod begin;
mod end;
mod judge;
mod map;
mod proofs;
mod wrong;

use std::time::Duration;

use doorbell_core::nic::{
    Cause, Change, Config, Domain, Event, KeepAlive, MappingId, QueuePairConfig, QueuePairEnds,
    State,
};
use doorbell_core::time::Time;
use doorbell_core::wire::Qpn;
use doorbell_simulation::Fabric;

use super::coverage::Coverage;
use super::dice::Dice;
use super::memory::Images;
use super::model::{Check, Flow, ensure};
use super::program::{End, Program, Revoked};
use super::queue::Queue;
use super::strategy::{Report, caught};
use super::traps::Traps;

/// The longest that a round may take, in virtual time and in events.
const LIMIT: Duration = Duration::from_secs(60);
const MOST_STEPS: usize = 3_000_000;

struct Run<'p> {
    program: &'p Program,
    fabric: Fabric,
    dice: Dice,
    coverage: Coverage,
    domains: Vec<Domain>,
    traps: Vec<Traps>,
    queues: Vec<Queue>,
    sides: Vec<[Side; 2]>,
    /// What each end of each connection sends.
    flows: Vec<[Flow; 2]>,
    steps: usize,
}

/// One end of a connection.
struct Side {
    qpn: Qpn,
    /// None when they were dropped, to take it down; and whether it was.
    ends: Option<QueuePairEnds>,
    down: bool,
    memory: Option<Images>,
    /// What broke it, and whether the program did.
    broken: Option<Cause>,
    told: bool,
    state: State,
    /// Requests that were under way no more when it had drained.
    drained: Option<usize>,
    /// What was taken from it, and what its bytes were then.
    revoked: Option<(Revoked, Vec<u8>)>,
    /// The memory of its peer's that it has mapped.
    mapped: Option<MappingId>,
}

/// Runs a program.
pub fn run(program: &Program) -> Report {
    run_on(program, program.net.fabric(program.luck, program.nodes, config(program)))
}

/// How the NICs of a program are made.
pub fn config(program: &Program) -> Config {
    Config {
        queue_pairs: 8,
        registrations: 64,
        // Whoever waits for a program that has come to its end is not to be surprised.
        keep_alive: KeepAlive { idle: 100 * LIMIT, busy: LIMIT },
        lossless: program.net.lossless,
        runs: program.net.runs,
        ..Config::default()
    }
}

/// Runs a program on a fabric.
pub fn run_on(program: &Program, fabric: Fabric) -> Report {
    let mut run = Run::new(program, fabric);
    let result = caught(|| run.all());
    Report::new(result, &run.fabric, program.net.version, run.coverage)
}

impl<'p> Run<'p> {
    fn new(program: &'p Program, mut fabric: Fabric) -> Self {
        let mut dice = Dice::new(program.luck ^ 0xD1CE);
        let domains: Vec<Domain> =
            (0..program.nodes).map(|node| fabric.nic(node).domain()).collect();
        let traps = (0..program.nodes)
            .map(|node| Traps::new(fabric.nic(node), domains[node], &mut dice))
            .collect();
        let queues = program.queues.iter().map(|queue| Queue::new(&mut fabric, queue)).collect();
        let (coverage, sides, flows, steps) = (Coverage::default(), Vec::new(), Vec::new(), 0);
        let mut run =
            Self { program, fabric, dice, coverage, domains, traps, queues, sides, flows, steps };
        run.sides = program.pairs.iter().map(|[a, b]| [run.side(a), run.side(b)]).collect();
        run
    }

    /// Makes a queue pair.
    fn side(&mut self, end: &End) -> Side {
        let config = QueuePairConfig {
            receive_completions: self.queues[end.receive_queue].id,
            send_depth: end.send_depth,
            receive_depth: end.receive_depth,
            ..QueuePairConfig::new(self.domains[end.node], self.queues[end.send_queue].id)
        };
        let ends = self.fabric.nic(end.node).queue_pair(&config).expect("a place in the table");
        let (qpn, ends, state) = (ends.qpn, Some(ends), State::Reset);
        let (memory, broken, told, drained) = (None, None, false, None);
        let (down, revoked, mapped) = (false, None, None);
        Side { qpn, ends, down, memory, broken, told, state, drained, revoked, mapped }
    }

    fn all(&mut self) -> Check {
        let program = self.program;
        for (number, round) in program.rounds.iter().enumerate() {
            let last = number + 1 == program.rounds.len();
            self.prepare(round)?;
            self.connect(number)?;
            for op in &round.ops {
                self.op(*op)?;
            }
            self.finish()?;
            self.stop(last && round.dropped)?;
            self.settle()?;
            self.check_round()?;
            self.forget(last && round.dropped)?;
        }
        self.check_counters()
    }

    /// Every end of every connection.
    fn every_end(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        (0..self.sides.len()).flat_map(|pair| [(pair, 0), (pair, 1)])
    }

    fn end(&self, pair: usize, end: usize) -> &'p End {
        &self.program.pairs[pair][end]
    }

    fn memory(&self, pair: usize, end: usize) -> &Images {
        self.sides[pair][end].memory.as_ref().expect("memory is there during a round")
    }

    fn change(&mut self, pair: usize, end: usize, change: Change) -> Check {
        let (qpn, node) = (self.sides[pair][end].qpn, self.end(pair, end).node);
        let changed = self.fabric.nic(node).change(qpn, change);
        changed.map_err(|why| format!("end {end} of pair {pair}: {why}"))
    }

    /// Looks whether a queue pair is in a state.
    fn enter(&mut self, pair: usize, end: usize, state: State) -> Check {
        let (qpn, node) = (self.sides[pair][end].qpn, self.end(pair, end).node);
        let found = self.fabric.nic(node).state(qpn);
        self.coverage.state(found);
        ensure!(found == Some(state), "end {end} of pair {pair} is {found:?}, not {state:?}");
        self.sides[pair][end].state = state;
        Ok(())
    }

    fn turn(&mut self, node: usize) -> Check {
        self.fabric.turn(node);
        self.hear(node)
    }

    /// Goes on to the next event. Whether there was one.
    fn step(&mut self, until: Time) -> Result<bool, String> {
        self.steps += 1;
        ensure!(self.steps < MOST_STEPS, "no end after {MOST_STEPS} events");
        match self.fabric.step(until) {
            None => Ok(false),
            Some(node) => self.hear(node).map(|()| true),
        }
    }

    /// Takes the events of a node's NIC.
    fn hear(&mut self, node: usize) -> Check {
        while let Some(event) = self.fabric.nic(node).event() {
            self.coverage.event(&event);
            match event {
                Event::Completion(id) => {
                    let queue = self.queues.iter_mut().find(|q| q.node == node && q.id == id);
                    queue.ok_or("an event of an unknown queue")?.events += 1;
                }
                Event::Broken(qpn, cause) => {
                    let (pair, end) = self.find(node, qpn)?;
                    if self.fabric.nic(node).state(qpn).is_some() {
                        self.enter(pair, end, State::Error)?;
                    }
                    let side = &mut self.sides[pair][end];
                    ensure!(side.broken.is_none(), "broken twice: {:?}, {cause}", side.broken);
                    side.broken = Some(cause);
                }
                // An Ethernet address is not covered by the ICRC, and may have been corrupted.
                Event::PathChanged(_) if self.program.net.faults.corruption > 0.0 => {}
                // Both ends are ready to send before either does.
                Event::ReceivesLow(_)
                | Event::LastReceive(_)
                | Event::Established(_)
                | Event::RequestBounced(_)
                | Event::PathChanged(_) => {
                    return Err(format!("{event:?}, for which there is no reason"));
                }
                Event::Drained(qpn) => {
                    let (pair, end) = self.find(node, qpn)?;
                    self.enter(pair, end, State::Draining)?;
                    let taken = self.taken(pair, end);
                    let side = &mut self.sides[pair][end];
                    ensure!(side.drained.is_none(), "drained twice");
                    side.drained = Some(taken);
                }
            }
        }
        Ok(())
    }

    fn find(&self, node: usize, qpn: Qpn) -> Result<(usize, usize), String> {
        let is = |&(pair, end): &(usize, usize)| {
            self.end(pair, end).node == node && self.sides[pair][end].qpn == qpn
        };
        self.every_end().find(is).ok_or(format!("node {node} has no queue pair {qpn}"))
    }

    /// How many sends are complete, of a queue pair that is not to be taken down.
    fn taken(&mut self, pair: usize, end: usize) -> usize {
        let depth = self.end(pair, end).send_depth;
        let room = self.ends(pair, end).send.room();
        self.flows[pair][end].posted - (depth - room)
    }

    /// The ends of a queue pair that is not to be taken down.
    fn ends(&mut self, pair: usize, end: usize) -> &mut QueuePairEnds {
        self.sides[pair][end].ends.as_mut().expect("it is there")
    }
}
