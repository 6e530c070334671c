//! The configuration of an endpoint.

use std::time::Duration;

use crate::config::SegmentMemory;
use crate::wire::{Admits, LISTED, SHORT, Size, Tag};

/// What an endpoint is to be like.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The number by which others know it at its NIC's address. One that nobody can guess, if none
    /// is said.
    pub service: Option<u64>,
    /// Whom it admits: everybody, peers that show a [tag](Tag), or nobody. A [`map`](crate::Endpoint::map)
    /// by others fails unless they are admitted.
    pub admits: Admits,
    /// The tag that it shows to the peers that it [connects](crate::Endpoint::connect) to, if any.
    pub shows: Option<Tag>,
    /// The most requests that each peer may have under way to it: at least 1, at most 4095.
    pub credits: usize,
    /// How many of its [credits](Self::credits) a new peer has: at least 1. A peer that uses them
    /// gets another with each answer, up to all, as long as there are [receives](Self::receives):
    /// twice as many each time that all of them come back; and twice as many a tenth of a second
    /// after calls of most of them were left unanswered. The queue for what is sent to a peer is as
    /// deep as this, too; who streams payloads of kilobytes wants it to be as many as the credits.
    pub first_credits: usize,
    /// The longest payload of a message that it takes: from 512 bytes, which is what endpoints say
    /// to each other when they meet, to a MiB. It takes up to seven bytes more, for buffers are
    /// multiples of eight.
    pub payload: usize,
    /// Memory in which peers may place payloads.
    pub segment: Option<SegmentMemory>,
    /// The most asynchronous handlers that run at a time: at least 1.
    pub tasks: usize,
    /// The most peers that it maps, and so the places of its translation table: none for an
    /// endpoint that others map and that maps nobody.
    pub places: usize,
    /// The most receives, which bounds what it holds, each as long as a payload and some: at least
    /// 4. While half of them are free, a new peer has receives for its [first
    /// credits](Self::first_credits), and for as many answers; after that, for one request, and for
    /// more as it sends them. By [`Policy::PerSize`] there are so many for messages of each size.
    pub receives: usize,
    /// How long handlers of peers have to reply to what this endpoint sends: the peers see to it,
    /// and send back what is not answered by then, as [`NoReply`](crate::Undeliverable::NoReply).
    /// So a handler that is stuck holds no credit for ever. Callers that have less time have a
    /// [deadline](Self::deadline).
    pub patience: Duration,
    /// How long a call of this endpoint's waits for its answer, and whoever waits for a credit,
    /// unless [`Peer::within`](crate::Peer::within) says otherwise. Without it a call waits until the
    /// [`patience`](Self::patience) is over, which is all the time that handlers have.
    pub deadline: Option<Duration>,
    /// How messages are carried.
    pub policy: Policy,
    /// Who sees to it that peers do not send too much.
    pub flow: Flow,
}

impl Default for EndpointConfig {
    /// Eight credits at first and up to 256, payloads of 4096 bytes, no segment, 64 asynchronous
    /// handlers, 1024 peers, half a minute of patience, no deadline.
    fn default() -> Self {
        Self {
            service: None,
            admits: Admits::Everybody,
            shows: None,
            credits: 256,
            first_credits: 8,
            payload: 4096,
            segment: None,
            tasks: 64,
            places: 1024,
            receives: 4096,
            patience: Duration::from_secs(30),
            deadline: None,
            policy: Policy::Together,
            flow: Flow::Credits,
        }
    }
}

/// How the messages that an endpoint sends are carried.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Policy {
    /// Short messages to one peer that have company share a send; and what is placed is told of by
    /// the write itself, in metadata, where the peer takes that, there are no words, and it is a
    /// packet.
    #[default]
    Together,
    /// Each message is a send of its own, and what is placed is told of by one: as the third
    /// version of AMVIA had it, of Begel, Buonadonna, Culler and Gay. To compare.
    Apart,
    /// The same, but short messages, longer ones and the longest have a connection each, with
    /// receives and credits of their own: of the short ones as many as configured, of the others
    /// half and a quarter as many. So shorter ones may overtake longer ones. A
    /// [credit](crate::Peer::credit) is for the longest. A reply, or a request to who has sent one, goes
    /// by the connection by which that came, and may be no longer than it allows: 64 bytes, 512, or
    /// the most. What is placed goes in messages, of buffers in copies, and the other side copies
    /// it where it belongs, one thing after the other; of what is given up meanwhile a part. Both
    /// endpoints are to have this policy. As AMVIA's first version had it. To compare.
    PerSize,
}

/// Who sees to it that what peers send finds a receive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Flow {
    /// The endpoint, which gives credits for what it has posted: nothing ever finds none.
    #[default]
    Credits,
    /// The NIC. Peers may have as many requests under way as they like, and each has this many
    /// receives, in a queue of its own. How many are left its NIC is told with each
    /// acknowledgement, and what finds none all the same is refused, and sent again some time
    /// later. To compare.
    Nic {
        /// How many each peer has.
        receives: usize,
    },
}

impl EndpointConfig {
    /// The longest payload of a message of this size class.
    pub(crate) fn payload_of(&self, size: Size) -> usize {
        match size {
            Size::Any | Size::Long => self.payload,
            Size::Medium => LISTED,
            Size::Short => SHORT,
        }
    }

    /// The most requests of this size class that a peer may have under way. Messages that take less
    /// memory get more credits.
    pub(crate) fn credits_of(&self, size: Size) -> usize {
        match size {
            Size::Any | Size::Short => self.credits,
            Size::Medium => self.credits.div_ceil(2),
            Size::Long => self.credits.div_ceil(4),
        }
    }

    /// The credits of this size class that a new peer has.
    pub(crate) fn first_credits_of(&self, size: Size) -> usize {
        self.credits_of(size).min(self.first_credits)
    }
}
