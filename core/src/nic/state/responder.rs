//! The state of a responder: what the peer requests, and what it is owed.

use crate::nic::config::connection::Connection;
use crate::nic::identifiers::SharedReceiveQueueId;
use crate::nic::queues::receives::Receives;
use crate::nic::requests::work_request::ReceiveRequest;
use crate::nic::state::responder_resources::ResponderResources;
use crate::planted::{Bug, planted};
use crate::time::{Time, nanos};
use crate::wire::{Credits, Msn, Nak, Psn, RemoteAddr, Rkey, RnrTimer, Syndrome, Verdict};

/// What is owed to the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OwedAcknowledgement {
    Nothing,
    /// An acknowledgement of everything taken.
    Ack,
    /// A refusal of the packet that is expected, which acknowledges all before it.
    Nak(Syndrome),
}

impl OwedAcknowledgement {
    /// Whether it refuses for good.
    pub fn is_fatal(self) -> bool {
        let Self::Nak(syndrome) = self else { return false };
        matches!(syndrome.verdict(), Verdict::Nak(nak) if nak != Nak::SequenceError)
    }
}

/// The message that is being received.
pub(crate) enum InboundMessage {
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
    pub kept_receive: Option<ReceiveRequest>,
    pub expected_psn: Psn,
    pub msn: Msn,
    pub inbound: InboundMessage,
    /// Whether the packet that is expected was refused, and nothing else is until it comes.
    pub nak_sent: bool,
    /// The packet behind the last that came since then, on a lossless device.
    pub psn_after_refused: Psn,
    pub owed: OwedAcknowledgement,
    /// Packets taken since the last answer, and KiB of them.
    pub unacknowledged: u16,
    /// When to look whether the peer has fallen silent; how many packets there were at the look
    /// before, and how many looks there were.
    pub look_at: Option<Time>,
    pub unacknowledged_at_look: u16,
    pub ack_every: u16,
    pub looks: u8,
    /// The time between two looks, in nanoseconds.
    pub look_interval: u64,
    pub rnr_timer: RnrTimer,
    sends_credits: bool,
    /// Whether it has offered to take metadata.
    pub takes_metadata: bool,
    /// What is to be answered by more than an acknowledgement.
    pub resources: ResponderResources,
    /// Whether it is in the list of those that owe their peer an answer.
    pub is_owing: bool,
    /// Whether it is in the list of those that put an acknowledgement off.
    pub is_delaying: bool,
    /// Whether the peer is to be asked if it is there.
    pub keep_alive_due: bool,
}

/// How often to look whether a peer has fallen silent before it is answered in any case.
const MOST_LOOKS: u8 = 16;

impl Responder {
    pub fn new(receives: Receives) -> Self {
        Self {
            receives,
            kept_receive: None,
            expected_psn: Psn::new(0),
            msn: Msn::new(0),
            inbound: InboundMessage::Nothing,
            nak_sent: false,
            psn_after_refused: Psn::new(0),
            owed: OwedAcknowledgement::Nothing,
            unacknowledged: 0,
            look_at: None,
            unacknowledged_at_look: 0,
            looks: 0,
            ack_every: 1,
            look_interval: 0,
            rnr_timer: RnrTimer::from_code(0),
            sends_credits: false,
            takes_metadata: false,
            resources: ResponderResources::default(),
            is_owing: false,
            is_delaying: false,
            keep_alive_due: false,
        }
    }

    pub fn start(&mut self, connection: &Connection) {
        self.resources.set_limit(connection.reads);
        self.expected_psn = connection.expected;
        self.msn = Msn::new(0);
        self.ack_every = connection.ack_every.max(1);
        self.look_interval = nanos(connection.ack_delay / u32::from(MOST_LOOKS));
        self.rnr_timer = connection.not_ready;
        self.sends_credits = connection.credits;
        self.takes_metadata = connection.metadata;
    }

    /// Whether an acknowledgement that nobody asked for is to go: the peer is given one when it
    /// falls silent. As long as it sends, it waits for none, and each would cost both sides a
    /// packet in the midst of that.
    pub fn is_acknowledgement_due(&mut self, now: Time) -> bool {
        if self.look_at.is_none_or(|at| at > now) {
            return false;
        }
        self.looks += 1;
        let goes_on = self.unacknowledged != self.unacknowledged_at_look && self.looks < MOST_LOOKS;
        self.unacknowledged_at_look = self.unacknowledged;
        self.look_at = goes_on.then(|| now.after(self.look_interval));
        !goes_on
    }

    pub fn forget(&mut self) {
        self.inbound = InboundMessage::Nothing;
        self.nak_sent = false;
        self.unacknowledged = 0;
        self.look_at = None;
        self.resources.clear();
        self.keep_alive_due = false;
    }

    pub fn outstanding(&self) -> usize {
        let unfinished =
            self.kept_receive.is_some() || matches!(self.inbound, InboundMessage::Send { .. });
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

    pub fn pop_own_receive(&mut self) -> Option<ReceiveRequest> {
        if planted(Bug::FlushesNoReceives) {
            while self.receives.pop_own().is_some() {}
        }
        self.receives.pop_own()
    }

    /// Keeps a receive that was taken for the next message.
    pub fn keep_receive(&mut self, receive: ReceiveRequest) {
        self.kept_receive = Some(receive);
    }

    /// Drops the message that is being received; what was taken for it is kept for the next.
    pub fn drop_message(&mut self) {
        match std::mem::replace(&mut self.inbound, InboundMessage::Nothing) {
            InboundMessage::Send { .. } if planted(Bug::LosesTornReceives) => {}
            InboundMessage::Send { receive, .. } => self.kept_receive = Some(receive),
            InboundMessage::Nothing | InboundMessage::Write { .. } => {}
        }
    }

    /// The receive of a message that did not arrive whole; its completion has a slot.
    pub fn take_unfinished(&mut self) -> Option<ReceiveRequest> {
        self.drop_message();
        self.kept_receive.take()
    }

    /// Counts a packet as taken.
    #[inline]
    pub fn accept_packet(&mut self) {
        self.expected_psn = self.expected_psn.add(1);
        self.nak_sent = false;
        // The refusal of a packet that has since come need not be sent any more.
        if self.owed == OwedAcknowledgement::Nak(Syndrome::not_ready(self.rnr_timer)) {
            self.owed = OwedAcknowledgement::Ack;
        }
    }

    /// An acknowledgement, and the credit that goes with it.
    pub fn syndrome(&self) -> Syndrome {
        match self.sends_credits && !self.receives.are_shared() {
            true => Syndrome::ack_with(Credits::at_most(self.receives.waiting())),
            false => Syndrome::ACK,
        }
    }

    /// Notes that the peer has been told all that there is to tell.
    #[inline]
    pub fn clear_owed(&mut self) {
        (self.owed, self.unacknowledged, self.look_at) = (OwedAcknowledgement::Nothing, 0, None);
    }
}
