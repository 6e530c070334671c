//! The state of a responder: what the peer requests, and what it is owed.

use crate::nic::config::connection::Connection;
use crate::nic::identifiers::SharedReceiveQueueId;
use crate::nic::queues::receives::Receives;
use crate::nic::requests::work_request::ReceiveRequest;
use crate::nic::state::responder_resources::Answers;
use crate::planted::{Bug, planted};
use crate::time::{Time, nanos};
use crate::wire::{Credits, Msn, Nak, Psn, RemoteAddr, Rkey, RnrTimer, Syndrome, Verdict};

/// What is owed to the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Due {
    Nothing,
    /// An acknowledgement of everything taken.
    Ack,
    /// A refusal of the packet that is expected, which acknowledges all before it.
    Nak(Syndrome),
}

impl Due {
    /// Whether it refuses for good.
    pub fn is_fatal(self) -> bool {
        let Self::Nak(syndrome) = self else { return false };
        matches!(syndrome.verdict(), Verdict::Nak(nak) if nak != Nak::SequenceError)
    }
}

/// The message that is being received.
pub(crate) enum Doing {
    Nothing,
    /// A send, and how much of it is there.
    Send {
        receive: ReceiveRequest,
        filled: u32,
    },
    /// A write: where the next packet goes, and how much is to come.
    Write {
        address: RemoteAddr,
        rkey: Rkey,
        left: u32,
        total: u32,
    },
}

pub(crate) struct Responder {
    pub receives: Receives,
    /// A receive that was taken for a message of which the rest did not come: it is for the next.
    /// Its completion has a slot.
    pub kept: Option<ReceiveRequest>,
    pub expected: Psn,
    pub completed: Msn,
    pub doing: Doing,
    /// Whether the packet that is expected was refused, and nothing else is until it comes.
    pub refused: bool,
    /// The packet behind the last that came since then, on a lossless device.
    pub beyond: Psn,
    pub due: Due,
    /// Packets taken since the last answer, and KiB of them.
    pub unanswered: u16,
    /// When to look whether the peer has fallen silent; how many packets there were at the look
    /// before, and how many looks there were.
    pub ack_at: Option<Time>,
    pub looked: u16,
    pub ack_every: u16,
    pub looks: u8,
    /// The time between two looks, in nanoseconds.
    pub between_looks: u64,
    pub not_ready: RnrTimer,
    credits: bool,
    /// Whether it has offered to take metadata.
    pub metadata: bool,
    /// What is to be answered by more than an acknowledgement.
    pub answers: Answers,
    /// Whether it is in the list of those that owe their peer an answer.
    pub listed: bool,
    /// Whether it is in the list of those that put an acknowledgement off.
    pub delaying: bool,
    /// Whether the peer is to be asked if it is there.
    pub asks: bool,
}

/// How often to look whether a peer has fallen silent before it is answered in any case.
const MOST_LOOKS: u8 = 16;

impl Responder {
    pub fn new(receives: Receives) -> Self {
        Self {
            receives,
            kept: None,
            expected: Psn::new(0),
            completed: Msn::new(0),
            doing: Doing::Nothing,
            refused: false,
            beyond: Psn::new(0),
            due: Due::Nothing,
            unanswered: 0,
            ack_at: None,
            looked: 0,
            looks: 0,
            ack_every: 1,
            between_looks: 0,
            not_ready: RnrTimer::from_code(0),
            credits: false,
            metadata: false,
            answers: Answers::default(),
            listed: false,
            delaying: false,
            asks: false,
        }
    }

    pub fn start(&mut self, connection: &Connection) {
        self.answers.start(connection.reads);
        self.expected = connection.expected;
        self.completed = Msn::new(0);
        self.ack_every = connection.ack_every.max(1);
        self.between_looks = nanos(connection.ack_delay / u32::from(MOST_LOOKS));
        self.not_ready = connection.not_ready;
        self.credits = connection.credits;
        self.metadata = connection.metadata;
    }

    /// Whether an acknowledgement that nobody asked for is to go: the peer is given one when it
    /// falls silent. As long as it sends, it waits for none, and each would cost both sides a
    /// packet in the midst of that.
    pub fn is_to_acknowledge(&mut self, now: Time) -> bool {
        if self.ack_at.is_none_or(|at| at > now) {
            return false;
        }
        self.looks += 1;
        let goes_on = self.unanswered != self.looked && self.looks < MOST_LOOKS;
        self.looked = self.unanswered;
        self.ack_at = goes_on.then(|| now.after(self.between_looks));
        !goes_on
    }

    pub fn forget(&mut self) {
        self.doing = Doing::Nothing;
        self.refused = false;
        self.unanswered = 0;
        self.ack_at = None;
        self.answers.forget();
        self.asks = false;
    }

    pub fn outstanding(&self) -> usize {
        let unfinished = self.kept.is_some() || matches!(self.doing, Doing::Send { .. });
        self.receives.waiting() + usize::from(unfinished)
    }

    /// The queue that it shares.
    pub fn shared(&self) -> Option<SharedReceiveQueueId> {
        match self.receives {
            Receives::Shared(queue) => Some(queue),
            Receives::Own(_) => None,
        }
    }

    /// Whether its receives come from a queue that others draw from, too.
    pub fn shares(&self) -> bool {
        self.receives.are_shared()
    }

    pub fn is_deserted(&self) -> bool {
        match &self.receives {
            Receives::Own(ring) => ring.is_deserted(),
            Receives::Shared(_) => true,
        }
    }

    pub fn pop_receive(&mut self) -> Option<ReceiveRequest> {
        if planted(Bug::FlushesNoReceives) {
            while self.receives.pop_own().is_some() {}
        }
        self.receives.pop_own()
    }

    /// Keeps a receive that was taken for the next message.
    pub fn keep(&mut self, receive: ReceiveRequest) {
        self.kept = Some(receive);
    }

    /// Drops the message that is being received; what was taken for it is kept for the next.
    pub fn drop_message(&mut self) {
        match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Send { .. } if planted(Bug::LosesTornReceives) => {}
            Doing::Send { receive, .. } => self.kept = Some(receive),
            Doing::Nothing | Doing::Write { .. } => {}
        }
    }

    /// The receive of a message that did not arrive whole; its completion has a slot.
    pub fn take_unfinished(&mut self) -> Option<ReceiveRequest> {
        self.drop_message();
        self.kept.take()
    }

    /// Counts a packet as taken.
    #[inline]
    pub fn next(&mut self) {
        self.expected = self.expected.add(1);
        self.refused = false;
        // The refusal of a packet that has since come need not be sent any more.
        if self.due == Due::Nak(Syndrome::not_ready(self.not_ready)) {
            self.due = Due::Ack;
        }
    }

    /// An acknowledgement, and the credit that goes with it.
    pub fn syndrome(&self) -> Syndrome {
        match self.credits && !self.receives.are_shared() {
            true => Syndrome::ack_with(Credits::at_most(self.receives.waiting())),
            false => Syndrome::ACK,
        }
    }

    /// Notes that the peer has been told all that there is to tell.
    #[inline]
    pub fn said(&mut self) {
        (self.due, self.unanswered, self.ack_at) = (Due::Nothing, 0, None);
    }
}
