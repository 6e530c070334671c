//! The state of a responder: which packet it expects, and what it owes to the peer.

use crate::nic::config::connection::Connection;
use crate::nic::identifiers::SharedReceiveQueueId;
use crate::nic::queues::receives::Receives;
use crate::nic::requests::work_request::ReceiveRequest;
use crate::nic::selective::held::Held;
use crate::nic::state::arrivals::Arrivals;
use crate::nic::state::responder_resources::ResponderResources;
use crate::planted::{Bug, planted};
use crate::time::{Time, nanos};
use crate::wire::{Credits, Msn, Nak, Psn, RemoteAddr, Rkey, RnrTimer, Syndrome, Verdict};

/// The acknowledgement that the peer is owed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OwedAcknowledgement {
    /// No acknowledgement is owed.
    Nothing,
    /// A positive acknowledgement of everything that was accepted.
    Ack,
    /// A NAK of the packet that is expected, which acknowledges all packets before it.
    Nak(Syndrome),
}

impl OwedAcknowledgement {
    /// Whether the acknowledgement is a NAK that breaks the connection.
    pub fn is_fatal(self) -> bool {
        let Self::Nak(syndrome) = self else { return false };
        matches!(syndrome.verdict(), Verdict::Nak(nak) if nak != Nak::SequenceError)
    }
}

/// The message that is being received.
pub(crate) enum InboundMessage {
    /// No message has begun.
    Nothing,
    /// A send, with its receive, and how many of its bytes have come.
    Send { receive: ReceiveRequest, filled: u32 },
    /// A write, with where the next packet's bytes go, how many bytes are still to come, and how
    /// many the message has.
    Write { address: RemoteAddr, rkey: Rkey, left: u32, total: u32 },
}

/// The state of a queue pair's responder.
pub(crate) struct Responder {
    pub receives: Receives,
    /// A receive that was taken for a message of which the rest did not come: the next message
    /// takes it. Its completion has a slot.
    pub kept_receive: Option<ReceiveRequest>,
    /// The sequence number of the packet that is expected next.
    pub expected_psn: Psn,
    /// The message sequence number: how many messages were received.
    pub msn: Msn,
    pub inbound: InboundMessage,
    /// Whether the packet that is expected was refused. Until it comes, nothing more is refused.
    pub nak_sent: bool,
    /// On a lossless device, the packet behind the last one that came since the expected one was
    /// refused.
    pub psn_after_refused: Psn,
    pub owed: OwedAcknowledgement,
    /// How many packets were accepted since the last acknowledgement, with one more for each KiB of
    /// them.
    pub unacknowledged: u16,
    /// When to look whether the peer has fallen silent, and is to be acknowledged.
    pub look_at: Option<Time>,
    /// The value of `unacknowledged` when it was last looked whether the peer has fallen silent.
    pub unacknowledged_at_look: u16,
    /// After how many packets to send an acknowledgement that was not asked for.
    pub ack_every: u16,
    /// How many times it was looked whether the peer has fallen silent since the last
    /// acknowledgement.
    pub looks: u8,
    /// The time between two looks, in nanoseconds, at most four seconds.
    pub look_interval: u32,
    /// How long the peer is told to wait when no receive is posted.
    pub rnr_timer: RnrTimer,
    /// Whether acknowledgements say how many receives are posted.
    sends_credits: bool,
    /// Whether this queue pair has offered to take metadata.
    pub takes_metadata: bool,
    /// The responses to reads and atomic operations that are owed.
    pub resources: ResponderResources,
    /// Whether the queue pair is in the list of those that owe their peer a packet.
    pub is_owing: bool,
    /// Whether the queue pair is in the list of those that delay an acknowledgement.
    pub is_delaying: bool,
    /// Whether a keep-alive packet is to be sent to the peer.
    pub keep_alive_due: bool,
    /// Whether the peer is to be told by a congestion notification that its packets are marked.
    pub owes_notification: bool,
    /// The [span of time](crate::nic::queue_pair::peer) in which the peer was last sent a notification,
    /// modulo 2¹⁶.
    pub notified_in: u16,
    /// The arrivals that reports tell of, where packets from beyond a gap are kept.
    pub arrivals: Option<Box<Arrivals>>,
}

/// The most times that an acknowledgement is put off because the peer goes on sending. After that it
/// is sent in any case.
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
            owes_notification: false,
            notified_in: 1 << 15,
            arrivals: None,
        }
    }

    pub fn start(&mut self, connection: &Connection, lossless: bool) {
        self.resources.set_limit(connection.reads);
        self.expected_psn = connection.expected;
        self.msn = Msn::new(0);
        self.ack_every = connection.ack_every.max(1);
        let interval = nanos(connection.ack_delay / u32::from(MOST_LOOKS));
        self.look_interval = u32::try_from(interval).unwrap_or(u32::MAX);
        self.rnr_timer = connection.not_ready;
        self.sends_credits = connection.credits;
        self.takes_metadata = connection.metadata;
        self.arrivals = (connection.selective && !lossless).then(Box::default);
    }

    /// Whether an acknowledgement that nobody asked for is to be sent now: when the peer has fallen
    /// silent, or at the latest after so many looks. As long as the peer sends, it waits for no
    /// acknowledgement, and each would cost both sides a packet in the midst of that.
    pub fn is_acknowledgement_due(&mut self, now: Time) -> bool {
        if self.look_at.is_none_or(|at| at > now) {
            return false;
        }
        self.looks += 1;
        let goes_on = self.unacknowledged != self.unacknowledged_at_look && self.looks < MOST_LOOKS;
        self.unacknowledged_at_look = self.unacknowledged;
        self.look_at = goes_on.then(|| now.after(self.look_interval.into()));
        !goes_on
    }

    pub fn forget(&mut self) {
        self.inbound = InboundMessage::Nothing;
        self.nak_sent = false;
        self.unacknowledged = 0;
        self.look_at = None;
        self.resources.clear();
        (self.keep_alive_due, self.owes_notification) = (false, false);
    }

    pub fn outstanding(&self) -> usize {
        let unfinished =
            self.kept_receive.is_some() || matches!(self.inbound, InboundMessage::Send { .. });
        self.receives.waiting() + usize::from(unfinished)
    }

    /// The shared receive queue that the receives come from, if they do.
    pub fn shared(&self) -> Option<SharedReceiveQueueId> {
        match self.receives {
            Receives::Shared(queue) => Some(queue),
            Receives::Own(_) => None,
        }
    }

    /// Whether the receives come from a shared receive queue.
    pub fn shares(&self) -> bool {
        self.receives.are_shared()
    }

    /// Whether packets from beyond a gap are kept.
    #[inline(always)]
    pub fn is_selective(&self) -> bool {
        self.arrivals.is_some()
    }

    /// Whether packets are kept that wait for the expected one.
    #[inline(always)]
    pub fn holds(&self) -> bool {
        self.arrivals.as_ref().is_some_and(|arrivals| arrivals.holds())
    }

    /// The packets that are kept, if any ever were.
    #[inline]
    pub fn held(&mut self) -> Option<&mut Held> {
        self.arrivals.as_mut().and_then(|arrivals| arrivals.held.as_deref_mut())
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

    /// Keeps a receive that was taken, for the next message.
    pub fn keep_receive(&mut self, receive: ReceiveRequest) {
        self.kept_receive = Some(receive);
    }

    /// Drops the message that is being received. The receive that was taken for it is kept for the
    /// next message.
    pub fn drop_message(&mut self) {
        match std::mem::replace(&mut self.inbound, InboundMessage::Nothing) {
            InboundMessage::Send { .. } if planted(Bug::LosesTornReceives) => {}
            InboundMessage::Send { receive, .. } => self.kept_receive = Some(receive),
            InboundMessage::Nothing | InboundMessage::Write { .. } => {}
        }
    }

    /// Takes the receive of a message that did not arrive whole. Its completion has a slot.
    pub fn take_unfinished(&mut self) -> Option<ReceiveRequest> {
        self.drop_message();
        self.kept_receive.take()
    }

    /// Counts the expected packet as accepted.
    #[inline]
    pub fn accept_packet(&mut self) {
        self.expected_psn = self.expected_psn.add(1);
        self.nak_sent = false;
        // The RNR NAK of a packet that has since come need not be sent any more.
        if self.owed == OwedAcknowledgement::Nak(Syndrome::not_ready(self.rnr_timer)) {
            self.owed = OwedAcknowledgement::Ack;
        }
    }

    /// The syndrome of a positive acknowledgement, with the credit that goes with it.
    pub fn syndrome(&self) -> Syndrome {
        match self.sends_credits && !self.receives.are_shared() {
            true => Syndrome::ack_with(Credits::at_most(self.receives.waiting())),
            false => Syndrome::ACK,
        }
    }

    /// Notes that the peer has been sent the acknowledgement of all that was accepted.
    #[inline]
    pub fn clear_owed(&mut self) {
        (self.owed, self.unacknowledged, self.look_at) = (OwedAcknowledgement::Nothing, 0, None);
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.newest = None;
        }
    }
}
