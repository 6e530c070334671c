//! What a random run consists of, drawn before anything runs: a network, queue pairs, messages, and
//! what programs do in which order.

use std::time::Duration;

use doorbell_core::encap::{Path, Version};
use doorbell_core::nic::{Config, Connection, Rights, Sending};
use doorbell_core::wire::{PathMtu, Psn, Qpn, RnrTimer};
use doorbell_simulation::{Bandwidth, Fabric, Faults, LinkConfig, SwitchConfig};

use super::dice::Dice;
use super::message::Stream;
use super::run::run;
use super::smaller::smaller;
use super::spoil::{spoil, without};
use super::strategy::{Random, Report};

#[derive(Clone, Debug)]
pub struct Program {
    /// What is left to chance while it runs comes from this.
    pub luck: u64,
    pub mood: Mood,
    pub net: Net,
    pub nodes: usize,
    pub queues: Vec<Queue>,
    pub pairs: Vec<[End; 2]>,
    pub rounds: Vec<Round>,
}

/// What may go wrong in a run without being wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mood {
    /// Nothing: everything is retried for as long as it takes, and must succeed.
    Patient,
    /// A queue pair may give up.
    Impatient,
    /// One message is one that must break its queue pair.
    Wrong,
    /// A queue pair is told to stop in the middle, or taken down, or memory is taken from it.
    Stopped,
}

#[derive(Clone, Debug)]
pub struct Net {
    pub version: Version,
    pub lossless: bool,
    /// Whether memory that peers write is mapped there.
    pub mapped: bool,
    /// Whether NICs make many writes of a long one.
    pub runs: bool,
    pub latency: Duration,
    pub bandwidth: Bandwidth,
    pub faults: Faults,
    pub switch: Option<SwitchConfig>,
    /// How many packets a device takes at a time.
    pub room: usize,
}

/// A completion queue.
#[derive(Clone, Debug)]
pub struct Queue {
    pub node: usize,
    pub capacity: usize,
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct End {
    pub node: usize,
    pub send_queue: usize,
    pub receive_queue: usize,
    pub send_depth: usize,
    pub receive_depth: usize,
    pub rights: Rights,
    pub mtu: PathMtu,
    pub first: u32,
    pub window: u32,
    pub timeout: Duration,
    pub retries: u8,
    pub rnr_retries: u8,
    pub ask_each: bool,
    pub not_ready: RnrTimer,
    pub ack_every: u16,
    pub ack_delay: Duration,
    pub credits: bool,
    /// How many reads and atomic operations of the peer's it takes at a time, and has under way.
    pub reads: u8,
    pub asks: u8,
    /// Whether it takes the peer for one that takes metadata.
    pub metadata: bool,
    /// Whether both ends have agreed to send again only what is missing.
    pub selective: bool,
    /// Whether it slows down by what it learns of the path.
    pub congestion: bool,
    /// By how many routes packets go.
    pub paths: u8,
}

/// A life of every connection: from the reset state to the error state.
#[derive(Clone, Debug)]
pub struct Round {
    /// What each end of each connection sends.
    pub streams: Vec<[Stream; 2]>,
    pub ops: Vec<Op>,
    /// How the queue pairs end, if this is the last round.
    pub dropped: bool,
}

/// What a program does.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// Wants the next so many messages of a stream sent.
    Send {
        pair: usize,
        end: usize,
        count: usize,
    },
    /// Wants the next so many receives posted.
    Receive {
        pair: usize,
        end: usize,
        count: usize,
    },
    /// Polls a completion queue so often at most.
    Poll {
        queue: usize,
        most: usize,
    },
    /// Lets time pass.
    Wait {
        nanos: u64,
    },
    /// Asks for an event.
    Arm {
        queue: usize,
        solicited: bool,
    },
    Drain {
        pair: usize,
        end: usize,
    },
    Resume {
        pair: usize,
        end: usize,
    },
    /// Tells a queue pair to stop.
    Stop {
        pair: usize,
        end: usize,
    },
    /// Drops a queue pair's ends, and takes it down.
    TakeDown {
        pair: usize,
        end: usize,
    },
    /// Takes a registration back while it may be in use.
    Revoke {
        pair: usize,
        end: usize,
        what: Revoked,
    },
}

/// Which registration of an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Revoked {
    Source,
    Fetched,
    Landing,
    Target,
    Library,
    Words,
}

impl Revoked {
    pub const ALL: [Self; 6] =
        [Self::Source, Self::Fetched, Self::Landing, Self::Target, Self::Library, Self::Words];
}

impl Random for Program {
    const NAME: &'static str = "reliable";
    const TEST: &'static str = "random_programs";

    fn run(&self) -> Report {
        run(self)
    }

    fn smaller(&self) -> Vec<Self> {
        smaller(self)
    }

    fn draw(dice: &mut Dice) -> Self {
        let mood = match dice.below(100) {
            0..55 => Mood::Patient,
            55..70 => Mood::Impatient,
            70..92 => Mood::Wrong,
            _ => Mood::Stopped,
        };
        let nodes = dice.pick(&[2, 2, 2, 3, 4]);
        let net = Net::draw(dice, mood, nodes);
        let mut pairs: Vec<[End; 2]> =
            (0..dice.pick(&[1, 1, 2, 2, 3, 4])).map(|_| ends(dice, mood, nodes)).collect();
        let queues = queues(dice, nodes, &mut pairs);
        let count = if dice.percent(20) { 2 } else { 1 };
        let mut rounds: Vec<Round> = (0..count)
            .map(|_| {
                let streams =
                    pairs.iter().map(|ends| [0, 1].map(|end| Stream::draw(dice, ends[end].mtu)));
                let streams = streams.collect();
                Round { streams, ops: Vec::new(), dropped: dice.percent(30) }
            })
            .collect();
        if mood == Mood::Wrong {
            spoil(dice, &mut pairs, &mut rounds);
        }
        for round in &mut rounds {
            round.ops = ops(dice, mood, &round.streams, queues.len());
        }
        Self { luck: dice.u64(), mood, net, nodes, queues, pairs, rounds }
    }
}

/// A buffer that no run fills.
const LARGE: usize = 1 << 26;

/// Room for the frames of any run.
const RECORDED: usize = 1 << 28;

impl Net {
    /// NICs on such a network, and what goes over it recorded.
    pub fn fabric(&self, luck: u64, nodes: usize, config: Config) -> Fabric {
        let mut fabric = Fabric::new(luck, self.version, config);
        fabric.room = self.room;
        fabric.network.start_recording(RECORDED);
        let (latency, bandwidth) = (self.latency, self.bandwidth);
        let cable = LinkConfig { latency, bandwidth, mtu: 9000, ..LinkConfig::default() };
        let cable = cable.with_faults(self.faults);
        let switch = self.switch.map(|config| fabric.network.switch(config));
        for _ in 0..nodes {
            let node = fabric.node();
            let station = fabric.station(node);
            if let Some(switch) = switch {
                fabric.network.link(station, switch, cable);
            }
        }
        if switch.is_none() {
            let (a, b) = (fabric.station(0), fabric.station(1));
            fabric.network.link(a, b, cable);
        }
        fabric
    }

    /// Whether everything that is sent arrives once, whole and in order.
    pub fn is_faithful(&self) -> bool {
        let Faults { loss, duplication, corruption, reordering, .. } = self.faults;
        let overflows = self.switch.is_some_and(|switch| switch.buffer < LARGE);
        [loss, duplication, corruption, reordering] == [0.0; 4] && !overflows
    }

    pub fn draw(dice: &mut Dice, mood: Mood, nodes: usize) -> Self {
        let lossless = dice.percent(25);
        let faulty = !lossless && dice.percent(if mood == Mood::Impatient { 90 } else { 65 });
        let mut chance = |most: f64| match faulty && dice.percent(60) {
            true => most * dice.below(1000) as f64 / 1000.0,
            false => 0.0,
        };
        let most = if mood == Mood::Impatient { 0.2 } else { 0.06 };
        let mut faults = Faults {
            loss: chance(most),
            duplication: chance(0.06),
            corruption: chance(0.05),
            reordering: chance(0.06),
            ..Faults::NONE
        };
        faults.reordering_delay = Duration::from_nanos(dice.between(100, 40_000) as u64);
        faults.duplication_delay = Duration::from_nanos(dice.between(100, 40_000) as u64);
        let bandwidth = match dice.below(4) {
            0 => Bandwidth::UNLIMITED,
            1 => Bandwidth::gigabits_per_second(100),
            2 => Bandwidth::gigabits_per_second(10),
            _ => Bandwidth::gigabits_per_second(1),
        };
        let small = !lossless && dice.percent(30);
        let switch = (nodes > 2 || dice.percent(20)).then(|| SwitchConfig {
            latency: Duration::from_nanos(dice.between(0, 2000) as u64),
            buffer: if small { dice.between(16_000, 60_000) } else { LARGE },
            ecn_threshold: dice.percent(20).then_some(8000),
        });
        let version = dice.pick(&[Version::V1, Version::V2Ipv4, Version::V2Ipv6]);
        let latency = Duration::from_nanos(dice.pick(&[0, 300, 1000, 5000, 20_000]));
        let room = if dice.percent(25) { dice.between(1, 5) } else { usize::MAX };
        let runs = dice.percent(50);
        let mapped = lossless && dice.percent(50);
        Self { version, lossless, mapped, runs, latency, bandwidth, faults, switch, room }
    }
}

pub fn depth(dice: &mut Dice) -> usize {
    dice.pick(&[1, 1, 2, 3, 5, 8, 16, 40])
}

impl End {
    /// How it answers its peer, which is to begin with `expected`.
    pub fn connection(&self, peer: &Self, qpn: Qpn, path: Path, expected: Psn) -> Connection {
        let Self { mtu, not_ready, ack_every, ack_delay, credits, reads, selective, .. } = *self;
        let (peer, metadata) = (qpn, peer.metadata);
        Connection {
            peer,
            peer_guid: None,
            path,
            mtu,
            expected,
            not_ready,
            ack_every,
            ack_delay,
            credits,
            reads,
            metadata,
            selective,
        }
    }

    /// How it sends to such a peer, beginning with `first`.
    pub fn sending(&self, peer: &Self, first: Psn) -> Sending {
        let Self { window, timeout, retries, rnr_retries, ask_each, metadata, selective, .. } =
            *self;
        let congestion = self.congestion;
        let (peer_delay, reads) = (peer.ack_delay, self.asks);
        Sending {
            first,
            window,
            timeout,
            peer_delay,
            retries,
            patience: Duration::ZERO,
            rnr_retries,
            ask_each,
            reads,
            metadata,
            selective,
            congestion,
            ecn: false,
            paths: self.paths,
        }
    }
}

pub fn ends(dice: &mut Dice, mood: Mood, nodes: usize) -> [End; 2] {
    let (mtu, selective) = (dice.pick(&PathMtu::ALL), dice.percent(50));
    let a = dice.below(nodes);
    let b = (a + dice.between(1, nodes - 1)) % nodes;
    let mut ends = [a, b].map(|node| {
        let impatient = mood == Mood::Impatient;
        End {
            node,
            send_queue: 0,
            receive_queue: 0,
            send_depth: depth(dice),
            receive_depth: depth(dice),
            rights: without(Rights::NONE),
            mtu,
            first: match dice.percent(40) {
                true => 0xFF_FFFF - dice.below(60) as u32,
                false => dice.u64() as u32 & 0xFF_FFFF,
            },
            window: dice.pick(&[1, 2, 3, 8, 32, 128, 128, 5000]),
            timeout: Duration::from_micros(dice.pick(&[200, 500, 2000, 2000])),
            retries: if impatient { dice.below(3) as u8 } else { 15 },
            rnr_retries: if impatient { dice.below(7) as u8 } else { 7 },
            ask_each: dice.percent(30),
            not_ready: RnrTimer::at_least(Duration::from_micros(dice.pick(&[10, 30, 100, 640]))),
            ack_every: dice.pick(&[1, 2, 7, 16, 64]),
            ack_delay: Duration::from_micros(dice.pick(&[0, 10, 50, 50, 400])),
            credits: dice.percent(70),
            reads: dice.pick(&[1, 1, 2, 4, 16, 16]),
            asks: 0,
            metadata: true,
            selective,
            congestion: dice.percent(50),
            paths: dice.pick(&[1, 1, 4, 16]),
        }
    });
    for end in [0, 1] {
        let most = ends[1 - end].reads;
        ends[end].asks = if dice.percent(50) { most } else { 1 + dice.below(most.into()) as u8 };
    }
    ends
}

/// Draws completion queues and deals them out.
///
/// Often they have no more entries than they must.
fn queues(dice: &mut Dice, nodes: usize, pairs: &mut [[End; 2]]) -> Vec<Queue> {
    let mut queues = Vec::new();
    for node in 0..nodes {
        let first = queues.len();
        let count = dice.between(1, 3);
        let (mut sends, mut receives) = (vec![0usize; count], vec![0usize; count]);
        for end in pairs.iter_mut().flatten().filter(|end| end.node == node) {
            let (send, receive) = (dice.below(count), dice.below(count));
            (end.send_queue, end.receive_queue) = (first + send, first + receive);
            sends[send] += 1;
            receives[receive] += 1;
        }
        for (sends, receives) in sends.into_iter().zip(receives) {
            let needed: usize = receives + usize::from(sends > 0);
            let capacity = needed.max(1) + dice.pick(&[0, 0, 1, 3, 20, 100]);
            queues.push(Queue { node, capacity });
        }
    }
    queues
}

fn ops(dice: &mut Dice, mood: Mood, streams: &[[Stream; 2]], queues: usize) -> Vec<Op> {
    // How much of the receives is posted during the run, and how much only at its end.
    let ahead = dice.pick(&[0, 50, 100, 100]);
    let count = dice.between(5, 60);
    let mut ops: Vec<Op> = (0..count)
        .map(|_| {
            let (pair, end) = (dice.below(streams.len()), dice.below(2));
            match dice.below(100) {
                0..30 => Op::Send { pair, end, count: dice.between(1, 4) },
                30..55 if dice.percent(ahead) => {
                    Op::Receive { pair, end, count: dice.between(1, 6) }
                }
                30..70 => Op::Poll { queue: dice.below(queues), most: dice.pick(&[1, 2, 100]) },
                70..92 => {
                    let most = dice.pick(&[100, 3000, 30_000, 200_000]);
                    Op::Wait { nanos: dice.below(most) as u64 }
                }
                92..96 => Op::Arm { queue: dice.below(queues), solicited: dice.percent(50) },
                96..98 => Op::Drain { pair, end },
                _ => Op::Resume { pair, end },
            }
        })
        .collect();
    if mood == Mood::Stopped {
        let at = dice.below(count);
        let (pair, end) = (dice.below(streams.len()), dice.below(2));
        let what = dice.pick(&Revoked::ALL);
        ops[at] = match dice.below(100) {
            0..30 => Op::Stop { pair, end },
            30..60 => Op::TakeDown { pair, end },
            _ => Op::Revoke { pair, end, what },
        };
    }
    ops
}
