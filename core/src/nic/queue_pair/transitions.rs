//! Transitions between a queue pair's states, and what each changes.

use crate::encap::Path;
use crate::nic::config::connection::{Change, Connection, Sending};
use crate::nic::config::errors::ChangeError;
use crate::nic::config::queue_pair_state::State;
use crate::nic::identifiers::{PeerId, timer_of};
use crate::nic::keep_alive::peers::PeerKey;
use crate::nic::paths::{BURST, BURST_OF_RUNS, Paths};
use crate::nic::requests::event::Event;
use crate::nic::requests::failure::Cause;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::{Blamed, QueuePair};
use crate::nic::state::responder::OwedAcknowledgement;
use crate::nic::state::turns::MOST_UNDER_WAY;
use crate::time::Time;
use crate::wire::{CaGuid, Service};

impl QueuePair {
    /// Makes a transition to another state, if the state diagram has it.
    pub fn change(&mut self, change: Change, common: &mut Common) -> Result<(), ChangeError> {
        let qpn = self.number();
        let to = match &change {
            Change::Init { .. } => State::Init,
            Change::ReadyToReceive(_) | Change::ReadyForDatagrams { .. } => State::ReadyToReceive,
            Change::ReadyToSend(_) | Change::Resume => State::ReadyToSend,
            Change::Drain => State::Draining,
            Change::Error => State::Error,
        };
        let resumes = matches!(change, Change::Resume);
        let from_drain = self.state == State::Draining;
        if !self.state.may_become(to) || to == State::ReadyToSend && resumes != from_drain {
            return Err(ChangeError::Transition { qpn, from: self.state, to });
        }
        let datagrams = self.service() == Service::Ud;
        if matches!(change, Change::ReadyToReceive(_)) && datagrams
            || matches!(change, Change::ReadyForDatagrams { .. }) && !datagrams
        {
            return Err(ChangeError::Transport { qpn });
        }
        match change {
            Change::Init { rights, pkey } => (self.rights, self.pkey) = (rights, pkey),
            Change::ReadyToReceive(connection) => self.connect(*connection, common.lossless),
            Change::ReadyForDatagrams { qkey, mtu } => (self.qkey, self.mtu) = (qkey, mtu),
            Change::ReadyToSend(sending) => {
                if !(1..=MOST_UNDER_WAY).contains(&sending.window) {
                    return Err(ChangeError::Window(sending.window));
                }
                // What is unreliable is never acknowledged, and so nothing is learned of its path.
                let reliable = self.service() == Service::Rc;
                let congestion = sending.congestion && reliable;
                let sending = Sending { congestion, ..sending };
                self.requester.start(sending, self.mtu, common.lossless && reliable);
                let tells_marks = sending.selective || sending.ecn;
                if self.requester.is_controlled() && tells_marks {
                    self.path = self.path.take().map(Path::ecn_capable);
                }
                if self.requester.selective && sending.paths > 1 {
                    let burst = if common.splits_writes { BURST_OF_RUNS } else { BURST };
                    self.take_paths(Paths::new(sending.paths, sending.first, burst));
                }
                self.watch_peer(common);
            }
            Change::Drain | Change::Resume => {}
            Change::Error => {
                self.break_with(Cause::Told, Blamed::Nothing, common);
                return Ok(());
            }
        }
        self.enter(to);
        if to == State::Draining && self.requester.begun == 0 {
            common.raise(Event::Drained(qpn), &mut self.drained_pending);
        }
        common.activate(self);
        Ok(())
    }

    /// Has the keep-alive watch the peer. That begins when the peer can be asked for a sign of
    /// life: a queue pair that only receives waits for its peer without limit.
    fn watch_peer(&mut self, common: &mut Common) {
        if common.lossless || self.service() != Service::Rc || self.peer_id != PeerId::NONE {
            return;
        }
        if let Some(path) = &self.path {
            let (_, host) = path.outer().hosts();
            let key = match self.peer_guid {
                CaGuid(0) => PeerKey::Of(self.shared.place),
                guid => PeerKey::Guid(guid),
            };
            self.peer_id = common.join_peer((host, key), self.peer_qpn, self.shared.place);
            self.heard_at = Time::ZERO;
        }
    }

    /// Notes the peer, and how this side responds to it.
    fn connect(&mut self, connection: Connection, lossless: bool) {
        self.has_received = false;
        self.peer_qpn = connection.peer;
        self.peer_guid = connection.peer_guid.unwrap_or(CaGuid(0));
        self.mtu = connection.mtu;
        self.responder.start(&connection, lossless);
        let mut path = connection.path;
        self.known_flow = path.keys_mut().map_or(0, |_| Self::ENCRYPTED_FLOW);
        self.path = Some(path);
    }

    /// Goes back to the reset state, to which there is a transition from every other. The caller
    /// sees to it that nobody posts meanwhile.
    pub fn reset(&mut self, common: &mut Common) -> Result<(), ChangeError> {
        let (qpn, outstanding) = (self.number(), self.outstanding());
        if outstanding > 0 {
            return Err(ChangeError::Outstanding { qpn, outstanding });
        }
        common.timers.disarm(timer_of(self.shared.place));
        self.forget_events(common);
        self.leave_peer(common);
        self.last_receive_reported = false;
        self.probe = None;
        self.requester.forget();
        self.responder.forget();
        self.enter(State::Reset);
        Ok(())
    }

    /// Forgets the peer, and what it is owed, which must not be sent to the next peer. But on a
    /// lossless device the peer would take a refused packet for done, and so its link is sent a
    /// delivery failure notice.
    pub fn leave_peer(&mut self, common: &mut Common) {
        let place = self.shared.place;
        self.drop_held(common);
        common.owing.retain(|&other| other != place);
        let refused = matches!(self.responder.owed, OwedAcknowledgement::Nak(_));
        (self.responder.owed, self.responder.is_owing) = (OwedAcknowledgement::Nothing, false);
        common.leave_peer(&mut self.peer_id);
        if let Some(path) = self.path.take()
            && refused
            && common.lossless
        {
            common.owe_delivery_failure(path.id(), self.number(), self.responder.expected_psn);
        }
    }

    /// Removes the events that nobody has taken yet: they are about a connection that is no more.
    pub fn forget_events(&mut self, common: &mut Common) {
        let pending = [
            &mut self.broken_pending,
            &mut self.drained_pending,
            &mut self.last_receive_pending,
            &mut self.path_changed_pending,
            &mut self.established_pending,
        ];
        let any = pending.into_iter().fold(false, |any, pending| std::mem::take(pending) | any);
        if any {
            let qpn = self.number();
            common.events.retain(|event| event.queue_pair() != Some(qpn));
        }
    }

    /// Has packets take another path from now on.
    pub fn redirect(&mut self, path: Path, common: &mut Common) {
        let ecn = self.path.as_ref().is_some_and(Path::is_ecn_capable);
        let keys = self.path.as_mut().and_then(Path::take_keys);
        self.known_flow = keys.as_ref().map_or(0, |_| Self::ENCRYPTED_FLOW);
        let path = if ecn { path.ecn_capable() } else { path };
        // A network's path stays one, so its keys are never lost: nothing is sent in the clear.
        self.path = path.with_keys(keys);
        if let Some(paths) = self.requester.paths.take() {
            self.take_paths(*paths);
        }
        common.activate(self);
    }
}
