//! What was posted, and what has become of it.

use std::collections::VecDeque;

use doorbell_core::nic::Completion;

use super::packets::PAIRS;

/// The two queues of a queue pair.
#[derive(Clone, Copy)]
pub enum Side {
    Sends,
    Receives,
}

/// What is outstanding, each with its number and whether its success is told.
#[derive(Default)]
pub struct Ledger {
    next: u64,
    queues: [[VecDeque<(u64, bool)>; 2]; PAIRS],
}

impl Ledger {
    /// The number of the next request: it tells the queue that it is for.
    pub fn id(&self, pair: usize, side: Side) -> u64 {
        self.next << 8 | (pair as u64) << 1 | side as u64
    }

    /// That request was posted.
    pub fn post(&mut self, id: u64, signalled: bool) {
        let (pair, side) = Self::queue(id);
        self.next += 1;
        self.queues[pair][side].push_back((id, signalled));
    }

    const fn queue(id: u64) -> (usize, usize) {
        ((id >> 1 & 0x7F) as usize, (id & 1) as usize)
    }

    /// A request has come to its end: it and those before it, which are told of nowhere.
    pub fn complete(&mut self, completion: &Completion) {
        let id = completion.id;
        let (pair, side) = Self::queue(id);
        loop {
            let first = self.queues[pair][side].pop_front();
            let (first, signalled) = first.expect("a completion of what is outstanding");
            if first == id {
                assert!(signalled || completion.outcome.is_err(), "nobody wanted to hear of it");
                return;
            }
            assert!(!signalled, "{first} was overtaken by {id}");
        }
    }

    /// How many have not completed, as far as was heard.
    pub fn outstanding(&self, pair: usize, side: Side) -> usize {
        self.queues[pair][side as usize].len()
    }

    /// Everything has come to its end.
    pub fn close(&self) {
        for (id, signalled) in self.queues.iter().flatten().flatten() {
            assert!(!signalled, "{id} never completed");
        }
    }

    /// How many were posted.
    pub fn posted(&self) -> u64 {
        self.next
    }
}
