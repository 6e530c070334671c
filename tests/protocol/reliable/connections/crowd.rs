//! Thousands of connections between several nodes, each opened, used in both directions and closed,
//! on a network that does everything that a network may, between nodes that begin anew.

use std::collections::BTreeSet;
use std::time::Duration;

use doorbell_core::cm::{self, Usage};
use doorbell_core::encap::Version;
use doorbell_core::nic::Config;
use doorbell_core::time::Time;
use doorbell_core::wire::cm::CmRetries;
use doorbell_simulation::{Fabric, Faults, LinkConfig, NodeId, SwitchConfig};

use super::meeting::METADATA;
use super::program::{Past, Program};
use super::seen;
use super::splitmix::Luck;
use crate::reliable::random::coverage::Coverage;

const NODES: usize = 4;
/// The most connections that a node asked for and that are not released, so that some queue pairs
/// are left to be asked for.
const MOST: usize = 150;

/// Room for all that some thousand connections say.
const RECORDED: usize = 1 << 28;
/// When all has long come to an end.
const LATEST: Time = Time::from_nanos(1_000_000_000_000);

#[derive(Clone, Copy)]
pub struct Crowd {
    pub seed: u64,
    pub connections: u64,
    pub faults: Faults,
    pub lossless: bool,
    pub restarts: u64,
    /// How many packets a device takes before it is full for a microsecond.
    pub room: usize,
    /// How often messages are said again.
    pub retries: CmRetries,
    /// Whether what was said is looked at in the end.
    pub listens: bool,
}

struct World {
    fabric: Fabric,
    luck: Luck,
    programs: Vec<Program>,
    opened: u64,
    retries: CmRetries,
    /// What became of connections, of programs that are no more among them.
    past: Vec<Past>,
    seen: Coverage,
    /// Connections that ended with the memory of a node.
    forgotten: BTreeSet<u64>,
}

pub const BAD: Faults = Faults {
    loss: 0.03,
    duplication: 0.03,
    reordering: 0.05,
    duplication_delay: Duration::from_micros(200),
    reordering_delay: Duration::from_micros(200),
    ..Faults::NONE
};

pub const QUIET: Crowd = Crowd {
    seed: 0,
    connections: 2_000,
    faults: Faults::NONE,
    lossless: false,
    restarts: 0,
    room: usize::MAX,
    retries: CmRetries::MAX,
    listens: false,
};

/// Nothing is lost, and who waits for a program asks but once more.
pub const HASTY: Crowd = Crowd { retries: CmRetries::new(1), ..QUIET };

#[test]
fn ten_thousand_connections_come_and_go_on_a_bad_network_while_nodes_begin_anew() {
    // A third of them has an end that began anew.
    let crowd = Crowd { connections: 16_000, restarts: 12, ..QUIET };
    let seen = Crowd { seed: 1, faults: BAD, ..crowd }.run();
    assert!(seen.noted("asked, used") > 10_000 && seen.noted("was asked, used") > 10_000);
    assert!(seen.noted("asked, one end began anew") > 1_000);
}

#[test]
fn a_crowd_shows_every_message_and_event_of_connections() {
    let crowd = Crowd { connections: 4_000, restarts: 8, listens: true, ..QUIET };
    let missing = Crowd { seed: 6, faults: BAD, ..crowd }.run().missing(seen::ALL);
    assert!(missing.is_empty(), "what a crowd should show, and does not: {missing:#?}");
}

#[test]
fn connections_on_a_bad_network_between_nodes_that_stay() {
    let seen = Crowd { seed: 2, faults: BAD, ..QUIET }.run();
    assert!(seen.noted("asked, used") > 1_800);
    assert_eq!(seen.noted("asked, used"), seen.noted("was asked, used"));
}

#[test]
fn connections_on_a_network_that_loses_nothing() {
    for crowd in [QUIET, HASTY, Crowd { lossless: true, ..QUIET }] {
        let seen = Crowd { seed: 3, ..crowd }.run();
        assert!(seen.noted("asked, used") > 1_800);
        assert_eq!(seen.noted("asked, used"), seen.noted("was asked, used"));
        assert_eq!(seen.noted("data came first"), 0);
    }
}

#[test]
fn connections_over_devices_that_take_a_packet_at_a_time() {
    for (lossless, faults) in [(true, Faults::NONE), (false, BAD)] {
        let seen = Crowd { seed: 5, lossless, faults, room: 1, ..QUIET }.run();
        assert!(seen.noted("asked, used") > 1_800);
    }
}

#[test]
fn connections_on_a_network_that_hardly_works() {
    let faults = Faults { loss: 0.07, ..BAD };
    let seen = Crowd { seed: 5, faults, restarts: 2, ..QUIET }.run();
    assert!(seen.noted("asked, used") > 1_000);
}

impl Crowd {
    pub fn run(self) -> Coverage {
        let mut world = self.begin();
        while !world.is_over(self.connections) {
            assert!(world.fabric.now() < LATEST, "what has begun comes to no end");
            world.open(self.connections);
            let restarts = world.programs.iter().map(|program| program.starts).sum::<u64>();
            // Spread evenly, none of them at the beginning or the end.
            let due = world.opened * (self.restarts + 1) / self.connections;
            if restarts < due.min(self.restarts) {
                let node = world.luck.below(NODES);
                world.restart(node);
            }
            world.step(world.fabric.now() + Duration::from_secs(60));
        }
        world.end()
    }

    fn begin(self) -> World {
        let config = Config {
            queue_pairs: 512,
            registrations: 1024,
            lossless: self.lossless,
            ..Config::default()
        };
        let mut fabric = Fabric::new(self.seed, Version::V2Ipv4, config);
        fabric.room = self.room;
        if self.listens {
            fabric.network.start_recording(RECORDED);
        }
        let switch = fabric.network.switch(SwitchConfig::default());
        let cable = LinkConfig::default().with_faults(self.faults);
        for node in 0..NODES {
            // The last is a standard peer.
            let speak = if node + 1 == NODES { cm::Extensions::NONE } else { METADATA };
            fabric.managed_node(|own| own.extensions = speak);
            let station = fabric.station(node);
            fabric.network.link(station, switch, cable);
        }
        let programs = (0..NODES).map(|node| Program::new(&mut fabric, node, 0)).collect();
        World {
            fabric,
            luck: Luck(self.seed),
            programs,
            opened: 0,
            retries: self.retries,
            past: Vec::new(),
            seen: Coverage::default(),
            forgotten: BTreeSet::new(),
        }
    }
}

impl World {
    /// Asks for another connection, if there is room for it; and often has the peer ask for one at
    /// the same moment.
    fn open(&mut self, total: u64) {
        let from = self.luck.below(NODES);
        let to = (from + 1 + self.luck.below(NODES - 1)) % NODES;
        let (before, retries) = (self.opened, self.retries);
        let crosses = self.luck.chance(500);
        for (from, to) in [(from, to), (to, from)].into_iter().take(1 + usize::from(crosses)) {
            let program = &mut self.programs[from];
            let asked = program.links.values().filter(|link| link.active).count();
            let room = self.opened < total && asked < MOST;
            if room && program.open(&mut self.fabric, to, self.opened, retries) {
                self.opened += 1;
            }
        }
        self.seen.note("both asked", (self.opened == before + 2).into());
        for node in [from, to] {
            self.fabric.turn(node);
        }
    }

    /// Goes on to the next thing that happens, to a node or by a program's clock, or to a time.
    fn step(&mut self, until: Time) {
        let limits = self.programs.iter().filter_map(Program::next_time);
        let until = limits.chain([until]).min().expect("one at least");
        match self.fabric.step(until) {
            Some(node) => self.look(node),
            None => (0..NODES).for_each(|node| self.look(node)),
        }
    }

    fn look(&mut self, node: NodeId) {
        if self.programs[node].look(&mut self.fabric, &mut self.luck) {
            self.fabric.turn(node);
        }
    }

    /// A node begins anew. Nothing is promised of connections that it had an end of.
    fn restart(&mut self, node: NodeId) {
        self.fabric.restart(node);
        let starts = self.programs[node].starts + 1;
        let reborn = Program::new(&mut self.fabric, node, starts);
        let old = std::mem::replace(&mut self.programs[node], reborn);
        self.past.extend(old.past);
        self.seen.add(&old.seen);
        self.forgotten.extend(old.links.values().map(|link| link.number));
        let asked = old.links.values().filter(|link| link.active).map(|link| link.number);
        let asked: BTreeSet<_> = asked.collect();
        for program in &mut self.programs {
            program.excuse(node, &asked);
        }
        // It takes longer than anything that it has sent is on its way: a request of before, which
        // may name a queue pair that has another connection now, ends that. And often it takes
        // longer than anybody waits for it.
        let station = self.fabric.station(node);
        self.fabric.network.partition(&[station]);
        let millis = if self.luck.chance(500) { 1000 } else { 1 };
        let until = self.fabric.now() + Duration::from_millis(millis);
        while self.fabric.now() < until {
            self.step(until);
        }
        self.fabric.network.heal_partitions();
    }

    fn is_over(&self, total: u64) -> bool {
        self.opened == total && self.programs.iter().all(Program::is_idle)
    }

    /// Everything comes to rest, and nothing is left.
    fn end(mut self) -> Coverage {
        let until = self.fabric.now() + Duration::from_secs(100);
        while let Some(node) = self.fabric.step(until) {
            self.look(node);
        }
        for mut program in std::mem::take(&mut self.programs) {
            let node = program.node;
            self.past.append(&mut program.past);
            self.seen.add(&program.seen);
            program.leave(&mut self.fabric);
            assert_eq!(self.fabric.manager(node).usage(), Usage::default());
            assert_eq!(self.fabric.manager(node).next_timeout(), None);
            assert_eq!(self.fabric.nic(node).next_timeout(), None);
            let counters = *self.fabric.manager(node).counters();
            assert_eq!((counters.malformed, counters.crowded_out), (0, 0));
            seen::counters(&counters, &mut self.seen);
            assert_eq!(self.fabric.nic(node).counters().management_dropped, 0);
        }
        assert_eq!((self.fabric.network.in_flight(), self.fabric.network.next_at()), (0, None));
        for past in &self.past {
            self.seen.note(past.outcome(), 1);
        }
        seen::messages(&self.fabric.network.pcap(), &mut self.seen);
        self.compare();
        println!("{:?}:\n{}", self.fabric.now(), self.seen);
        self.seen
    }

    /// A connection stood at both ends or at neither.
    fn compare(&self) {
        let stood = |active| {
            let past = self.past.iter().filter(move |past| past.active == active && past.stood);
            past.filter(|past| !past.excused).map(|past| past.number).collect::<BTreeSet<_>>()
        };
        let excused = self.past.iter().filter(|past| past.excused).map(|past| past.number);
        let excused: BTreeSet<_> = excused.chain(self.forgotten.iter().copied()).collect();
        for number in stood(true).symmetric_difference(&stood(false)) {
            assert!(excused.contains(number), "{number} stood at one end only");
        }
    }
}
