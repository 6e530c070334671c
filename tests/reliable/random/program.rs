//! What a random run consists of, drawn from one number before anything runs: a network, queue
//! pairs, messages with their receives, and what programs do in which order.

use std::time::Duration;

use doorbell::encap::Version;
use doorbell::nic::{MOST_INLINE, Rights};
use doorbell::wire::{PathMtu, RnrTimer};
use doorbell_kit::{Bandwidth, Faults, SwitchConfig};

use super::dice::Dice;

#[derive(Clone, Debug)]
pub struct Program {
    pub seed: u64,
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
    pub ack_every: u32,
    pub ack_delay: Duration,
    pub credits: bool,
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

#[derive(Clone, Default, Debug)]
pub struct Stream {
    pub messages: Vec<Message>,
    /// The length of the memory that the writes go to.
    pub target: usize,
    /// Receives that no message comes for.
    pub spare: usize,
    /// Receives posted before the connection is made.
    pub early: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// No memory, or a request that carries its bytes in itself.
    None,
    Buf,
    Segment,
    List,
}

#[derive(Clone, Debug)]
pub struct Message {
    /// From what its bytes are made.
    pub number: u64,
    /// Where a write goes; a send goes nowhere.
    pub write: Option<usize>,
    pub len: usize,
    pub imm: Option<u32>,
    pub signalled: bool,
    pub awaited: bool,
    pub solicited: bool,
    pub fenced: bool,
    pub source: Kind,
    /// The receive that it takes, if it takes one, and how much has room there.
    pub landing: Kind,
    pub room: usize,
    pub wrong: Option<Wrong>,
}

impl Message {
    pub fn takes_receive(&self) -> bool {
        self.write.is_none() || self.imm.is_some()
    }

    pub fn packets(&self, mtu: PathMtu) -> usize {
        self.len.div_ceil(mtu.bytes()).max(1)
    }
}

/// What is wrong with a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// A segment of what is sent.
    Source(BadKey),
    /// A segment of the receive.
    Landing(BadKey),
    /// The receive has no room for the message.
    TooSmall,
    /// What is written to.
    Remote(BadKey),
    /// The queue pair allows no writes at all.
    NoWrites,
    /// The two ends do not agree on the path MTU.
    Mtu,
}

/// What is wrong with a key, or with what it is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadKey {
    /// It was never given.
    Unknown,
    /// It was taken back, and its place in the table is free.
    Revoked,
    /// It was taken back, and its place has another registration.
    Replaced,
    /// It is of another protection domain.
    Domain,
    /// The registration does not grant this.
    Rights,
    /// The range goes so many bytes beyond the end.
    Beyond(usize),
    /// The range begins a byte before the beginning.
    Before,
    /// The range wraps around the end of all addresses.
    Wraps,
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
    Target,
    Landing,
}

/// As much as a request carries in itself.
const SMALL: usize = MOST_INLINE;

impl Program {
    pub fn draw(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let mood = match dice.below(100) {
            0..55 => Mood::Patient,
            55..70 => Mood::Impatient,
            70..92 => Mood::Wrong,
            _ => Mood::Stopped,
        };
        let nodes = dice.pick(&[2, 2, 2, 3, 4]);
        let net = Net::draw(&mut dice, mood, nodes);
        let mut pairs: Vec<[End; 2]> =
            (0..dice.pick(&[1, 1, 2, 2, 3, 4])).map(|_| ends(&mut dice, mood, nodes)).collect();
        let queues = queues(&mut dice, nodes, &mut pairs);
        let count = if dice.percent(20) { 2 } else { 1 };
        let mut rounds: Vec<Round> = (0..count)
            .map(|_| {
                let streams = pairs
                    .iter()
                    .map(|ends| [0, 1].map(|end| Stream::draw(&mut dice, ends[end].mtu)));
                let streams = streams.collect();
                Round { streams, ops: Vec::new(), dropped: dice.percent(30) }
            })
            .collect();
        if mood == Mood::Wrong {
            spoil(&mut dice, &mut pairs, &mut rounds);
        }
        for round in &mut rounds {
            round.ops = ops(&mut dice, mood, &round.streams, queues.len());
        }
        Self { seed, mood, net, nodes, queues, pairs, rounds }
    }
}

impl Net {
    fn draw(dice: &mut Dice, mood: Mood, nodes: usize) -> Self {
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
            buffer: if small { dice.between(16_000, 60_000) } else { 1 << 26 },
            ecn_threshold: dice.percent(20).then_some(8000),
        });
        let version = dice.pick(&[Version::V1, Version::V2Ipv4, Version::V2Ipv6]);
        let latency = Duration::from_nanos(dice.pick(&[0, 300, 1000, 5000, 20_000]));
        let room = if dice.percent(25) { dice.between(1, 5) } else { usize::MAX };
        Self { version, lossless, latency, bandwidth, faults, switch, room }
    }
}

fn depth(dice: &mut Dice) -> usize {
    dice.pick(&[1, 1, 2, 3, 5, 8, 16, 40])
}

fn ends(dice: &mut Dice, mood: Mood, nodes: usize) -> [End; 2] {
    let mtu = dice.pick(&PathMtu::ALL);
    let a = dice.below(nodes);
    let b = (a + dice.between(1, nodes - 1)) % nodes;
    [a, b].map(|node| {
        let impatient = mood == Mood::Impatient;
        End {
            node,
            send_queue: 0,
            receive_queue: 0,
            send_depth: depth(dice),
            receive_depth: depth(dice),
            rights: Rights::REMOTE_WRITE,
            mtu,
            first: match dice.percent(40) {
                true => 0xFF_FFFF - dice.below(60) as u32,
                false => dice.u64() as u32 & 0xFF_FFFF,
            },
            window: dice.pick(&[1, 2, 3, 8, 32, 128, 128, 5000]),
            timeout: Duration::from_micros(dice.pick(&[200, 500, 2000, 2000])),
            retries: if impatient { dice.below(3) as u8 } else { 7 },
            rnr_retries: if impatient { dice.below(7) as u8 } else { 7 },
            ask_each: dice.percent(30),
            not_ready: RnrTimer::at_least(Duration::from_micros(dice.pick(&[10, 30, 100, 640]))),
            ack_every: dice.pick(&[1, 2, 7, 16, 64]),
            ack_delay: Duration::from_micros(dice.pick(&[0, 10, 50, 50, 400])),
            credits: dice.percent(70),
        }
    })
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

impl Stream {
    fn draw(dice: &mut Dice, mtu: PathMtu) -> Self {
        let count = match dice.below(10) {
            0 => 0,
            1..6 => dice.between(1, 6),
            6..9 => dice.between(4, 15),
            _ => dice.between(10, 30),
        };
        let huge = dice.percent(4).then(|| dice.below(count.max(1)));
        let mut messages: Vec<Message> =
            (0..count).map(|index| Message::draw(dice, mtu, huge == Some(index))).collect();
        let writes = messages.iter().filter(|message| message.write.is_some());
        let lens = writes.map(|message| message.len);
        let (longest, total) = lens.fold((0, 0), |(max, sum), len| (len.max(max), sum + len));
        // From all on top of each other to hardly any.
        let target = 1 + longest + dice.below(2 * total + 100);
        for message in &mut messages {
            let len = message.len;
            if let Some(offset) = &mut message.write {
                *offset = dice.below(target - len + 1);
            }
        }
        let takers = messages.iter().filter(|message| message.takes_receive()).count();
        let early = if dice.percent(50) { dice.below(takers + 1) } else { 0 };
        let spare = if dice.percent(30) { dice.between(1, 4) } else { 0 };
        Self { messages, target, spare, early }
    }
}

impl Message {
    fn draw(dice: &mut Dice, mtu: PathMtu, huge: bool) -> Self {
        let mtu = mtu.bytes();
        let len = match dice.below(20) {
            _ if huge => dice.between(60_000, 130_000),
            0 | 1 => 0,
            2..8 => dice.between(1, SMALL),
            8..12 => dice.between(1, mtu),
            12..16 => (dice.between(1, 3) * mtu + dice.below(3)).saturating_sub(1),
            16..19 => dice.between(mtu, 4 * mtu),
            _ => dice.between(mtu, 8 * mtu),
        };
        let write = dice.percent(45).then_some(0);
        let imm = dice.percent(35).then(|| dice.u64() as u32);
        let source = match dice.pick(&[Kind::None, Kind::Buf, Kind::Segment, Kind::List]) {
            Kind::None if len > SMALL => Kind::Buf,
            other => other,
        };
        let needed = if write.is_none() { len } else { 0 };
        let landing =
            match dice.pick(&[Kind::None, Kind::Buf, Kind::Buf, Kind::Segment, Kind::List]) {
                Kind::None if needed > 0 => Kind::Segment,
                other => other,
            };
        let more = if dice.percent(50) { 0 } else { dice.below(200) };
        Self {
            number: dice.u64(),
            write,
            len,
            imm,
            signalled: dice.percent(70),
            awaited: dice.percent(20),
            solicited: dice.percent(20),
            fenced: dice.percent(10),
            source,
            landing,
            room: if landing == Kind::None { 0 } else { needed + more },
            wrong: None,
        }
    }
}

/// Makes one message of the run wrong.
fn spoil(dice: &mut Dice, pairs: &mut [[End; 2]], rounds: &mut [Round]) {
    let (round, pair, end) = (dice.below(rounds.len()), dice.below(pairs.len()), dice.below(2));
    let (from, to) = (pairs[pair][end].clone(), &mut pairs[pair][1 - end]);
    let streams = &mut rounds[round].streams[pair];
    let stream = &mut streams[end];
    if stream.messages.is_empty() {
        stream.messages.push(Message::draw(dice, from.mtu, false));
    }
    let at = dice.below(stream.messages.len());
    let message = &mut stream.messages[at];
    let key = |dice: &mut Dice| match dice.below(8) {
        0 => BadKey::Unknown,
        1 => BadKey::Revoked,
        2 => BadKey::Replaced,
        3 => BadKey::Domain,
        4 => BadKey::Beyond(1),
        5 => BadKey::Beyond(dice.between(1, 10_000)),
        6 => BadKey::Before,
        _ => BadKey::Wraps,
    };
    let rights = |dice: &mut Dice| if dice.percent(20) { BadKey::Rights } else { key(dice) };
    message.len = message.len.max(1);
    let wrong = match dice.below(12) {
        0..2 => Wrong::Source(key(dice)),
        2..4 => Wrong::Landing(rights(dice)),
        4..6 => Wrong::TooSmall,
        6..10 => Wrong::Remote(rights(dice)),
        10 => Wrong::NoWrites,
        _ => Wrong::Mtu,
    };
    message.wrong = Some(wrong);
    let lists = [Kind::Segment, Kind::List];
    match wrong {
        Wrong::Source(_) => message.source = dice.pick(&lists),
        Wrong::Landing(_) => {
            (message.write, message.landing) = (None, dice.pick(&lists));
            message.room = message.len + dice.below(20);
        }
        Wrong::TooSmall => {
            message.write = None;
            message.room = dice.below(message.len);
            if message.landing == Kind::None {
                message.room = 0;
            }
        }
        Wrong::Remote(_) | Wrong::NoWrites => {
            message.write = Some(0);
            if message.source == Kind::None {
                message.len = message.len.min(SMALL);
            }
            if wrong == Wrong::NoWrites {
                to.rights = Rights::LOCAL_WRITE;
            }
        }
        Wrong::Mtu => {
            let mtu = dice.pick(&PathMtu::ALL);
            to.mtu = if mtu == from.mtu { PathMtu::Mtu256 } else { mtu };
            if to.mtu == from.mtu {
                to.mtu = PathMtu::Mtu512;
            }
            message.source = Kind::Buf;
            message.len = 2 * from.mtu.bytes().max(to.mtu.bytes());
            if message.write.is_none() {
                message.landing = Kind::Buf;
                message.room = message.len;
            }
        }
    }
    // Whatever else is wrong with it, a message that is sent must fit.
    if message.write.is_none() && wrong != Wrong::TooSmall {
        if message.landing == Kind::None {
            message.landing = Kind::Buf;
        }
        message.room = message.room.max(message.len);
    }
    stream.target = stream.target.max(message.len);
    spread(dice, pairs, rounds, pair, wrong);
}

/// Sees to it that what was spoiled for one message spoils no others.
fn spread(dice: &mut Dice, pairs: &[[End; 2]], rounds: &mut [Round], pair: usize, wrong: Wrong) {
    let shorter = pairs[pair].iter().map(|end| end.mtu.bytes()).min().unwrap_or(256);
    for round in rounds {
        for (end, stream) in round.streams[pair].iter_mut().enumerate() {
            let refuses = !pairs[pair][1 - end].rights.include(Rights::REMOTE_WRITE);
            for message in stream.messages.iter_mut().filter(|message| message.wrong.is_none()) {
                if wrong == Wrong::Mtu {
                    message.len = message.len.min(dice.below(shorter + 1));
                }
                if refuses && message.write.is_some() {
                    message.len = 0;
                }
            }
        }
    }
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
        let what = dice.pick(&[Revoked::Source, Revoked::Target, Revoked::Landing]);
        ops[at] = match dice.below(100) {
            0..30 => Op::Stop { pair, end },
            30..60 => Op::TakeDown { pair, end },
            _ => Op::Revoke { pair, end, what },
        };
    }
    ops
}
