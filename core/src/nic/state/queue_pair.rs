//! The state of a queue pair.

use std::sync::atomic::Ordering;

use crate::encap::{Host, Path, PathId};
use crate::nic::config::state::State;
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
use crate::wire::{Bth, CaGuid, Likeness, Msn, Opcode, PathMtu, Pkey, Psn, Qkey, Qpn, Service};

/// What of a queue pair broke it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Blamed {
    Nothing,
    /// The unfinished request before which there are so many: all but the first stand behind some
    /// whose answers were lost.
    Request(usize),
    /// The receive that was being filled.
    Receive,
}

/// A queue pair. Its fields are what both of its sides need.
pub(crate) struct QueuePair {
    pub shared: SharedWithProgram,
    pub state: State,
    /// What [usual](Self::take_usual) packets are like in this state.
    pub ready_likeness: Likeness,
    /// The same, or no packet's likeness while none can be a usual one.
    pub expected_likeness: Likeness,
    /// Whether it is in the list of those that may have something to send.
    pub active: bool,
    pub mtu: PathMtu,
    pub domain: Domain,
    pub rights: Rights,
    pub pkey: Pkey,
    /// What datagrams must name.
    pub qkey: Qkey,
    pub peer_qpn: Qpn,
    pub send_completions: u32,
    pub receive_completions: u32,
    /// The peer's GUID, or zero if it is not known.
    pub peer_guid: CaGuid,
    /// The peer, among those that are watched.
    pub peer_id: PeerId,
    /// When it was last noted that something had come from there.
    pub heard_at: Time,
    /// The question whether the peer is there, if it was [demanded](crate::nic::Nic::probe).
    pub probe: Option<Probe>,
    /// The number of the flow whose addresses were last found to be the peer's and ours, or 0,
    /// which is none's.
    pub known_flow: u64,
    pub path: Option<Path>,
    pub requester: Requester,
    pub responder: Responder,
    /// What broke it, and which of its requests did.
    pub cause: Cause,
    pub blamed: Blamed,
    /// Whether there are events of its breaking, and of its draining, that nobody has taken yet.
    pub broken_pending: bool,
    pub drained_pending: bool,
    pub last_receive_pending: bool,
    pub path_changed_pending: bool,
    pub established_pending: bool,
    /// Whether something has come since it was connected.
    pub has_received: bool,
    /// Whether it takes no more receives from the queue that it shares, and that was said.
    pub last_receive_reported: bool,
}

impl QueuePair {
    pub fn new(
        shared: SharedWithProgram,
        domain: Domain,
        (send_completions, receive_completions): (u32, u32),
        requester: Requester,
        responder: Responder,
    ) -> Self {
        Self {
            shared,
            state: State::Reset,
            ready_likeness: Likeness::NONE,
            expected_likeness: Likeness::NONE,
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

    /// Requests and receives that were posted and are not complete.
    pub fn outstanding(&self) -> usize {
        self.requester.outstanding() + self.responder.outstanding()
    }

    pub(crate) fn enter(&mut self, state: State) {
        tracing::debug!(qpn = self.number().get(), from = ?self.state, to = ?state, "state");
        self.state = state;
        self.ready_likeness = self.likeness();
        self.update_expected_likeness();
        self.shared.state.store(state as u8, Ordering::Release);
    }

    /// Whether the program's ends are both gone, and so all that was ever posted is here.
    pub fn is_deserted(&self) -> bool {
        self.requester.is_deserted() && self.responder.is_deserted()
    }

    /// Whether a flow is known to lead to the peer, if there is one.
    #[inline(always)]
    pub fn is_known_flow(&self, flow: Flow<'_>) -> bool {
        flow.number() == self.known_flow
    }

    /// Whether a packet to a host, as it is quoted, is one of this queue pair's that may still be
    /// under way, or its question whether the peer is there.
    pub fn may_have_sent(&self, to: Host, quoted: &Bth) -> bool {
        let leads_there = |path: &Path| path.outer().hosts().1 == to;
        self.service() == Service::Rc
            && self.state.requests()
            && quoted.destination() == self.peer_qpn
            && self.requester.may_be_under_way(quoted.psn())
            && self.path.as_ref().is_some_and(leads_there)
    }

    /// Whether its peer is still to be refused something.
    pub fn owes_nak(&self) -> bool {
        matches!(self.responder.owed, OwedAcknowledgement::Nak(_))
    }

    /// Where its packets go, if it has a peer.
    #[inline]
    pub fn link(&self) -> Option<PathId> {
        self.path.as_ref().map(Path::id)
    }

    /// Whether its connection goes by a link of the device's.
    pub fn uses_link(&self, link: PathId) -> bool {
        let path = self.path.as_ref().filter(|_| self.state != State::Error);
        self.service() != Service::Ud && path.is_some_and(|path| path.id() == link)
    }

    /// What usual packets are like in the state that it is in.
    pub fn likeness(&self) -> Likeness {
        // Two that are limited members of a partition may not talk.
        let talks = self.pkey.same_partition(self.pkey);
        if self.service() != Service::Rc || self.state != State::ReadyToSend || !talks {
            return Likeness::NONE;
        }
        let bth = Bth::new(Opcode::RcSendOnly, self.number(), Psn::new(0));
        Likeness::of(&bth.with_pkey(self.pkey))
    }

    /// Sees whether the next packet can be a usual one: whenever something may have come into its
    /// way, or got out of it.
    #[inline(always)]
    pub fn update_expected_likeness(&mut self) {
        let r = &self.responder;
        let clear =
            !r.nak_sent && matches!(r.inbound, InboundMessage::Nothing) && r.kept_receive.is_none();
        self.expected_likeness = if clear { self.ready_likeness } else { Likeness::NONE };
    }

    /// What the peer said of its receives.
    #[inline]
    pub(crate) fn set_credit(&mut self, last: Option<Msn>) {
        self.requester.credit = last;
    }

    /// Whether `psn` was sent and is not acknowledged.
    #[inline]
    pub(crate) fn is_under_way(&self, psn: Psn) -> bool {
        let r = &self.requester;
        psn.distance_from(r.oldest_psn) >= 0 && psn.distance_from(r.unsent_psn) < 0
    }

    /// Whether the peer asked to be given time to post a receive.
    pub(crate) fn waits_for_rnr_timer(&self) -> bool {
        self.requester.resume_at.is_some()
    }

    /// The packet that comes after all that were acknowledged.
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
