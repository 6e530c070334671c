//! What was posted, and what has become of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use doorbell_core::nic::{Attachment, Completion, Done, Memory};
use doorbell_core::wire::Qpn;

use super::paths::PAIRS;

/// The queues of a queue pair.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Sends,
    Receives,
}

/// The place of the receive queue that several share: behind those of the queue pairs.
const SHARED: usize = PAIRS;

/// What a request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    Send,
    Write,
    Read { len: u32 },
    Atomic,
    Receive,
}

struct Posted {
    id: u64,
    what: What,
    signalled: bool,
    qpn: Qpn,
}

/// A message that arrived, as its completion must tell of it.
pub struct Message {
    pub done: Done,
    pub attached: Attachment,
    pub len: u32,
    /// What is in its receive.
    pub bytes: Vec<u8>,
}

/// What is outstanding.
#[derive(Default)]
pub struct Ledger {
    next: u64,
    queues: [[VecDeque<Posted>; 2]; PAIRS],
    /// Of the shared queue, which completes in any order.
    shared: BTreeSet<u64>,
    /// What arrived for each queue pair and was not heard of yet, by the place of its receives.
    messages: BTreeMap<(usize, u32), VecDeque<Message>>,
}

impl Ledger {
    /// The number of the next request: it tells the queue that it is for.
    pub fn id(&self, pair: usize, side: Side) -> u64 {
        self.next << 8 | (pair as u64) << 1 | side as u64
    }

    /// The number of the next receive for the shared queue.
    pub fn shared_id(&self) -> u64 {
        self.id(SHARED, Side::Receives)
    }

    /// That request was posted.
    pub fn post(&mut self, id: u64, what: What, signalled: bool, qpn: Qpn) {
        let (pair, side) = Self::queue(id);
        self.next += 1;
        self.queues[pair][side].push_back(Posted { id, what, signalled, qpn });
    }

    pub fn post_shared(&mut self, id: u64) {
        self.next += 1;
        self.shared.insert(id);
    }

    const fn queue(id: u64) -> (usize, usize) {
        ((id >> 1 & 0x7F) as usize, (id & 1) as usize)
    }

    /// A message has arrived, in a receive of the shared queue or of the queue pair's own.
    pub fn arrived(&mut self, pair: usize, shared: bool, qpn: Qpn, message: Message) {
        let place = if shared { SHARED } else { pair };
        self.messages.entry((place, qpn.get())).or_default().push_back(message);
    }

    /// A request has come to its end: it and those before it, which are told of nowhere. Their
    /// numbers.
    pub fn complete(&mut self, completion: &Completion) -> Vec<u64> {
        let id = completion.id;
        let (pair, side) = Self::queue(id);
        if pair == SHARED {
            assert!(self.shared.remove(&id), "a completion of what is outstanding");
            self.compare(completion);
            return vec![id];
        }
        let mut over = Vec::new();
        loop {
            let first = self.queues[pair][side].pop_front();
            let first = first.expect("a completion of what is outstanding");
            over.push(first.id);
            if first.id == id {
                assert_eq!(first.qpn, completion.qpn, "of another queue pair");
                let told = first.signalled || completion.outcome.is_err();
                assert!(told, "nobody wanted to hear of it");
                match first.what {
                    What::Receive => self.compare(completion),
                    what => what.compare(completion),
                }
                return over;
            }
            assert!(!first.signalled, "{} was overtaken by {id}", first.id);
        }
    }

    /// A receive that is complete tells of the message that arrived.
    fn compare(&mut self, completion: &Completion) {
        let Ok(done) = completion.outcome else {
            assert_eq!((completion.len, completion.attached), (0, Attachment::Nothing));
            return;
        };
        let (place, _) = Self::queue(completion.id);
        let messages = self.messages.get_mut(&(place, completion.qpn.get()));
        let message = messages.and_then(VecDeque::pop_front).expect("a message that arrived");
        let told = (done, completion.attached, completion.len);
        assert_eq!(told, (message.done, message.attached, message.len));
        if let (Memory::Buf(buf), true) = (&completion.memory, done != Done::ReceivedWrite) {
            assert_eq!(buf[..], message.bytes, "the bytes of a message");
        }
    }

    /// How many have not completed, as far as was heard.
    pub fn receives(&self, pair: usize, shared: bool) -> usize {
        match shared {
            true => self.shared.len(),
            false => self.queues[pair][Side::Receives as usize].len(),
        }
    }

    /// Everything has come to its end, but for what nobody has taken from the shared queue.
    pub fn close(&self, waiting: usize) {
        for posted in self.queues.iter().flatten().flatten() {
            assert!(!posted.signalled, "{} never completed", posted.id);
        }
        assert_eq!(self.shared.len(), waiting, "all that was taken has completed");
        assert!(self.messages.values().all(VecDeque::is_empty), "all that arrived was told");
    }

    /// How many were posted.
    pub fn posted(&self) -> u64 {
        self.next
    }
}

impl What {
    /// A request that is complete has done what it is.
    fn compare(self, completion: &Completion) {
        assert_eq!(completion.attached, Attachment::Nothing);
        let len = match (self, completion.outcome) {
            (_, Err(_))
            | (Self::Send, Ok(Done::Sent))
            | (Self::Write, Ok(Done::Written))
            | (Self::Atomic, Ok(Done::Atomic { .. })) => 0,
            (Self::Read { len }, Ok(Done::Read)) => len,
            (what, done) => panic!("{what:?} did {done:?}"),
        };
        assert_eq!(completion.len, len);
    }
}
