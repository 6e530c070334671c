//! The requests that were posted, and their completions.

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

/// The index that stands for the shared receive queue: behind those of the queue pairs.
const SHARED: usize = PAIRS;

/// The kind of a posted request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestKind {
    Send,
    Write,
    Read { len: u32 },
    Atomic,
    Receive,
}

struct Posted {
    id: u64,
    kind: RequestKind,
    signalled: bool,
    qpn: Qpn,
}

/// A message that arrived, as its completion must tell of it.
pub struct Message {
    pub done: Done,
    pub attached: Attachment,
    pub len: u32,
    /// The bytes that the message's receive must hold.
    pub bytes: Vec<u8>,
}

/// The requests that were posted and have not completed, and the messages that have arrived and
/// were not reported.
#[derive(Default)]
pub struct Ledger {
    next: u64,
    queues: [[VecDeque<Posted>; 2]; PAIRS],
    /// The receives of the shared queue, which complete in any order.
    shared: BTreeSet<u64>,
    /// The messages that have arrived for each queue pair and were not reported, by the receive
    /// queue that they use and the number of the queue pair.
    messages: BTreeMap<(usize, u32), VecDeque<Message>>,
}

impl Ledger {
    /// The number of the next request. The queue to which the request is posted can be told from
    /// it.
    pub fn id(&self, pair: usize, side: Side) -> u64 {
        self.next << 8 | (pair as u64) << 1 | side as u64
    }

    /// The number of the next receive for the shared queue.
    pub fn shared_id(&self) -> u64 {
        self.id(SHARED, Side::Receives)
    }

    /// Notes that a request was posted.
    pub fn post(&mut self, id: u64, kind: RequestKind, signalled: bool, qpn: Qpn) {
        let (pair, side) = Self::queue(id);
        self.next += 1;
        self.queues[pair][side].push_back(Posted { id, kind, signalled, qpn });
    }

    pub fn post_shared(&mut self, id: u64) {
        self.next += 1;
        self.shared.insert(id);
    }

    /// The queue pair to which a request was posted, and which of its queues.
    pub const fn queue(id: u64) -> (usize, usize) {
        ((id >> 1 & 0x7F) as usize, (id & 1) as usize)
    }

    /// Notes that a message has arrived, in a receive of the shared queue or of the queue pair's
    /// own.
    pub fn arrived(&mut self, pair: usize, shared: bool, qpn: Qpn, message: Message) {
        let place = if shared { SHARED } else { pair };
        self.messages.entry((place, qpn.get())).or_default().push_back(message);
    }

    /// Notes the completion of a request, and of the unsignalled requests before it, which have no
    /// completion. Returns the numbers of all these requests.
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
                match first.kind {
                    RequestKind::Receive => self.compare(completion),
                    kind => kind.compare(completion),
                }
                return over;
            }
            assert!(!first.signalled, "{} was overtaken by {id}", first.id);
        }
    }

    /// Asserts that the completion of a receive tells of the message that has arrived.
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

    /// The number of receives that have not completed, by the completions that were polled.
    pub fn receives(&self, pair: usize, shared: bool) -> usize {
        match shared {
            true => self.shared.len(),
            false => self.queues[pair][Side::Receives as usize].len(),
        }
    }

    /// Asserts that all requests have completed, except `waiting` receives of the shared queue.
    pub fn close(&self, waiting: usize) {
        for posted in self.queues.iter().flatten().flatten() {
            assert!(!posted.signalled, "{} never completed", posted.id);
        }
        assert_eq!(self.shared.len(), waiting, "all that was taken has completed");
        assert!(self.messages.values().all(VecDeque::is_empty), "all that arrived was told");
    }

    /// The number of requests that were posted.
    pub fn posted(&self) -> u64 {
        self.next
    }
}

impl RequestKind {
    /// Asserts that the completion of a request is that of its kind.
    fn compare(self, completion: &Completion) {
        assert_eq!(completion.attached, Attachment::Nothing);
        let len = match (self, completion.outcome) {
            (_, Err(_))
            | (Self::Send, Ok(Done::Sent))
            | (Self::Write, Ok(Done::Written))
            | (Self::Atomic, Ok(Done::Atomic { .. })) => 0,
            (Self::Read { len }, Ok(Done::Read)) => len,
            (kind, done) => panic!("{kind:?} did {done:?}"),
        };
        assert_eq!(completion.len, len);
    }
}
