//! The configuration of an endpoint.

use std::time::Duration;

use crate::config::SegmentMemory;
use crate::wire::{Admits, LISTED, MOST_CREDITS, SHORT, Size, Tag};

/// The most asynchronous handlers of an endpoint.
pub(crate) const MOST_TASKS: usize = 1 << 16;

/// The configuration of an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The service number by which peers know the endpoint at its NIC's address. Without one, the
    /// endpoint draws a number that nobody can guess.
    pub service: Option<u64>,
    /// The peers that the endpoint admits: all, those that prove that they know a [tag](Tag), or
    /// none. Peers that are not admitted can't [map](crate::Endpoint::map) the endpoint.
    pub admits: Admits,
    /// The tag that the endpoint shows to peers that it [connects](crate::Endpoint::connect) to, if
    /// any. A tag that the endpoint demands itself, by [`admits`](Self::admits), is shown only to
    /// peers that prove that they know it; others are
    /// [refused](crate::Unwelcome::Unproved).
    pub shows: Option<Tag>,
    /// The most requests that each peer may have under way to the endpoint: at least 1, at most
    /// [`MOST_CREDITS`](Self::MOST_CREDITS).
    pub credits: usize,
    /// The [credits](Self::credits) that a new peer has: at least 1. A peer that uses its credits
    /// gets another with each answer, up to all of them, as long as there are
    /// [receives](Self::receives): so it has twice as many each time that all of them have come
    /// back. It gets twice as many, too, a tenth of a second after calls of most of them were left
    /// unanswered. A request whose asynchronous handler waits gives its credit back before it is
    /// answered, once half of the peer's credits are those of such requests. The send queue to each
    /// peer is as deep as this number, too. A program that streams payloads of kilobytes sets it to
    /// the number of credits.
    pub first_credits: usize,
    /// The most [receives](Self::receives) that a new peer has for its requests, and as many for
    /// answers, before it sends anything: at least 1. There are more as the peer needs them.
    /// Endpoints that are many and mostly idle take less memory with 1. Such an endpoint that does
    /// not [listen](Self::listens) gives up receives when it has been idle for a second: then it
    /// has one for the requests of each peer, and none for answers. By default there are as many as
    /// [first credits](Self::first_credits).
    pub first_receives: usize,
    /// The longest payload of a message that the endpoint takes: at least 512 bytes, which
    /// endpoints send each other when they meet, and at most a MiB. The endpoint takes up to seven
    /// bytes more, since buffers are multiples of eight.
    pub payload: usize,
    /// The memory in which peers may place payloads.
    pub segment: Option<SegmentMemory>,
    /// The most asynchronous handlers that are under way at a time, of all peers: at least 1, at most
    /// [`MOST_TASKS`](Self::MOST_TASKS). One more request goes back at once, as
    /// [`Busy`](crate::Undeliverable::Busy). A sixteenth more is left for peers that have fewer than
    /// 16 handlers under way, so that others can't keep them out.
    pub tasks: usize,
    /// The most bytes that the requests of asynchronous handlers keep: their words and payloads, and
    /// the buffers in which they came. A request that would keep more goes back as
    /// [`Busy`](crate::Undeliverable::Busy), and a sixteenth more is left as with
    /// [`tasks`](Self::tasks). At least 8 KiB more than a [payload](Self::payload).
    pub task_memory: usize,
    /// The most peers that the endpoint maps, which are the places of its translation table. An
    /// endpoint that only others map needs none.
    pub places: usize,
    /// The most receives that the endpoint posts: at least 4. Each takes a buffer of a payload and
    /// some bytes, so this bounds the memory of the endpoint. While half of the receives are free,
    /// a new peer has receives for its [first credits](Self::first_credits), and for as many
    /// answers. After that it has a receive for one request, and gets more as it sends requests.
    /// With [`Policy::PerSize`] there are as many receives for each size class.
    pub receives: usize,
    /// The number of peers for each of which there is a receive beside the
    /// [`receives`](Self::receives). An endpoint with few receives can have many peers by that,
    /// most of which are idle. Without such peers, `receives` bounds their number.
    pub peers: usize,
    /// Whether peers may connect to the endpoint. An endpoint that does not listen connects to
    /// others, and takes up no service number of its NIC.
    pub listens: bool,
    /// The time that handlers of peers have to answer requests of this endpoint. The peers send
    /// back requests that are not answered by then, as [`NoReply`](crate::Undeliverable::NoReply).
    /// So a handler that is stuck does not hold a credit for ever. For callers that have less time
    /// there is a [deadline](Self::deadline).
    pub patience: Duration,
    /// The time that calls of this endpoint wait for their answers, and that tasks wait for a
    /// credit, unless [`Peer::within`](crate::Peer::within) says otherwise. Without a deadline a
    /// call waits until the [`patience`](Self::patience) is over, which is all the time that
    /// handlers have.
    pub deadline: Option<Duration>,
    /// The longest time for which messages go on to peers that were sent before the last handle to
    /// the endpoint was dropped, or its runtime ended; none if it is zero. Dropping the last handle
    /// to the NIC waits for them, and blocks its thread meanwhile. At most a minute.
    pub linger: Duration,
    /// The policy by which messages travel.
    pub policy: Policy,
    /// The flow control that keeps peers from sending too much.
    pub flow: Flow,
}

impl Default for EndpointConfig {
    /// Returns a configuration with eight credits at first and up to 256, payloads of 4096 bytes,
    /// no segment, 65,536 asynchronous handlers whose requests keep up to 64 MiB, 1024 peers that
    /// are mapped, half a minute of patience, no deadline, and a second of lingering.
    fn default() -> Self {
        Self {
            service: None,
            admits: Admits::Everybody,
            shows: None,
            credits: 256,
            first_credits: 8,
            first_receives: usize::MAX,
            payload: 4096,
            segment: None,
            tasks: MOST_TASKS,
            task_memory: 64 << 20,
            places: 1024,
            receives: 4096,
            peers: 0,
            listens: true,
            patience: Duration::from_secs(30),
            deadline: None,
            linger: Duration::from_secs(1),
            policy: Policy::Together,
            flow: Flow::Credits,
        }
    }
}

/// The policy by which the messages of an endpoint travel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Policy {
    /// Short messages to one peer share a send if several are to leave. Placed data of at most a
    /// packet, without words of arguments, is announced by the metadata of its write, if the peer
    /// takes that.
    #[default]
    Together,
    /// Each message is a send of its own, and a message announces placed data. The third version of
    /// AMVIA, by Begel, Buonadonna, Culler and Gay, worked like that. For comparisons.
    Apart,
    /// Each message is a send of its own, and short, medium and long messages have a connection
    /// each, with receives and credits of their own: short ones as many credits as configured, the
    /// others half and a quarter as many. So shorter messages may overtake longer ones. A
    /// [credit](crate::Peer::credit) is one for the longest messages. A reply, or a request to the
    /// sender of a request, leaves by the connection by which that came, and may be no longer than
    /// the connection allows: 64 bytes, 512, or the most. Data is placed by messages, of buffers by
    /// copies, and the peer copies it into its segment, one payload after the other. Of data that
    /// is given up meanwhile, a part may arrive. Both endpoints must have this policy. The first
    /// version of AMVIA worked like that. For comparisons.
    PerSize,
}

/// The flow control that keeps peers from sending what finds no receive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Flow {
    /// The endpoint grants credits for the receives that it has posted. Every message finds a
    /// receive.
    #[default]
    Credits,
    /// The NIC controls the flow. Peers may have any number of requests under way, and each peer
    /// has a receive queue of its own. With each acknowledgement, the peer's NIC is told how many
    /// receives are left. A message that finds none all the same is refused, and sent again later.
    /// For comparisons.
    Nic {
        /// The receives that each peer has.
        receives: usize,
    },
}

impl EndpointConfig {
    /// The most [`credits`](Self::credits), which the wire counts in 12 bits.
    pub const MOST_CREDITS: usize = MOST_CREDITS;

    /// The most [`tasks`](Self::tasks) that may be configured.
    pub const MOST_TASKS: usize = MOST_TASKS;

    /// Returns the longest payload of a message of this size class.
    pub(crate) fn payload_of(&self, size: Size) -> usize {
        match size {
            Size::Any | Size::Long => self.payload,
            Size::Medium => LISTED,
            Size::Short => SHORT,
        }
    }

    /// Returns the most requests of this size class that a peer may have under way. Messages that
    /// take less memory get more credits.
    pub(crate) fn credits_of(&self, size: Size) -> usize {
        match size {
            Size::Any | Size::Short => self.credits,
            Size::Medium => self.credits.div_ceil(2),
            Size::Long => self.credits.div_ceil(4),
        }
    }

    /// Returns whether the endpoint is one of many, most of which are idle.
    pub(crate) fn is_one_of_many(&self) -> bool {
        self.first_receives == 1 && !self.listens
    }

    /// Returns whether the receives of the endpoint rest while it is idle. With other policies and
    /// other flow control, receives are not all in one pool.
    pub(crate) fn may_rest(&self) -> bool {
        let in_one_pool = self.flow == Flow::Credits && self.policy != Policy::PerSize;
        self.is_one_of_many() && in_one_pool
    }

    /// Returns the credits of this size class that a new peer has.
    pub(crate) fn first_credits_of(&self, size: Size) -> usize {
        self.credits_of(size).min(self.first_credits)
    }
}
