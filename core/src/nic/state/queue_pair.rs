//! The state of a queue pair: what its requester, its responder and its connection consist of.

use std::sync::atomic::Ordering;

use crate::encap::{Host, Path, PathId};
use crate::nic::config::queue_pair_state::State;
use crate::nic::device::flow::Flow;
use crate::nic::identifiers::PeerId;
use crate::nic::protection::rights::Rights;
use crate::nic::protection::segment::Domain;
use crate::nic::queues::shared_with_program::SharedWithProgram;
use crate::nic::requests::failure::Cause;
use crate::nic::state::probe::Probe;
use crate::nic::state::requester::Requester;
use crate::nic::state::responder::{InboundMessage, OwedAcknowledgement, Responder};
use crate::time::Time;
use crate::wire::{Bth, CaGuid, Msn, Opcode, PathMtu, Pkey, Prediction, Psn, Qkey, Qpn, Service};

/// The request or receive that broke a queue pair, and so fails with the cause of the break.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Blamed {
    /// No request or receive of this side's broke the queue pair.
    Nothing,
    /// The unfinished request that stands behind so many others in the work queue. The others are
    /// reads and atomic operations whose responses were lost.
    Request(usize),
    /// The receive that was being filled.
    Receive,
}

/// The state of a queue pair. Its own fields are those that both the requester and the responder
/// need.
pub(crate) struct QueuePair {
    pub shared: SharedWithProgram,
    pub state: State,
    /// The likeness that the header of a packet for the [fast path](Self::receive_fast_path) has in
    /// the present state.
    pub ready_likeness: Prediction,
    /// A copy of [`ready_likeness`](Self::ready_likeness), or no packet's likeness while the next
    /// packet can't take the fast path.
    pub expected_likeness: Prediction,
    /// Whether the queue pair is in the list of those that may have something to send.
    pub active: bool,
    pub mtu: PathMtu,
    pub domain: Domain,
    pub rights: Rights,
    pub pkey: Pkey,
    /// The Q_Key that datagrams must name.
    pub qkey: Qkey,
    pub peer_qpn: Qpn,
    /// The place of the completion queue for requests.
    pub send_completions: u32,
    /// The place of the completion queue for receives.
    pub receive_completions: u32,
    /// The peer's GUID, or zero if it is not known.
    pub peer_guid: CaGuid,
    /// The peer's entry in the table of the keep-alive.
    pub peer_id: PeerId,
    /// When it was last noted that something had come from the peer.
    pub heard_at: Time,
    /// The probe that is under way, if the program has [asked](crate::nic::Nic::probe) for one.
    pub probe: Option<Probe>,
    /// The number of the flow whose addresses were last found to be those of the connection; or 0,
    /// which is no flow's number; or [`ENCRYPTED_FLOW`](Self::ENCRYPTED_FLOW), which is none, either.
    pub known_flow: u64,
    pub path: Option<Path>,
    pub requester: Requester,
    pub responder: Responder,
    /// The cause of the queue pair's break.
    pub cause: Cause,
    /// The request or receive that broke the queue pair.
    pub blamed: Blamed,
    /// Whether an event of the break waits to be taken.
    pub broken_pending: bool,
    /// Whether an event of the end of draining waits to be taken.
    pub drained_pending: bool,
    /// Whether an event of the last receive waits to be taken.
    pub last_receive_pending: bool,
    /// Whether an event of a changed path waits to be taken.
    pub path_changed_pending: bool,
    /// Whether an event of an established connection waits to be taken.
    pub established_pending: bool,
    /// Whether something has come from the peer since the queue pair was connected.
    pub has_received: bool,
    /// Whether an event has reported that the queue pair takes no more receives from its shared
    /// receive queue.
    pub last_receive_reported: bool,
}

impl QueuePair {
    pub fn new(
        shared: SharedWithProgram,
        domain: Domain,
        send_completions: u32,
        receive_completions: u32,
        requester: Requester,
        responder: Responder,
    ) -> Self {
        Self {
            shared,
            state: State::Reset,
            ready_likeness: Prediction::NONE,
            expected_likeness: Prediction::NONE,
            active: false,
            mtu: PathMtu::Mtu256,
            domain,
            rights: Rights::NONE,
            pkey: Pkey::DEFAULT,
            qkey: Qkey(0),
            peer_qpn: Qpn::new(0),
            send_completions,
            receive_completions,
            peer_guid: CaGuid(0),
            peer_id: PeerId::NONE,
            heard_at: Time::ZERO,
            probe: None,
            known_flow: 0,
            path: None,
            requester,
            responder,
            cause: Cause::Told,
            blamed: Blamed::Nothing,
            broken_pending: false,
            drained_pending: false,
            last_receive_pending: false,
            path_changed_pending: false,
            established_pending: false,
            has_received: false,
            last_receive_reported: false,
        }
    }

    #[inline]
    pub fn number(&self) -> Qpn {
        self.shared.qpn
    }

    #[inline]
    pub fn service(&self) -> Service {
        self.shared.service
    }

    /// How many requests and receives were posted and are not complete.
    pub fn outstanding(&self) -> usize {
        self.requester.outstanding() + self.responder.outstanding()
    }

    /// Enters a state, and shows it to the program's ends.
    pub(crate) fn enter(&mut self, state: State) {
        tracing::debug!(qpn = self.number().get(), from = ?self.state, to = ?state, "state");
        self.state = state;
        self.ready_likeness = self.likeness();
        self.update_expected_likeness();
        self.shared.state.store(state as u8, Ordering::Release);
    }

    /// Whether both of the program's ends are gone, and so all that was ever posted is in the
    /// queues.
    pub fn is_deserted(&self) -> bool {
        self.requester.is_deserted() && self.responder.is_deserted()
    }

    /// Stands in place of a flow where packets are encrypted: then a flow proves nothing. Flows of
    /// networks are numbered from one on, and links from the greatest number down.
    pub const ENCRYPTED_FLOW: u64 = 1 << 62;

    /// Whether the packets of the connection are encrypted, and so others count for nothing.
    #[inline(always)]
    pub fn encrypts(&self) -> bool {
        self.known_flow == Self::ENCRYPTED_FLOW
    }

    /// Whether a flow is known to be that of the connection.
    #[inline(always)]
    pub fn is_known_flow(&self, flow: Flow<'_>) -> bool {
        flow.number() == self.known_flow
    }

    /// Whether a packet to a host, whose BTH is quoted, is one of this queue pair's that may still
    /// be under way, or its keep-alive packet.
    pub fn may_have_sent(&self, to: Host, quoted: &Bth) -> bool {
        let leads_there = |path: &Path| path.outer().hosts().1 == to;
        self.service() == Service::Rc
            && self.state.requests()
            && quoted.destination() == self.peer_qpn
            && self.requester.may_be_under_way(quoted.psn())
            && self.path.as_ref().is_some_and(leads_there)
    }

    /// Whether the peer is still owed a NAK.
    pub fn owes_nak(&self) -> bool {
        matches!(self.responder.owed, OwedAcknowledgement::Nak(_))
    }

    /// The link or path that the queue pair's packets take, if it has a peer.
    #[inline]
    pub fn link(&self) -> Option<PathId> {
        self.path.as_ref().map(Path::id)
    }

    /// Whether the queue pair's connection goes by a link of the device's.
    pub fn uses_link(&self, link: PathId) -> bool {
        let path = self.path.as_ref().filter(|_| self.state != State::Error);
        self.service() != Service::Ud && path.is_some_and(|path| path.id() == link)
    }

    /// Returns what the header of a packet for the fast path is like in the present state.
    pub fn likeness(&self) -> Prediction {
        // Two limited members of a partition may not communicate.
        let talks = self.pkey.same_partition(self.pkey);
        if self.service() != Service::Rc || self.state != State::ReadyToSend || !talks {
            return Prediction::NONE;
        }
        let bth = Bth::new(Opcode::RcSendOnly, self.number(), Psn::new(0));
        Prediction::of(&bth.with_pkey(self.pkey))
    }

    /// Determines whether the next packet can take the fast path. To be called whenever something
    /// may have begun or ceased to prevent that.
    #[inline(always)]
    pub fn update_expected_likeness(&mut self) {
        let r = &self.responder;
        let clear =
            !r.nak_sent && matches!(r.inbound, InboundMessage::Nothing) && r.kept_receive.is_none();
        let clear = clear && !r.holds();
        self.expected_likeness = if clear { self.ready_likeness } else { Prediction::NONE };
    }

    /// Notes the credit of an acknowledgement: the last message that the peer has a receive for, if
    /// the peer said so. Where acknowledgements may overtake each other, an older one says less.
    #[inline]
    pub(crate) fn set_credit(&mut self, last: Option<Msn>) {
        let r = &mut self.requester;
        let number = |msn: Msn| Psn::new(msn.get());
        let is_older = r.selective
            && last
                .zip(r.credit)
                .is_some_and(|(last, known)| number(last).distance_from(number(known)) < 0);
        if !is_older {
            r.credit = last;
        }
    }

    /// Whether the packet `psn` was sent and is not acknowledged.
    #[inline]
    pub(crate) fn is_under_way(&self, psn: Psn) -> bool {
        let r = &self.requester;
        psn.distance_from(r.oldest_psn) >= 0 && psn.distance_from(r.unsent_psn) < 0
    }

    /// Whether the peer's RNR NAK asked to wait until it has posted a receive.
    pub(crate) fn waits_for_rnr_timer(&self) -> bool {
        self.requester.resume_at.is_some()
    }

    /// The first packet that is not acknowledged.
    #[inline]
    pub(crate) fn oldest_psn(&self) -> Psn {
        self.requester.oldest_psn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_queue_pair_takes_no_more_than_a_kibibyte_beside_its_queues() {
        assert!(size_of::<QueuePair>() <= 1024, "{} bytes", size_of::<QueuePair>());
    }
}
