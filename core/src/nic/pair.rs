//! A queue pair: what both of its sides need, its changes, and what breaks it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::encap::{Host, Path, PathId};
use crate::planted::{Bug, planted};
use crate::time::Time;
use crate::wire::{Bth, CaGuid, PathMtu, Pkey, Prediction, Qkey, Qpn, Service};

use super::common::{Common, Event};
use super::completion::{Cause, Completion, Failure};
use super::device::Flow;
use super::growth::timer_of;
use super::hosts::{HostId, Peer};
use super::keys::Domain;
use super::probe::Probe;
use super::queues::{Purpose, Shared};
use super::requester::{MOST_UNDER_WAY, Requester, Turn};
use super::responder::{Due, Responder};
use super::rights::Rights;
use super::states::{Change, ChangeError, Connection, State};

/// What of a queue pair broke it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Blamed {
    Nothing,
    /// The unfinished request before which there are so many: all but the first stand behind some
    /// whose answers were lost.
    Request(usize),
    /// The receive that was being filled.
    Receive,
}

/// After how long a broken queue pair is flushed once more.
const FLUSHED_AGAIN: Duration = Duration::from_millis(1);

/// A queue pair. Its fields are what both of its sides need.
pub(super) struct QueuePair {
    pub shared: Shared,
    pub state: State,
    /// What [usual](Self::take_usual) packets are like in this state.
    pub alike: Prediction,
    /// The same, or no packet's likeness while none can be a usual one.
    pub usual: Prediction,
    /// Whether it is in the list of those that may have something to send.
    pub active: bool,
    pub mtu: PathMtu,
    pub domain: Domain,
    pub rights: Rights,
    pub pkey: Pkey,
    /// What datagrams must name.
    pub qkey: Qkey,
    pub peer: Qpn,
    pub send_completions: u32,
    pub receive_completions: u32,
    /// The peer's GUID, or zero if it is not known.
    peer_guid: CaGuid,
    /// The peer, among those that are watched.
    pub host: HostId,
    /// When it was last noted that something had come from there.
    pub heard: Time,
    /// The question whether the peer is there, if it was [demanded](super::Nic::probe).
    pub probe: Option<Probe>,
    /// The number of the flow whose addresses were last found to be the peer's and ours, or 0,
    /// which is none's.
    known_flow: u64,
    pub path: Option<Path>,
    pub requester: Requester,
    pub responder: Responder,
    /// What broke it, and which of its requests did.
    pub cause: Cause,
    pub blamed: Blamed,
    /// Whether there are events of its breaking, and of its draining, that nobody has taken yet.
    pub told_broken: bool,
    pub told_drained: bool,
    pub told_last: bool,
    pub told_path: bool,
    pub told_established: bool,
    /// Whether something has come since it was connected.
    met: bool,
    /// Whether it takes no more receives from the queue that it shares, and that was said.
    last_receive: bool,
}

impl QueuePair {
    pub fn new(
        shared: Shared,
        domain: Domain,
        (send_completions, receive_completions): (u32, u32),
        requester: Requester,
        responder: Responder,
    ) -> Self {
        Self {
            shared,
            state: State::Reset,
            alike: Prediction::NONE,
            usual: Prediction::NONE,
            active: false,
            mtu: PathMtu::Mtu256,
            domain,
            rights: Rights::NONE,
            pkey: Pkey::DEFAULT,
            qkey: Qkey(0),
            peer: Qpn::new(0),
            send_completions,
            receive_completions,
            peer_guid: CaGuid(0),
            host: HostId::NONE,
            heard: Time::ZERO,
            probe: None,
            known_flow: 0,
            path: None,
            requester,
            responder,
            cause: Cause::Told,
            blamed: Blamed::Nothing,
            told_broken: false,
            told_drained: false,
            told_last: false,
            told_path: false,
            told_established: false,
            met: false,
            last_receive: false,
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

    pub(super) fn enter(&mut self, state: State) {
        tracing::debug!(qpn = self.number().get(), from = ?self.state, to = ?state, "state");
        self.state = state;
        self.alike = self.likeness();
        self.expect_usual();
        self.shared.state.store(state as u8, Ordering::Release);
    }

    /// Goes to another state, if there is a way.
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
            Change::ReadyToReceive(connection) => self.connect(*connection),
            Change::ReadyForDatagrams { qkey, mtu } => (self.qkey, self.mtu) = (qkey, mtu),
            Change::ReadyToSend(sending) => {
                if !(1..=MOST_UNDER_WAY).contains(&sending.window) {
                    return Err(ChangeError::Window(sending.window));
                }
                self.requester.start(sending, common.lossless && self.service() == Service::Rc);
                self.join_host(common);
            }
            Change::Drain | Change::Resume => {}
            Change::Error => {
                self.break_with(Cause::Told, Blamed::Nothing, common);
                return Ok(());
            }
        }
        self.enter(to);
        if to == State::Draining && self.requester.begun == 0 {
            common.tell(Event::Drained(qpn), &mut self.told_drained);
        }
        common.activate(self);
        Ok(())
    }

    /// Has the peer watched. Not before it can be asked: who only receives waits for as long
    /// as it takes.
    fn join_host(&mut self, common: &mut Common) {
        if common.lossless || self.service() != Service::Rc || self.host != HostId::NONE {
            return;
        }
        if let Some(path) = &self.path {
            let (_, peer) = path.outer().hosts();
            let of = match self.peer_guid {
                CaGuid(0) => Peer::Of(self.shared.place),
                guid => Peer::Guid(guid),
            };
            self.host = common.join((peer, of), self.peer, self.shared.place);
            self.heard = Time::ZERO;
        }
    }

    fn connect(&mut self, connection: Connection) {
        self.met = false;
        self.peer = connection.peer;
        self.peer_guid = connection.peer_guid.unwrap_or(CaGuid(0));
        self.mtu = connection.mtu;
        self.known_flow = 0;
        self.responder.start(&connection);
        self.path = Some(connection.path);
    }

    /// Goes back to the reset state, which there is a way to from every other. Whoever calls it
    /// sees to it that nobody posts meanwhile.
    pub fn reset(&mut self, common: &mut Common) -> Result<(), ChangeError> {
        let (qpn, outstanding) = (self.number(), self.outstanding());
        if outstanding > 0 {
            return Err(ChangeError::Outstanding { qpn, outstanding });
        }
        common.timers.disarm(timer_of(self.shared.place));
        self.forget_events(common);
        self.leave_peer(common);
        self.last_receive = false;
        self.probe = None;
        self.requester.forget();
        self.responder.forget();
        self.enter(State::Reset);
        Ok(())
    }

    /// Forgets the peer, and what it is owed, which must not be said to the next. But where nothing
    /// is lost, it would take what was refused for done, so that the link is to tell it.
    pub fn leave_peer(&mut self, common: &mut Common) {
        let place = self.shared.place;
        common.answers.retain(|&other| other != place);
        let refused = matches!(self.responder.due, Due::Nak(_));
        (self.responder.due, self.responder.listed) = (Due::Nothing, false);
        common.leave(&mut self.host);
        if let Some(path) = self.path.take()
            && refused
            && common.lossless
        {
            common.notify(path.id(), self.number(), self.responder.expected);
        }
    }

    /// Takes back what nobody has heard of yet: it was of a connection that is no more.
    pub fn forget_events(&mut self, common: &mut Common) {
        let told = [
            &mut self.told_broken,
            &mut self.told_drained,
            &mut self.told_last,
            &mut self.told_path,
            &mut self.told_established,
        ];
        let any = told.into_iter().fold(false, |any, told| std::mem::take(told) | any);
        if any {
            let qpn = self.number();
            common.events.retain(|event| event.queue_pair() != Some(qpn));
        }
    }

    /// Whether the program's ends are both gone, and so all that was ever posted is here.
    pub fn is_deserted(&self) -> bool {
        self.requester.is_deserted() && self.responder.is_deserted()
    }

    /// Breaks the queue pair: what is posted is flushed, by and by, as its completions find room.
    #[cold]
    pub fn break_with(&mut self, cause: Cause, blamed: Blamed, common: &mut Common) {
        if self.state == State::Error {
            return;
        }
        tracing::debug!(qpn = self.number().get(), %cause, "broken");
        (self.cause, self.blamed) = (cause, blamed);
        self.enter(State::Error);
        self.requester.stop();
        common.leave(&mut self.host);
        (self.responder.ack_at, self.responder.asks, self.probe) = (None, false, None);
        // What was asked for before a request was refused is answered before the refusal.
        if !self.responder.due.is_fatal() {
            self.leave_unanswered(common);
        }
        // A program that posts a receive at this moment may see the state before, and not ring; and
        // what it posts may not be seen yet when it is first flushed. Later, one of them is.
        common.timers.arm(timer_of(self.shared.place), common.now + FLUSHED_AGAIN);
        common.tell(Event::Broken(self.number(), cause), &mut self.told_broken);
        common.activate(self);
    }

    /// Flushes what there is room to tell of.
    pub fn flush(&mut self, common: &mut Common) -> Turn {
        match self.flush_sends(common) & self.flush_receives(common) {
            true => Turn::Idle,
            false => Turn::Starved,
        }
    }

    /// Why the next of these was not carried out: it is blamed once, if at all.
    fn failure_of(&mut self, which: Blamed) -> Failure {
        match (self.blamed, which) {
            (Blamed::Request(before @ 1..), Blamed::Request(_)) => {
                self.blamed = Blamed::Request(before - 1);
            }
            (blamed, which) if blamed == which => {
                self.blamed = Blamed::Nothing;
                return Failure::Broke(self.cause);
            }
            _ => {}
        }
        Failure::Flushed(self.cause)
    }

    fn flush_sends(&mut self, common: &mut Common) -> bool {
        let (queue, qpn) = (self.send_completions, self.number());
        while self.requester.outstanding() > 0 {
            let reserved = self.requester.begun > 0 || common.reserve(queue, Purpose::Flush);
            if !reserved {
                return false;
            }
            let failure = self.failure_of(Blamed::Request(0));
            let Some(posted) = self.requester.front() else { break };
            let (id, memory) = (posted.request.id, posted.request.data.take_memory());
            common.failed(queue, Purpose::Flush, Completion::failed(id, qpn, failure, memory));
            self.requester.drop_front();
        }
        true
    }

    fn flush_receives(&mut self, common: &mut Common) -> bool {
        let (queue, qpn, cause) = (self.receive_completions, self.number(), self.cause);
        if let Some(receive) = self.responder.take_unfinished() {
            let failure = self.failure_of(Blamed::Receive);
            let completion = Completion::failed(receive.id, qpn, failure, receive.memory);
            common.failed(queue, Purpose::Receive, completion);
        }
        if self.responder.shares() && !self.last_receive && !planted(Bug::TellsNoLastReceive) {
            self.last_receive = true;
            common.tell(Event::LastReceive(qpn), &mut self.told_last);
        }
        while self.responder.outstanding() > 0 {
            if !common.reserve(queue, Purpose::Flush) {
                return false;
            }
            let Some(receive) = self.responder.pop_receive() else {
                common.release(queue, Purpose::Flush);
                break;
            };
            let failure = Failure::Flushed(cause);
            let completion = Completion::failed(receive.id, qpn, failure, receive.memory);
            common.failed(queue, Purpose::Flush, completion);
        }
        true
    }

    /// Something came while it was not ready to send.
    #[cold]
    pub fn meet(&mut self, common: &mut Common) {
        if !std::mem::replace(&mut self.met, true) {
            common.tell(Event::Established(self.number()), &mut self.told_established);
        }
    }

    /// Has packets go along another path from now on.
    pub fn redirect(&mut self, path: Path, common: &mut Common) {
        (self.path, self.known_flow) = (Some(path), 0);
        common.activate(self);
    }

    /// Whether a flow is known to lead to the peer, if there is one.
    #[inline(always)]
    pub fn comes_from_peer(&self, flow: Flow<'_>) -> bool {
        flow.number() == self.known_flow
    }

    /// Whether a packet came by the way that leads to the peer.
    #[inline]
    pub fn is_between(&mut self, flow: Flow<'_>, common: &mut Common) -> bool {
        let qpn = self.number();
        let Some(path) = &self.path else { return false };
        match flow {
            _ if flow.number() == self.known_flow => true,
            Flow::Link(link) => {
                let ours = link == path.id();
                if ours {
                    self.known_flow = flow.number();
                }
                ours
            }
            Flow::Network(number, outer) => {
                let (source, destination) = outer.hosts();
                let ours = path.outer().hosts() == (destination, source);
                if ours {
                    self.known_flow = number;
                    if path.outer().ethernet().destination != outer.ethernet().source {
                        common.tell(Event::PathChanged(qpn), &mut self.told_path);
                    }
                }
                ours
            }
        }
    }

    /// Notes that something came from the peer: once for all that came at a time.
    #[inline(always)]
    pub fn hear(&mut self, common: &mut Common) {
        if self.heard != common.now {
            self.heard = common.now;
            common.hosts.heard(self.host, self.shared.place, common.now);
        }
    }

    /// Whether a packet to a host, as it is quoted, is one of this queue pair's that may still be
    /// under way, or its question whether the peer is there.
    pub fn has_sent(&self, to: Host, quoted: &Bth) -> bool {
        let leads_there = |path: &Path| path.outer().hosts().1 == to;
        self.service() == Service::Rc
            && self.state.requests()
            && quoted.destination() == self.peer
            && self.requester.may_be_under_way(quoted.psn())
            && self.path.as_ref().is_some_and(leads_there)
    }

    /// Whether its peer is still to be refused something.
    pub fn refuses(&self) -> bool {
        matches!(self.responder.due, Due::Nak(_))
    }

    /// Where its packets go, if it has a peer.
    #[inline]
    pub fn link(&self) -> Option<PathId> {
        self.path.as_ref().map(Path::id)
    }

    /// Whether its connection goes by a link of the device's.
    pub fn is_joined_by(&self, link: PathId) -> bool {
        let path = self.path.as_ref().filter(|_| self.state != State::Error);
        self.service() != Service::Ud && path.is_some_and(|path| path.id() == link)
    }

    /// Does what the time has come for, and says when to be called again.
    pub fn expire(&mut self, common: &mut Common) {
        if self.active {
            // It may be for want of room that it is.
            common.feed();
        }
        if self.state == State::Error {
            return common.activate(self);
        }
        if self.responder.is_to_acknowledge(common.now) {
            common.owe(self, Due::Ack);
        }
        self.requester_expire(common);
        self.probe_expire(common);
        self.arm(common);
    }

    /// Has the timer go off at the next moment that matters.
    #[inline]
    pub fn arm(&self, common: &mut Common) {
        let (r, asks_at) = (&self.requester, self.probe.map(|probe| probe.again));
        let times = [self.responder.ack_at, r.retry_at, r.resume_at, asks_at];
        if let Some(at) = times.into_iter().flatten().min() {
            common.timers.arm(timer_of(self.shared.place), at);
        }
    }

    /// Makes sure that the timer goes off at `at` at the latest.
    #[inline]
    pub fn arm_by(&self, at: Time, common: &mut Common) {
        common.timers.arm(timer_of(self.shared.place), at);
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
