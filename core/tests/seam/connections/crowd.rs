//! Thousands of connections between several managers, on a network that does everything that a
//! network may, and between programs that decide, dawdle and die as they like.
//!
//! Whatever happens, each connection that is asked for has one outcome, what two sides were told of
//! each other agrees, and in the end nothing is left in any table.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::time::Duration;

use doorbell_core::cm::{
    Config, ConnectionId, ConnectionState, Event, Extensions, Reply, Request, Why,
};
use doorbell_core::time::Time;
use doorbell_core::wire::cm::{CmRetries, CmTimeout, Mad, RejectReason};
use doorbell_core::wire::{CaGuid, Psn, Qpn};

use crate::connections::common::*;

/// How bad a network is, and what its stations do, in a thousand.
#[derive(Clone, Copy)]
struct Faults {
    lost: u64,
    twice: u64,
    /// Datagrams damaged and delivered all the same, though the ICRC sees to it that none is.
    damaged: u64,
    /// Processes that begin anew, a second.
    restarts: u64,
}

/// What one process's ledger says of one of its connections.
#[derive(Default, Debug)]
struct Entry {
    /// Whether it was asked for here.
    active: bool,
    qpn: Option<Qpn>,
    peer_qpn: Option<Qpn>,
    /// The first sequence numbers of requester and responder, as they are told here.
    psns: (Psn, Psn),
    extensions: Extensions,
    stood: bool,
    /// It was refused, withdrawn or taken back here.
    given_up: bool,
    failed: Option<Why>,
    ended: Option<Why>,
}

/// A process: its manager, its program, and what that has done.
struct Process {
    manager: Manager,
    address: usize,
    config: Config,
    ledger: BTreeMap<ConnectionId, Entry>,
    /// The connections that have been released, with what became of them.
    done: Vec<Entry>,
    /// Queue pairs that are no connection's.
    qpns: VecDeque<u32>,
    /// What the program will do, and when.
    plans: BTreeSet<(Time, ConnectionId, Plan)>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Plan {
    Accept,
    Reject,
    Delay,
    Ready,
    Cancel,
    Data,
    Leave,
}

/// A datagram on its way: when it arrives, a number, from where, to where, and what it is.
type Flying = (Time, u64, usize, usize, Vec<u8>);

struct Crowd {
    luck: Luck,
    faults: Faults,
    now: Time,
    processes: Vec<Process>,
    /// Datagrams on their way.
    flying: BinaryHeap<Reverse<Flying>>,
    flown: u64,
    asked: usize,
    restarted: u64,
    /// First sequence numbers, which tell every connection's ends from all others.
    numbered: u32,
    /// What requesters were told of connections that stood, and what responders were.
    stood: [BTreeMap<(Psn, Psn), Told>; 2],
    /// Connections that were accepted and did not come to stand where they were.
    fell: BTreeMap<(Psn, Psn), Option<Why>>,
    tally: BTreeMap<&'static str, usize>,
}

/// What a side that was told that a connection stands knows of it: the queue pairs of requester and
/// responder, and the extensions.
type Told = (Option<Qpn>, Option<Qpn>, Extensions);

const NONE: Faults = Faults { lost: 0, twice: 0, damaged: 0, restarts: 0 };

/// Runs a crowd, and tells what came of it.
fn run(name: &str, seed: u64, faults: Faults, connections: usize) -> BTreeMap<&'static str, usize> {
    let crowd = Crowd::new(seed, faults).run(connections);
    let (now, flown) = (crowd.now, crowd.flown);
    println!("{name}: {flown} datagrams in {now:?}, {} restarts", crowd.restarted);
    let stood = [("stood at the requester's", 0), ("stood at the responder's", 1)];
    let stood = stood.map(|(key, side)| (key, crowd.stood[side].len()));
    let tally: BTreeMap<_, _> = crowd.tally.into_iter().chain(stood).collect();
    tally.iter().for_each(|(key, count)| println!("  {count:6} {key}"));
    tally
}

#[test]
fn ten_thousand_connections_on_a_network_that_loses_repeats_and_reorders() {
    let tally = run("lossy", 1, Faults { lost: 150, twice: 100, ..NONE }, 10_000);
    assert!(tally["stood at the responder's"] > 5_000);
    assert!(tally["asked for, timed out"] > 0 && tally["asked for, refused"] > 1_000);
}

#[test]
fn connections_on_a_network_that_does_nothing_wrong() {
    let tally = run("flawless", 2, NONE, 2_000);
    assert!(tally["stood at the responder's"] > 1_200);
}

#[test]
fn connections_on_a_network_that_hardly_works() {
    run("hopeless", 3, Faults { lost: 600, twice: 200, ..NONE }, 2_000);
}

#[test]
fn connections_between_processes_that_die_and_begin_anew() {
    let faults = Faults { lost: 100, twice: 100, restarts: 20, ..NONE };
    let tally = run("restarts", 4, faults, 4_000);
    assert!(tally["stood at the responder's"] > 1_000);
}

#[test]
fn connections_whose_datagrams_are_damaged_and_delivered() {
    let faults = Faults { lost: 50, twice: 50, damaged: 200, restarts: 5 };
    let tally = run("damaged", 5, faults, 4_000);
    assert!(tally["stood at the responder's"] > 1_000);
}

#[test]
fn many_small_crowds() {
    for seed in 0..60 {
        let mut luck = Luck(seed);
        let faults = Faults {
            lost: luck.below(500),
            twice: luck.below(300),
            damaged: luck.below(2) * luck.below(100),
            restarts: luck.below(2) * luck.below(50),
        };
        run("small", 100 + seed, faults, 150);
    }
}

/// Three addresses; at the last there are two processes.
const ADDRESSES: [usize; 4] = [0, 1, 2, 2];
const QUEUE_PAIRS: u32 = 40;

impl Crowd {
    fn new(seed: u64, faults: Faults) -> Self {
        let process = |(index, address): (usize, usize)| {
            let tag = index as u32 + 1;
            let config = Config {
                tag,
                tag_bits: 3,
                owner: index != 3,
                connections: 64,
                time_waits: 64,
                extensions: Extensions::WRITE_WITH_METADATA,
                mra_timeout: CmTimeout::new(11),
                waits: Duration::from_millis(2)..=Duration::from_millis(50),
                ..config(address)
            };
            let mut process = Process {
                manager: manager(config.clone(), seed << 8 | index as u64),
                address,
                config,
                ledger: BTreeMap::new(),
                done: Vec::new(),
                qpns: VecDeque::new(),
                plans: BTreeSet::new(),
            };
            process.begin(tag);
            process
        };
        Self {
            luck: Luck(seed),
            faults,
            now: Time::ZERO,
            processes: ADDRESSES.into_iter().enumerate().map(process).collect(),
            flying: BinaryHeap::new(),
            flown: 0,
            asked: 0,
            restarted: 0,
            numbered: 0,
            stood: Default::default(),
            fell: BTreeMap::new(),
            tally: BTreeMap::new(),
        }
    }

    /// Opens and closes so many connections, and then lets everything come to its end.
    fn run(mut self, connections: usize) -> Self {
        while self.asked < connections {
            for index in 0..self.processes.len() {
                if self.luck.chance(300) {
                    self.connect(index);
                }
            }
            if self.luck.chance(self.faults.restarts) {
                self.restart();
            }
            let delay = Duration::from_micros(1 + self.luck.below(2_000));
            self.pass(delay);
        }
        // Everything that still stands is ended, and then there is only to wait.
        for round in 0..400 {
            for process in &mut self.processes {
                let ids: Vec<_> = process.ledger.keys().copied().collect();
                for id in ids {
                    if process.manager.state(id) == Some(ConnectionState::Established) {
                        process.manager.disconnect(id, b"").unwrap();
                    }
                }
            }
            self.pass(Duration::from_millis(5));
            let done = |process: &Process| process.ledger.is_empty();
            if self.processes.iter().all(done) && self.flying.is_empty() {
                break;
            }
            assert!(round < 399, "after two seconds, there are still connections");
        }
        self.check();
        self
    }

    fn connect(&mut self, index: usize) {
        let to = self.luck.below(3) as usize;
        let process = &mut self.processes[index];
        let Some(qpn) = process.qpns.pop_front() else { return };
        self.numbered += 1;
        // One in twenty asks for what nobody listens to; at the last address the second process
        // has a service of its own.
        let service = match self.luck.below(20) {
            0 => 99,
            1..10 if to == 2 => 1,
            _ => 0,
        };
        let terms = Request {
            service: doorbell_core::wire::ServiceId(SERVICE.0 + service),
            psn: Psn::new(self.numbered),
            retries: CmRetries::new(8),
            ..request(qpn)
        };
        let id = match process.manager.connect(to, &terms, b"hello") {
            Ok(id) => id,
            Err(_) => return process.qpns.push_front(qpn),
        };
        self.asked += 1;
        let psns = (terms.psn, Psn::default());
        let entry = Entry { active: true, qpn: Some(terms.qpn), psns, ..Entry::default() };
        assert!(process.ledger.insert(id, entry).is_none());
        if self.luck.chance(30) {
            let when = self.now + Duration::from_micros(self.luck.below(20_000));
            process.plans.insert((when, id, Plan::Cancel));
        }
    }

    /// A process begins anew at the same address, and its program with it.
    fn restart(&mut self) {
        let index = self.luck.below(4) as usize;
        let process = &mut self.processes[index];
        self.restarted += 1;
        // Its numbers are those of another run, and its GUID is, too.
        process.config.guid = CaGuid(self.luck.draw());
        process.manager = manager(process.config.clone(), self.luck.draw());
        process.manager.advance(self.now);
        process.ledger.clear();
        process.done.clear();
        process.plans.clear();
        process.begin(index as u32 + 1);
    }

    /// Lets time pass until everything has been done that falls into it.
    fn pass(&mut self, delay: Duration) {
        let end = self.now + delay;
        loop {
            self.settle();
            let timeouts = self.processes.iter().filter_map(|process| {
                let plan = process.plans.first().map(|plan| plan.0);
                [plan, process.manager.next_timeout()].into_iter().flatten().min()
            });
            let arrival = self.flying.peek().map(|Reverse(flying)| flying.0);
            let next = timeouts.chain(arrival).min().filter(|&next| next <= end);
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            for process in &mut self.processes {
                process.manager.advance(self.now);
            }
            while self.flying.peek().is_some_and(|Reverse(flying)| flying.0 <= self.now) {
                let Reverse((_, _, from, to, bytes)) = self.flying.pop().unwrap();
                for process in self.processes.iter_mut().filter(|p| p.address == to) {
                    process.manager.receive(&from, &bytes);
                }
            }
        }
        self.now = end;
    }

    /// Does what is planned for now, takes every event, and sends everything.
    fn settle(&mut self) {
        for index in 0..self.processes.len() {
            while let Some(&plan) = self.processes[index].plans.first() {
                if plan.0 > self.now {
                    break;
                }
                self.processes[index].plans.remove(&plan);
                self.act(index, plan.1, plan.2);
            }
            while let Some(event) = self.processes[index].manager.event() {
                self.hear(index, event);
            }
            while let Some(datagram) = self.processes[index].manager.transmit() {
                self.send(self.processes[index].address, datagram.way, datagram.bytes);
            }
        }
    }

    fn send(&mut self, from: usize, to: usize, mut bytes: [u8; Mad::LEN]) {
        let Faults { lost, twice, damaged, .. } = self.faults;
        if self.luck.chance(lost) {
            return;
        }
        if self.luck.chance(damaged) {
            // Where names and numbers stand, more often than in private data.
            let bound = if self.luck.chance(700) { 64 } else { 256 };
            bytes[self.luck.below(bound) as usize] ^= 1 << self.luck.below(8);
        }
        for _ in 0..=u64::from(self.luck.chance(twice)) {
            // So that one overtakes the other, and a few are very late, though not as late as
            // the time-wait is long.
            let late = if self.luck.chance(20) { 25_000 } else { 1_000 };
            let arrival = self.now + Duration::from_micros(20 + self.luck.below(late));
            self.flown += 1;
            self.flying.push(Reverse((arrival, self.flown, from, to, bytes.to_vec())));
        }
    }

    /// What a program does, if it isn't too late by now.
    fn act(&mut self, index: usize, id: ConnectionId, plan: Plan) {
        let process = &mut self.processes[index];
        let manager = &mut process.manager;
        let Some(entry) = process.ledger.get_mut(&id) else { return };
        match (plan, manager.state(id)) {
            (Plan::Accept, Some(ConnectionState::ReqReceived)) => {
                let Some(qpn) = process.qpns.pop_front() else {
                    manager.reject(id, RejectReason::NO_QP, b"").unwrap();
                    return entry.given_up = true;
                };
                self.numbered += 1;
                entry.qpn = Some(Qpn::new(qpn));
                let reply = Reply::new(Qpn::new(qpn), Psn::new(self.numbered));
                entry.psns.1 = reply.psn;
                entry.extensions = manager.accept(id, &reply, b"welcome").unwrap();
            }
            (
                Plan::Reject,
                Some(
                    ConnectionState::ReqReceived
                    | ConnectionState::RepReceived
                    | ConnectionState::RepSent,
                ),
            ) => {
                manager.reject(id, RejectReason::CONSUMER, b"no").unwrap();
                entry.given_up = true;
            }
            (Plan::Delay, Some(ConnectionState::ReqReceived | ConnectionState::RepReceived)) => {
                manager.delay(id, CmTimeout::new(12)).unwrap();
            }
            (Plan::Ready, Some(ConnectionState::RepReceived)) => {
                manager.ready(id, b"").unwrap();
                entry.stood = true;
                self.stood[0].insert(entry.psns, entry.told());
                // Its first packet may be faster than the message, for the peer's program.
                if self.luck.chance(200) {
                    self.data(index, id);
                }
                self.plan_end(index, id);
            }
            (Plan::Cancel, Some(ConnectionState::ReqSent)) => {
                manager.cancel(id).unwrap();
                entry.given_up = true;
            }
            (Plan::Data, Some(_)) => manager.arrived(id).unwrap(),
            (Plan::Leave, Some(ConnectionState::Established)) => {
                manager.disconnect(id, b"bye").unwrap();
            }
            _ => {}
        }
    }

    /// A packet on a connection that stands reaches whoever has its queue pair.
    fn data(&mut self, index: usize, id: ConnectionId) {
        let psns = self.processes[index].ledger[&id].psns;
        for process in &mut self.processes {
            let mut ledger = process.ledger.iter();
            let Some((&id, _)) = ledger.find(|(_, entry)| !entry.active && entry.psns == psns)
            else {
                continue;
            };
            if matches!(process.manager.state(id), Some(ConnectionState::RepSent)) {
                process.plans.insert((self.now, id, Plan::Data));
            }
        }
    }

    fn plan_end(&mut self, index: usize, id: ConnectionId) {
        let when = self.now + Duration::from_micros(self.luck.below(30_000));
        self.processes[index].plans.insert((when, id, Plan::Leave));
    }

    fn hear(&mut self, index: usize, event: Event<usize>) {
        let soon = self.now + Duration::from_micros(self.luck.below(3_000));
        let late = self.now + Duration::from_micros(self.luck.below(80_000));
        let drawn = self.luck.below(100);
        let process = &mut self.processes[index];
        match event {
            Event::Asked { id, request, private, .. } => {
                if self.faults.damaged == 0 {
                    assert!(private.starts_with(b"hello\0"));
                }
                let psns = (request.psn, Psn::default());
                let entry = Entry { peer_qpn: Some(request.qpn), psns, ..Entry::default() };
                assert!(process.ledger.insert(id, entry).is_none(), "asked once");
                let plans: &[_] = match drawn {
                    0..70 => &[(soon, Plan::Accept)],
                    70..80 => &[(soon, Plan::Delay), (late, Plan::Accept)],
                    80..85 => &[(late, Plan::Accept)],
                    85..88 => &[(soon, Plan::Accept), (late, Plan::Reject)],
                    88..98 => &[(soon, Plan::Reject)],
                    _ => &[],
                };
                process.plans.extend(plans.iter().map(|&(when, plan)| (when, id, plan)));
            }
            Event::Replied { id, reply, extensions, private } => {
                if self.faults.damaged == 0 {
                    assert!(private.starts_with(b"welcome\0"));
                }
                let entry = process.ledger.get_mut(&id).expect("asked for");
                assert!(entry.active && entry.peer_qpn.is_none(), "replied once: {entry:?}");
                (entry.peer_qpn, entry.extensions) = (Some(reply.qpn), extensions);
                entry.psns.1 = reply.psn;
                let plans: &[_] = match drawn {
                    0..85 => &[(soon, Plan::Ready)],
                    85..92 => &[(soon, Plan::Delay), (late, Plan::Ready)],
                    92..98 => &[(soon, Plan::Reject)],
                    _ => &[],
                };
                process.plans.extend(plans.iter().map(|&(when, plan)| (when, id, plan)));
            }
            Event::Established { id, .. } => {
                let entry = process.ledger.get_mut(&id).expect("asked");
                assert!(!entry.active && !entry.stood && entry.failed.is_none(), "{entry:?}");
                entry.stood = true;
                self.stood[1].insert(entry.psns, entry.told());
                if drawn < 70 {
                    self.plan_end(index, id);
                }
            }
            Event::Failed { id, why } => {
                let entry = process.ledger.get_mut(&id).expect("asked, here or there");
                assert!(!entry.stood && !entry.given_up && entry.failed.is_none(), "{entry:?}");
                entry.failed = Some(why);
            }
            Event::Ended { id, why } => {
                let entry = process.ledger.get_mut(&id).expect("asked, here or there");
                assert!(entry.stood && entry.ended.is_none(), "{entry:?}");
                entry.ended = Some(why);
            }
            // The peers of what stands are not asked here: the rest is ended when the run is over.
            Event::Claimed { .. } | Event::Newcomer { .. } => {}
            Event::Shaken { .. } | Event::Identified { .. } => panic!("nobody encrypts"),
            Event::Released { id, qpn } => {
                let entry = process.ledger.remove(&id).expect("released once");
                assert_eq!(qpn, entry.qpn);
                process.qpns.extend(qpn.map(Qpn::get));
                let outcomes = [entry.stood, entry.failed.is_some(), entry.given_up];
                let count = outcomes.iter().filter(|&&outcome| outcome).count();
                assert_eq!(count, 1, "one outcome: {entry:?}");
                assert_eq!(entry.stood, entry.ended.is_some(), "{entry:?}");
                if !entry.active && !entry.stood {
                    self.fell.insert(entry.psns, entry.failed.clone());
                }
                process.done.push(entry);
            }
        }
    }

    fn check(&mut self) {
        if self.faults.damaged == 0 {
            self.compare();
        }
        for process in &mut self.processes {
            assert_eq!(process.manager.usage().places, 0, "{:?}", process.manager.usage());
            assert_eq!(process.manager.usage().names, 0);
            assert_eq!(process.manager.usage().live, 0);
            assert_eq!(process.manager.next_timeout(), None);
            assert_eq!(process.manager.counters().crowded_out, 0);
            for entry in &process.done {
                let key = match (entry.active, entry.stood, &entry.failed) {
                    (true, true, _) => "asked for, stood",
                    (true, _, Some(Why::Refused { .. })) => "asked for, refused",
                    (true, _, Some(Why::TimedOut { .. })) => "asked for, timed out",
                    (true, _, Some(Why::Stale)) => "asked for, stale",
                    (true, _, Some(_)) => "asked for, failed otherwise",
                    (true, false, None) => "asked for, given up",
                    (false, true, _) => "taken up, stood",
                    (false, ..) => "taken up, or not, and failed",
                };
                *self.tally.entry(key).or_default() += 1;
            }
        }
    }
}

impl Crowd {
    /// What the two sides of each connection say agrees; or the side that says that it did not come
    /// about has learned so by a time-out, from the other, or decided it itself.
    fn compare(&self) {
        let [requesters, responders] = &self.stood;
        for (psns, told) in responders {
            assert_eq!(requesters.get(psns), Some(told), "a connection stands at one side only");
        }
        let one_sided = requesters.keys().filter(|psns| !responders.contains_key(psns));
        for psns in one_sided {
            match self.fell.get(psns) {
                Some(
                    None | Some(Why::TimedOut { .. } | Why::PeerLeft { .. } | Why::Refused { .. }),
                ) => {}
                // The responder is no more, or has heard that the requester is.
                None | Some(Some(Why::Stale)) if self.faults.restarts > 0 => {}
                other => panic!("a connection stands at its requester, and here {other:?}"),
            }
        }
    }
}

impl Entry {
    fn told(&self) -> Told {
        match self.active {
            true => (self.qpn, self.peer_qpn, self.extensions),
            false => (self.peer_qpn, self.qpn, self.extensions),
        }
    }
}

impl Process {
    /// A program listens, and has all its queue pairs.
    fn begin(&mut self, tag: u32) {
        let listens = usize::from(tag == 4);
        let services = [SERVICE, doorbell_core::wire::ServiceId(SERVICE.0 + 1)];
        self.manager.listen(services[listens], 16).unwrap();
        if self.address == 2 {
            self.manager.others_listen(services[1 - listens], true).unwrap();
        }
        self.qpns = (0..QUEUE_PAIRS).map(|n| tag << 12 | n).collect();
    }
}
