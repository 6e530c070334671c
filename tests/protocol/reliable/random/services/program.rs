//! What a random run of all services consists of.

use std::fmt;
use std::time::Duration;

use doorbell_core::nic::Transport;
use doorbell_core::wire::Qkey;

use super::super::program::{self, Net, Queue};
use super::message::{Message, Place};

#[derive(Clone, Debug)]
pub struct Program {
    /// What is left to chance while it runs comes from this.
    pub luck: u64,
    pub mood: Mood,
    pub net: Net,
    pub nodes: usize,
    /// How long a host may be silent, if that is watched.
    pub keep_alive: Option<Duration>,
    /// Whether there is a receive for each message before it is sent: if the network loses nothing,
    /// and nobody stops or falls silent, then all that is not wrong must arrive.
    pub ample: bool,
    pub queues: Vec<Queue>,
    pub supplies: Vec<Supply>,
    pub pairs: Vec<Pair>,
    pub rounds: Vec<Round>,
}

/// What may happen in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mood {
    Plain,
    /// Some messages are wrong.
    Wrong,
    /// A queue pair is told to stop in the middle.
    Stopped,
    /// A node falls silent.
    Silent,
}

/// A receive queue: of one queue pair, or of several.
#[derive(Clone, Debug)]
pub struct Supply {
    pub node: usize,
    /// For the completions of receives.
    pub queue: usize,
    pub shared: bool,
    pub depth: usize,
    /// The room of each receive lies between these.
    pub least: usize,
    pub most: usize,
}

/// Two queue pairs: connected to each other, unless they are of datagrams.
#[derive(Clone, Debug)]
pub struct Pair {
    pub transport: Transport,
    pub ends: [End; 2],
}

#[derive(Clone, Debug)]
pub struct End {
    pub own: program::End,
    pub supply: usize,
    pub qkey: Qkey,
    /// Whether it is ready to send only when the program says so, or at the end.
    pub late: bool,
}

/// A life of every queue pair: from the reset state to the error state.
#[derive(Clone, Debug)]
pub struct Round {
    pub streams: Vec<[Vec<Message>; 2]>,
    pub ops: Vec<Op>,
}

/// What a program does.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// Wants the next so many messages of an end sent.
    Send {
        pair: usize,
        end: usize,
        count: usize,
    },
    /// Wants so many more receives posted.
    Receive {
        supply: usize,
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
    /// Asks to be told when fewer receives are left, if the queue is a shared one.
    Limit {
        supply: usize,
        limit: usize,
    },
    /// Makes an end ready to send that is not yet.
    Speak {
        pair: usize,
        end: usize,
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
    /// Cuts a node off from all others, until the end of the round.
    Silence {
        node: usize,
    },
}

/// Every end, and where it is.
pub fn places(pairs: &[Pair]) -> impl Iterator<Item = (Place, &End)> {
    let pairs = pairs.iter().enumerate();
    pairs.flat_map(|(pair, Pair { ends: [a, b], .. })| [((pair, 0), a), ((pair, 1), b)])
}

impl fmt::Display for Program {
    /// A line for each of its parts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { luck, mood, net, nodes, keep_alive, ample, queues, supplies, pairs, rounds } =
            self;
        writeln!(f, "  {mood:?}, ample: {ample}, {nodes} nodes, luck {luck}, {net:?}")?;
        writeln!(f, "  hosts may be silent for {keep_alive:?}")?;
        for (number, queue) in queues.iter().enumerate() {
            writeln!(f, "  completion queue {number}: {queue:?}")?;
        }
        for (number, supply) in supplies.iter().enumerate() {
            writeln!(f, "  receive queue {number}: {supply:?}")?;
        }
        for ((pair, end), own) in places(pairs) {
            writeln!(f, "  pair {pair}, {:?}, end {end}: {own:?}", pairs[pair].transport)?;
        }
        for (number, round) in rounds.iter().enumerate() {
            writeln!(f, "  round {number}")?;
            for (pair, streams) in round.streams.iter().enumerate() {
                for (end, stream) in streams.iter().enumerate() {
                    writeln!(f, "  from end {end} of pair {pair}")?;
                    for (index, message) in stream.iter().enumerate() {
                        writeln!(f, "    message {index}: {message:?}")?;
                    }
                }
            }
            for op in &round.ops {
                writeln!(f, "  program: {op:?}")?;
            }
        }
        Ok(())
    }
}
