//! A program run on a fabric, and held against the model at every step.

mod act;
mod begin;
mod end;
mod judge;
mod post;

use std::collections::BTreeMap;
use std::time::Duration;

use doorbell_core::nic::{
    AddressId, Cause, Change, Config, Domain, Event, KeepAlive, QueuePairConfig, QueuePairEnds,
    State, Transport,
};
use doorbell_core::time::Time;
use doorbell_core::wire::Qpn;
use doorbell_simulation::Fabric;

use super::super::coverage::Coverage;
use super::super::dice::Dice;
use super::super::memory::Image;
use super::super::model::{Check, ensure};
use super::super::queue::Queue;
use super::super::strategy::{Report, caught};
use super::super::traps::Traps;
use super::message::Place;
use super::model::Flow;
use super::program::{self, End, Mood, Program};
use super::supply::{Receive, Supply};

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
    /// The ways from each node to each other, and one of each node that was dropped.
    addresses: BTreeMap<(usize, usize), AddressId>,
    dropped: Vec<AddressId>,
    queues: Vec<Queue>,
    /// How many completions were polled of each.
    polled: Vec<usize>,
    supplies: Vec<Supply>,
    sides: Vec<[Side; 2]>,
    /// What each end sends.
    flows: Vec<[Flow; 2]>,
    /// What was posted and is not complete, each with a number of its own.
    posted: BTreeMap<u64, Posted>,
    next: u64,
    /// Which node is cut off.
    silent: Option<usize>,
    round: usize,
    steps: usize,
}

#[derive(Clone, Debug)]
enum Posted {
    Send(Place, usize),
    Receive(Receive),
}

/// A queue pair.
struct Side {
    qpn: Qpn,
    ends: QueuePairEnds,
    memory: Option<Images>,
    state: State,
    /// What broke it, whether the program did, and whether before the end of the round.
    broken: Option<Cause>,
    told: bool,
    early: bool,
    /// Requests that were under way no more when it had drained.
    drained: Option<usize>,
    /// Whether the peer was heard before this end could send.
    met: bool,
    /// The receive that it completed last, by its number.
    receive: Option<usize>,
    /// How many completions of its queue there were when it was said that it takes no more.
    last: Option<usize>,
}

/// What one end has registered.
struct Images {
    source: Image,
    target: Image,
}

/// Runs a program.
pub fn run(program: &Program) -> Report {
    let mut run = Run::new(program);
    let result = caught(|| run.all());
    Report::new(result, &run.fabric, program.net.version, run.coverage)
}

impl<'p> Run<'p> {
    fn new(program: &'p Program) -> Self {
        let idle = program.keep_alive.unwrap_or(100 * LIMIT);
        let config = Config {
            queue_pairs: 8,
            registrations: 64,
            keep_alive: KeepAlive { idle, busy: LIMIT.min(idle) },
            lossless: program.net.lossless,
            runs: program.net.runs,
            ..Config::default()
        };
        let mut fabric = program.net.fabric(program.luck, program.nodes, config);
        let mut dice = Dice::new(program.luck ^ 0xD1CE);
        let nodes = 0..program.nodes;
        let domains: Vec<Domain> = nodes.clone().map(|node| fabric.nic(node).domain()).collect();
        let traps = nodes.map(|node| Traps::new(fabric.nic(node), domains[node], &mut dice));
        let traps = traps.collect();
        let queues = program.queues.iter().map(|queue| Queue::new(&mut fabric, queue)).collect();
        let mut run = Self {
            program,
            fabric,
            dice,
            coverage: Coverage::default(),
            domains,
            traps,
            addresses: BTreeMap::new(),
            dropped: Vec::new(),
            queues,
            polled: vec![0; program.queues.len()],
            supplies: Vec::new(),
            sides: Vec::new(),
            flows: Vec::new(),
            posted: BTreeMap::new(),
            next: program.luck >> 1,
            silent: None,
            round: 0,
            steps: 0,
        };
        run.keep_addresses();
        run.supplies = program.supplies.iter().map(|supply| run.supply(supply)).collect();
        run.sides = program
            .pairs
            .iter()
            .map(|pair| [0, 1].map(|end| run.side(pair.transport, &pair.ends[end])))
            .collect();
        run
    }

    fn keep_addresses(&mut self) {
        for from in 0..self.program.nodes {
            for to in (0..self.program.nodes).filter(|&to| to != from) {
                let path = self.fabric.path(from, to);
                let address = self.fabric.nic(from).address(path).expect("room");
                self.addresses.insert((from, to), address);
            }
            let path = self.fabric.path(from, (from + 1) % self.program.nodes);
            let address = self.fabric.nic(from).address(path).expect("room");
            self.fabric.nic(from).drop_address(address).expect("it was just kept");
            self.dropped.push(address);
        }
    }

    /// Makes a receive queue.
    fn supply(&mut self, drawn: &program::Supply) -> Supply {
        let (nic, domain) = (self.fabric.nic(drawn.node), self.domains[drawn.node]);
        let shared = drawn.shared.then(|| {
            let completions = self.queues[drawn.queue].id;
            nic.shared_receive_queue(domain, completions, drawn.depth).expect("a depth")
        });
        Supply::new(drawn, nic, domain, shared, self.dice.u64())
    }

    /// Makes a queue pair.
    fn side(&mut self, transport: Transport, end: &End) -> Side {
        let drawn = &self.program.supplies[end.supply];
        let shared = self.supplies[end.supply].shared.as_ref().map(|(id, _)| *id);
        let config = QueuePairConfig {
            transport,
            receive_completions: self.queues[end.own.receive_queue].id,
            send_depth: end.own.send_depth,
            receive_depth: drawn.depth,
            shared_receives: shared,
            ..QueuePairConfig::new(self.domains[end.own.node], self.queues[end.own.send_queue].id)
        };
        let ends = self.fabric.nic(end.own.node).queue_pair(&config).expect("a place");
        let sharing = if shared.is_some() { "with others" } else { "alone" };
        self.coverage.note(format!("{transport:?} receiving {sharing}"), 1);
        Side {
            qpn: ends.qpn,
            ends,
            memory: None,
            state: State::Reset,
            broken: None,
            told: false,
            early: false,
            drained: None,
            met: false,
            receive: None,
            last: None,
        }
    }

    fn all(&mut self) -> Check {
        let program = self.program;
        for (number, round) in program.rounds.iter().enumerate() {
            self.prepare(round);
            self.connect(number)?;
            for op in &round.ops {
                self.op(*op)?;
            }
            self.finish()?;
            self.stop()?;
            self.settle()?;
            self.check_round()?;
            self.forget()?;
        }
        self.leave()
    }

    /// Every end.
    fn every_end(&self) -> impl Iterator<Item = Place> + use<> {
        (0..self.program.pairs.len()).flat_map(|pair| [(pair, 0), (pair, 1)])
    }

    fn end(&self, (pair, end): Place) -> &'p End {
        &self.program.pairs[pair].ends[end]
    }

    fn transport(&self, (pair, _): Place) -> Transport {
        self.program.pairs[pair].transport
    }

    fn node(&self, place: Place) -> usize {
        self.end(place).own.node
    }

    fn flow(&mut self, (pair, end): Place) -> &mut Flow {
        &mut self.flows[pair][end]
    }

    fn on(&mut self, (pair, end): Place) -> &mut Side {
        &mut self.sides[pair][end]
    }

    /// Whether everything that is not wrong must arrive: nothing is lost, and nobody breaks.
    fn all_arrives(&self, from: Place) -> bool {
        let Program { ample, mood, ref net, .. } = *self.program;
        let goes_on = matches!(mood, Mood::Plain | Mood::Wrong)
            && self.flows.iter().flatten().all(|flow| flow.breaks.is_none());
        ample && goes_on && net.is_faithful() || self.transport(from) == Transport::Reliable
    }

    fn change(&mut self, place: Place, change: Change) -> Check {
        let (qpn, node) = (self.on(place).qpn, self.node(place));
        let changed = self.fabric.nic(node).change(qpn, change);
        changed.map_err(|why| format!("{place:?}: {why}"))
    }

    /// Looks whether a queue pair is in a state.
    fn enter(&mut self, place: Place, state: State) -> Check {
        let (qpn, node) = (self.on(place).qpn, self.node(place));
        let found = self.fabric.nic(node).state(qpn);
        self.coverage.state(found);
        ensure!(found == Some(state), "{place:?} is {found:?}, not {state:?}");
        self.on(place).state = state;
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

    /// Takes the events of a node's NIC, and looks at what it shares.
    fn hear(&mut self, node: usize) -> Check {
        while let Some(event) = self.fabric.nic(node).event() {
            self.coverage.event(&event);
            self.heard(node, event)?;
        }
        for (supply, drawn) in self.supplies.iter_mut().zip(&self.program.supplies) {
            if drawn.node == node && drawn.shared {
                supply.look()?;
            }
        }
        Ok(())
    }

    fn heard(&mut self, node: usize, event: Event) -> Check {
        match event {
            Event::Completion(id) => {
                let queue = self.queues.iter_mut().find(|q| q.node == node && q.id == id);
                queue.ok_or("an event of an unknown queue")?.events += 1;
            }
            Event::ReceivesLow(id) => {
                let is = |supply: &Supply| supply.shared.as_ref().is_some_and(|own| own.0 == id);
                let mut all = self.supplies.iter_mut().zip(&self.program.supplies);
                let found = all.find(|(supply, drawn)| drawn.node == node && is(supply));
                found.ok_or("an event of an unknown shared queue")?.0.told += 1;
            }
            Event::Broken(qpn, cause) => {
                let place = self.find(node, qpn)?;
                self.enter(place, State::Error)?;
                let side = self.on(place);
                ensure!(side.broken.is_none(), "broken twice: {:?}, {cause}", side.broken);
                side.broken = Some(cause);
            }
            Event::Drained(qpn) => self.drained(self.find(node, qpn)?)?,
            Event::Established(qpn) => self.established(self.find(node, qpn)?)?,
            Event::LastReceive(qpn) => self.took_its_last(self.find(node, qpn)?)?,
            // An Ethernet address is not covered by the ICRC, and may have been corrupted.
            Event::PathChanged(qpn) => {
                let corrupted = self.program.net.faults.corruption > 0.0;
                ensure!(corrupted, "the path of {qpn} has changed for no reason");
            }
            Event::RequestBounced(_) => return Err("a port is closed that nobody asked".into()),
        }
        Ok(())
    }

    fn drained(&mut self, place: Place) -> Check {
        self.enter(place, State::Draining)?;
        let begun = self.begun(place);
        let again = self.on(place).drained.replace(begun).is_some();
        ensure!(!again, "drained twice");
        Ok(())
    }

    fn established(&mut self, place: Place) -> Check {
        self.enter(place, State::ReadyToReceive)?;
        let connected = self.transport(place) != Transport::Datagram;
        let again = std::mem::replace(&mut self.on(place).met, true);
        ensure!(connected && !again, "{place:?} is told that its connection stands");
        Ok(())
    }

    fn took_its_last(&mut self, place: Place) -> Check {
        self.enter(place, State::Error)?;
        let queue = self.end(place).own.receive_queue;
        let shared = self.program.supplies[self.end(place).supply].shared;
        let by_then = self.polled[queue] + self.queues[queue].ends.len();
        let again = self.on(place).last.replace(by_then).is_some();
        ensure!(shared && !again, "{place:?} is told that it has taken its last");
        Ok(())
    }

    fn find(&self, node: usize, qpn: Qpn) -> Result<Place, String> {
        let is = |&(pair, end): &Place| {
            self.node((pair, end)) == node && self.sides[pair][end].qpn == qpn
        };
        self.every_end().find(is).ok_or(format!("node {node} has no queue pair {qpn}"))
    }

    /// How many sends were taken from a queue, or are complete.
    fn begun(&mut self, place: Place) -> usize {
        let room = self.on(place).ends.send.room();
        self.flow(place).posted - (self.end(place).own.send_depth - room)
    }
}
