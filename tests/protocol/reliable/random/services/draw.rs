//! How programs of all services are drawn.

use std::time::Duration;

use doorbell_core::nic::{DATAGRAM_HEADER, Rights, Transport};
use doorbell_core::wire::Qkey;

use super::super::dice::Dice;
use super::super::program::{self, Net, Queue, depth, ends};
use super::super::spoil::without;
use super::super::strategy::{Random, Report};
use super::message::{Message, Place, Sender, What, Wrong};
use super::program::{End, Mood, Op, Pair, Program, Round, Supply, places};
use super::run::run;
use super::smaller::smaller;

impl Random for Program {
    const NAME: &'static str = "services";
    const TEST: &'static str = "every_service";

    fn run(&self) -> Report {
        run(self)
    }

    fn smaller(&self) -> Vec<Self> {
        smaller(self)
    }

    fn draw(dice: &mut Dice) -> Self {
        let nodes = dice.pick(&[2, 2, 3, 4]);
        let net = Net::draw(dice, program::Mood::Patient, nodes);
        let mood = match dice.below(100) {
            0..55 => Mood::Plain,
            55..80 => Mood::Wrong,
            80..90 => Mood::Stopped,
            // A device that can't lose sees to that itself.
            _ if net.lossless => Mood::Plain,
            _ => Mood::Silent,
        };
        let ample = dice.percent(50);
        let watched = !net.lossless && net.is_faithful() && dice.percent(40);
        let idle = Duration::from_millis(dice.between(10, 60) as u64);
        let keep_alive = (watched || mood == Mood::Silent).then_some(idle);
        let mut pairs = pairs(dice, nodes);
        let count = if dice.percent(20) { 2 } else { 1 };
        let wrong = if mood == Mood::Wrong { 12 } else { 0 };
        let mut rounds: Vec<Round> = (0..count)
            .map(|_| Round { streams: streams(dice, &pairs, wrong), ops: Vec::new() })
            .collect();
        if mood == Mood::Wrong {
            deny_writes(dice, &mut pairs, &mut rounds);
        }
        let mut supplies = supplies(dice, ample, nodes, &mut pairs, &rounds);
        let queues = queues(dice, ample, nodes, &mut supplies, &mut pairs, &rounds);
        for round in &mut rounds {
            let drawn = Drawn { mood, nodes, idle: keep_alive, pairs: pairs.len() };
            round.ops = drawn.ops(dice, queues.len(), supplies.len());
        }
        let luck = dice.u64();
        Self { luck, mood, net, nodes, keep_alive, ample, queues, supplies, pairs, rounds }
    }
}

fn pairs(dice: &mut Dice, nodes: usize) -> Vec<Pair> {
    let transports = [Transport::Unreliable, Transport::Datagram, Transport::Reliable];
    let mut pairs: Vec<Pair> = (0..dice.pick(&[1, 2, 2, 3, 4]))
        .map(|_| Pair {
            transport: dice.pick(&transports),
            ends: ends(dice, program::Mood::Patient, nodes).map(|own| End {
                own,
                supply: 0,
                qkey: Qkey(dice.u64() as u32),
                late: dice.percent(15),
            }),
        })
        .collect();
    // Whoever sends a datagram must know what the receiver takes.
    let datagrams = pairs.iter().position(|pair| pair.transport == Transport::Datagram);
    if let Some(mtu) = datagrams.map(|first| pairs[first].ends[0].own.mtu) {
        let pairs = pairs.iter_mut().filter(|pair| pair.transport == Transport::Datagram);
        pairs.flat_map(|pair| &mut pair.ends).for_each(|end| end.own.mtu = mtu);
    }
    pairs
}

fn streams(dice: &mut Dice, pairs: &[Pair], wrong: usize) -> Vec<[Vec<Message>; 2]> {
    let mut streams = Vec::new();
    for pair in pairs {
        let mut stream = |end: &End| {
            let datagrams = places(pairs).filter(|((pair, _), other)| {
                pairs[*pair].transport == Transport::Datagram && other.own.node != end.own.node
            });
            let others: Vec<Place> = datagrams.map(|(place, _)| place).collect();
            let (transport, mtu) = (pair.transport, end.own.mtu);
            Message::stream(dice, &Sender { transport, mtu, others: &others, wrong })
        };
        streams.push([stream(&pair.ends[0]), stream(&pair.ends[1])]);
    }
    streams
}

/// Has some ends of unreliable connections allow no writes, which makes those to them wrong.
fn deny_writes(dice: &mut Dice, pairs: &mut [Pair], rounds: &mut [Round]) {
    for (number, pair) in pairs.iter_mut().enumerate() {
        for end in 0..2 {
            if pair.transport != Transport::Unreliable || !dice.percent(20) {
                continue;
            }
            pair.ends[end].own.rights = without(Rights::REMOTE_WRITE);
            let to = rounds.iter_mut().flat_map(|round| &mut round.streams[number][1 - end]);
            for message in to.filter(|message| message.what == What::Write) {
                message.wrong = message.wrong.or(Some(Wrong::NotGranted));
            }
        }
    }
}

impl Round {
    /// The messages that take a receive of an end.
    fn messages_to(&self, to: Place) -> impl Iterator<Item = &Message> {
        let streams = self.streams.iter().enumerate();
        let messages = streams.flat_map(|(pair, [a, b])| {
            let from = |end| move |message| ((pair, end), message);
            a.iter().map(from(0)).chain(b.iter().map(from(1)))
        });
        let reach = move |((pair, end), message): (Place, &Message)| match message.what {
            What::Datagram(named) => named == to,
            What::Send | What::Write => (pair, 1 - end) == to,
        };
        messages.filter(move |&found| reach(found)).map(|(_, message)| message)
    }
}

/// Draws receive queues, and who draws from which.
fn supplies(
    dice: &mut Dice,
    ample: bool,
    nodes: usize,
    pairs: &mut [Pair],
    rounds: &[Round],
) -> Vec<Supply> {
    let mut supplies = Vec::new();
    let new = |node, shared| Supply { node, queue: 0, shared, depth: 0, least: 0, most: 0 };
    for node in 0..nodes {
        let first = supplies.len();
        let shared = dice.pick(&[0, 1, 1, 2]);
        supplies.extend((0..shared).map(|_| new(node, true)));
        for end in pairs.iter_mut().flat_map(|pair| &mut pair.ends) {
            if end.own.node != node {
                continue;
            }
            end.supply = supplies.len();
            match shared > 0 && dice.percent(75) {
                true => end.supply = first + dice.below(shared),
                false => supplies.push(new(node, false)),
            }
        }
    }
    for (index, supply) in supplies.iter_mut().enumerate() {
        let users = || places(pairs).filter(|(_, end)| end.supply == index).map(|(place, _)| place);
        let of_round = |round: &Round| {
            let messages = users().flat_map(|to| round.messages_to(to));
            messages.filter(|message| message.takes_receive()).count()
        };
        let messages = rounds.iter().flat_map(|round| users().flat_map(|to| round.messages_to(to)));
        let longest = messages.map(|message| message.len).max().unwrap_or(0) + DATAGRAM_HEADER;
        // Whoever sends by a reliable connection breaks it if there is too little room.
        let reliable = users().any(|(pair, _)| pairs[pair].transport == Transport::Reliable);
        let roomy = ample || reliable || dice.percent(70);
        (supply.least, supply.most) = (if roomy { longest } else { 0 }, longest + dice.below(100));
        supply.depth = match ample {
            true => rounds.iter().map(of_round).max().unwrap_or(0).max(1) + dice.below(3),
            false => depth(dice),
        };
    }
    supplies
}

/// Draws completion queues and deals them out. Often they have no more entries than they must.
fn queues(
    dice: &mut Dice,
    ample: bool,
    nodes: usize,
    supplies: &mut [Supply],
    pairs: &mut [Pair],
    rounds: &[Round],
) -> Vec<Queue> {
    let mut queues = Vec::new();
    for node in 0..nodes {
        let first = queues.len();
        let count = dice.between(1, 3);
        let mut needed = vec![0; count];
        let mut all = vec![0; count];
        for supply in supplies.iter_mut().filter(|supply| supply.node == node) {
            let queue = dice.below(count);
            supply.queue = first + queue;
            all[queue] += supply.depth;
        }
        for (pair, two) in pairs.iter_mut().enumerate() {
            for (end, own) in two.ends.iter_mut().enumerate() {
                if own.own.node != node {
                    continue;
                }
                let send = dice.below(count);
                own.own.send_queue = first + send;
                own.own.receive_queue = supplies[own.supply].queue;
                needed[own.own.receive_queue - first] += 1;
                let sends = rounds.iter().map(|round| round.streams[pair][end].len());
                all[send] += 1 + sends.max().unwrap_or(0);
            }
        }
        for (needed, all) in needed.into_iter().zip(all) {
            let spare = if ample { all } else { dice.pick(&[0, 0, 1, 3, 20, 100]) };
            queues.push(Queue { node, capacity: needed + 1 + spare });
        }
    }
    queues
}

/// What was drawn before, as far as it matters to what programs do.
struct Drawn {
    mood: Mood,
    nodes: usize,
    idle: Option<Duration>,
    pairs: usize,
}

impl Drawn {
    fn ops(&self, dice: &mut Dice, queues: usize, supplies: usize) -> Vec<Op> {
        let ahead = dice.pick(&[0, 50, 100, 100]);
        let count = dice.between(5, 60);
        let mut ops: Vec<Op> = (0..count)
            .map(|_| {
                let (pair, end) = (dice.below(self.pairs), dice.below(2));
                let supply = dice.below(supplies);
                match dice.below(100) {
                    0..30 => Op::Send { pair, end, count: dice.between(1, 4) },
                    30..55 if dice.percent(ahead) => {
                        Op::Receive { supply, count: dice.between(1, 6) }
                    }
                    30..66 => Op::Poll { queue: dice.below(queues), most: dice.pick(&[1, 2, 100]) },
                    66..86 => Op::Wait { nanos: self.time(dice) },
                    86..90 => Op::Arm { queue: dice.below(queues), solicited: dice.percent(50) },
                    90..95 => Op::Limit { supply, limit: dice.between(1, 8) },
                    95 => Op::Drain { pair, end },
                    96 => Op::Resume { pair, end },
                    _ => Op::Speak { pair, end },
                }
            })
            .collect();
        let at = dice.below(count);
        match self.mood {
            Mood::Stopped => {
                ops[at] = Op::Stop { pair: dice.below(self.pairs), end: dice.below(2) };
            }
            Mood::Silent => ops[at] = Op::Silence { node: dice.below(self.nodes) },
            Mood::Plain | Mood::Wrong => {}
        }
        ops
    }

    /// How long to wait: if hosts are watched, also for so long that one is asked.
    fn time(&self, dice: &mut Dice) -> u64 {
        match self.idle {
            Some(idle) if dice.percent(15) => dice.below(2 * idle.as_nanos() as usize) as u64,
            _ => {
                let most = dice.pick(&[100, 3000, 30_000, 200_000]);
                dice.below(most) as u64
            }
        }
    }
}
