//! The state of an endpoint: its receives, its peers, and what goes to each.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use doorbell_verbs::{Destination, Name, WhyGivenUp};

use super::handle::{Handle, LaneState, SendSlot};
use super::known::{Known, Outbound};
use super::lane::{Accepted, Lane};
use super::peer::Peer;
use super::posted::{From, Met, Note, Posted};
use super::receive::{Match, ReceiveSlot, Receiving};
use super::wire::Wire;
use crate::frames::engine::{Time, Timing};
use crate::frames::error::{ReceiveError, closed, too_long};
use crate::frames::name::identity;
use crate::frames::policy::{Offload, Policy};
use crate::frames::statistics::Statistics;
use crate::frames::wire::{Frame, Kind};
use crate::matching::{PostedId, Source};

/// The limits and choices of an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub policy: Policy,
    pub timing: Timing,
    pub stride: u16,
    pub longest: usize,
    pub most_peers: usize,
}

/// The state of an endpoint.
#[derive(Debug)]
pub struct State {
    pub settings: Settings,
    posted: Posted,
    /// The peers, by their identities.
    peers: HashMap<u64, Known>,
    /// Peers to which something may have to be sent.
    active: VecDeque<u64>,
    wire: Wire,
    next_source: Source,
    /// The endpoint, for the handles that are made here.
    endpoint: Weak<dyn Handle>,
    /// Peers to which lanes are to be made.
    wanted: Vec<Name>,
    /// Counts of received frames that belong to no known peer.
    statistics: Statistics,
    /// When the driver's timer rings.
    armed: Option<Time>,
    pub is_closed: bool,
    /// Whether the driver has ended, and closed the NIC if that is the endpoint's own.
    pub is_over: bool,
    /// The peers to which messages were lost since the program first began to close the endpoint.
    pub losses: Option<BTreeMap<String, WhyGivenUp>>,
    /// When a message last came, for how long the endpoint has to stay after it is dropped.
    pub received_at: Option<Time>,
    /// Connections by which peers place frames here, by their queue pairs' numbers.
    pub accepted: HashMap<u32, Accepted>,
    /// The peers to which the queue pairs of lanes lead, by their numbers.
    pub lanes: HashMap<u32, u64>,
    /// Whether a task was woken since the driver asked last.
    pub has_woken: bool,
    /// Whether a message was given to a receive in this step.
    pub has_delivered: bool,
}

impl State {
    pub fn new(settings: Settings, posted: Posted, wire: Wire, endpoint: Weak<dyn Handle>) -> Self {
        Self {
            settings,
            posted,
            peers: HashMap::new(),
            active: VecDeque::new(),
            wire,
            next_source: 0,
            endpoint,
            wanted: Vec::new(),
            statistics: Statistics::default(),
            armed: None,
            is_closed: false,
            is_over: false,
            losses: None,
            received_at: None,
            accepted: HashMap::new(),
            lanes: HashMap::new(),
            has_woken: false,
            has_delivered: false,
        }
    }

    /// Returns a known peer.
    pub fn peer(&self, name: &Name) -> Option<Peer> {
        self.peers.get(&identity(name)).map(|known| known.peer.clone())
    }

    /// Whether the way to a peer is known.
    pub fn is_reached(&self, name: &Name) -> bool {
        self.peers.get(&identity(name)).is_some_and(|known| known.destination.is_some())
    }

    /// Enters a peer into the table of peers, unless it is there, and returns its handle. Returns
    /// `None` if the endpoint is closed or has as many peers as it may have.
    pub fn enter(&mut self, name: Name) -> Option<Peer> {
        if let Some(peer) = self.peer(&name) {
            return Some(peer);
        }
        if self.is_closed || self.peers.len() >= self.settings.most_peers {
            return None;
        }
        let identity = identity(&name);
        let peer = Peer::new(name, self.next_source, self.endpoint.clone());
        self.next_source += 1;
        let known = Known::new(peer.clone(), self.settings.policy, self.settings.timing);
        self.peers.insert(identity, known);
        Some(peer)
    }

    /// Forgets a peer that can't be reached, unless something is under way.
    pub fn unreached(&mut self, name: &Name) {
        let identity = identity(name);
        if self.peers.get(&identity).is_some_and(|known| known.destination.is_none()) {
            self.peers.remove(&identity);
        }
    }

    /// Notes the way to a peer.
    pub fn reached(&mut self, name: &Name, destination: Destination) {
        if let Some(known) = self.peers.get_mut(&identity(name)) {
            known.destination.get_or_insert(destination);
            self.activate(identity(name));
        }
    }

    /// Gives the lane of a peer, by its identity.
    pub fn lane(&mut self, identity: u64) -> Option<&mut Lane> {
        self.peers.get_mut(&identity).map(|known| &mut known.lane)
    }

    /// Has the lane to a peer made, unless it is made or was tried.
    fn want(&mut self, to: &Name) {
        if self.lane(identity(to)).is_some_and(Lane::is_wanted) {
            self.wanted.push(to.clone());
        }
    }

    /// Returns the peers to which lanes are to be made.
    pub fn take_wanted(&mut self) -> Vec<Name> {
        std::mem::take(&mut self.wanted)
    }

    /// Whether lanes are to be made.
    pub fn has_wanted(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Has the lane to a peer made, if the policy needs one, and tells how that stands.
    pub fn lane_state(&mut self, to: &Name) -> LaneState {
        if self.settings.policy.offload() == Offload::None || self.is_closed {
            return LaneState::Not;
        }
        self.want(to);
        self.lane(identity(to)).map_or(LaneState::Not, |lane| lane.state())
    }

    /// Sets whether frames can be placed by RDMA writes at the peer with this identity.
    pub fn set_places(&mut self, identity: u64, places: bool) {
        if let Some(known) = self.peers.get_mut(&identity) {
            known.pair.set_places(places);
            self.activate(identity);
        }
    }

    /// Notes that a lane has ended, by its queue pair's number, unless that was noted before. Frames
    /// go as datagrams from here on, until a lane is made anew.
    pub fn lane_ended(&mut self, qpn: u32) {
        let Some(identity) = self.lanes.remove(&qpn) else { return };
        self.lane(identity).into_iter().for_each(Lane::ended);
        self.set_places(identity, false);
    }

    /// Changes the policy, for messages that begin from now on.
    pub fn set_policy(&mut self, policy: Policy) {
        self.settings.policy = policy;
        self.peers.values_mut().for_each(|known| known.pair.set_policy(policy));
    }

    /// Returns the sum of what was counted.
    pub fn statistics(&self) -> Statistics {
        let pairs = self.peers.values().map(|known| known.pair.statistics());
        pairs.fold(self.statistics, |sum, of| sum.plus(of))
    }

    /// Queues a message for a peer, to leave with [`transmit`](Self::transmit). If the message
    /// can't be sent, the slot is filled with the error.
    pub fn send(&mut self, to: &Name, (bits, body): (u64, Bytes), slot: Arc<SendSlot>, now: Time) {
        let (len, most) = (body.len(), self.settings.longest);
        if len > most {
            slot.fill(Err(too_long(to, len, most)));
            return;
        }
        let identity = identity(to);
        let Some(known) = self.peers.get_mut(&identity).filter(|_| !self.is_closed) else {
            slot.fill(Err(closed(to, len)));
            return;
        };
        let stride = self.settings.stride;
        let outbound = Outbound { slot, len };
        if let Err(Outbound { slot, .. }) = known.pair.send((bits, body, stride), outbound, now) {
            slot.fill(Err(too_long(to, len, most)));
            return;
        }
        if self.settings.policy.offload() != Offload::None {
            self.want(to);
        }
        self.activate(identity);
    }

    /// Posts a receive of a message of at most `room` bytes. If a message has waited for the
    /// receive, the frames that answer its sender leave with [`transmit`](Self::transmit).
    pub fn receive(&mut self, room: usize, of: Match, now: Time) -> Receiving {
        let slot = Arc::new(ReceiveSlot::new(room));
        if self.is_closed {
            slot.outcome.fill(Err(ReceiveError::Closed));
            return Receiving::new(slot, None);
        }
        match self.posted.post(of.pattern(), slot.clone()) {
            Met::Nothing(id) => Receiving::new(slot, Some((self.endpoint.clone(), id))),
            Met::PeerClosed => Receiving::new(slot, None),
            Met::Message(Note { number, from, .. }, letter) => {
                let identity = identity(from.name());
                if let Some(known) = self.peers.get_mut(&identity) {
                    let placed = known.pair.place(number, letter, now);
                    debug_assert!(placed.is_ok(), "what the pair gives up is forgotten here");
                }
                self.activate(identity);
                Receiving::new(slot, None)
            }
            Met::TooLong(Note { number, from, .. }) => {
                let identity = identity(from.name());
                if let Some(known) = self.peers.get_mut(&identity) {
                    known.pair.swallow(number);
                }
                self.activate(identity);
                Receiving::new(slot, None)
            }
        }
    }

    pub fn cancel(&mut self, id: PostedId) -> bool {
        self.posted.cancel(id)
    }

    /// Returns the bits, the length and the sender of a message that waits.
    pub fn probe(&mut self, of: Match) -> Option<(u64, u64, Peer)> {
        let note = self.posted.probe(of.pattern())?;
        Some((note.header.bits, note.header.len, note.from))
    }

    /// Takes in a frame. Returns the name of a peer to which the way has to be found.
    pub fn handle(&mut self, bytes: &[u8], source: u32, now: Time) -> Option<Name> {
        // What is placed is told behind the writes, and not by a datagram, which may overtake them.
        let is_sound = |frame: &Frame<'_>| {
            frame.sender >> 32 == u64::from(source)
                && !matches!(frame.head.kind, Kind::Placed { .. })
        };
        let Some(frame) = Frame::parse(bytes).filter(is_sound) else {
            self.statistics.malformed += 1;
            return None;
        };
        let mut finds = None;
        if !self.peers.contains_key(&frame.sender) {
            let name = frame.name.and_then(|name| name.parse::<Name>().ok());
            let name = name.filter(|name| identity(name) == frame.sender);
            let Some(peer) = name.clone().and_then(|name| self.enter(name)) else {
                self.statistics.strangers += 1;
                return None;
            };
            finds = name.filter(|_| identity(peer.name()) == frame.sender);
        }
        self.handle_of(&frame, now);
        finds
    }

    /// Takes in a frame of a known peer.
    pub fn handle_of(&mut self, frame: &Frame<'_>, now: Time) {
        let Some(known) = self.peers.get_mut(&frame.sender) else { return };
        known.knows_us = true;
        let Known { pair, peer, .. } = known;
        pair.handle(frame, now, &mut From { posted: &mut self.posted, peer });
        self.look(frame.sender, now);
        self.activate(frame.sender);
    }

    /// Has something sent to a peer, if there is anything.
    pub fn activate(&mut self, identity: u64) {
        let Some(known) = self.peers.get_mut(&identity) else { return };
        if !known.is_active {
            known.is_active = true;
            self.active.push_back(identity);
        }
    }

    /// Tells the program what has happened with a peer's messages.
    fn look(&mut self, identity: u64, now: Time) {
        let Some(known) = self.peers.get_mut(&identity) else { return };
        let looked = known.look(&mut self.posted, self.settings.timing.patience);
        self.has_woken |= looked.has_woken;
        if looked.has_received {
            self.received_at = Some(now);
            self.has_delivered = true;
        }
        if let (Some(losses), Some(why)) = (&mut self.losses, looked.given_up) {
            losses.entry(known.peer.name().to_string()).or_insert(why);
        }
    }

    /// Does what is due, and returns when something is due next.
    pub fn handle_timeouts(&mut self, now: Time) -> Option<Time> {
        if self.armed.is_some_and(|armed| armed > now) {
            return self.armed;
        }
        let mut due = Vec::new();
        for (&identity, known) in &mut self.peers {
            if known.pair.next_timeout().is_some_and(|at| at <= now) {
                known.pair.handle_timeout(now);
                due.push(identity);
            }
        }
        due.sort_unstable();
        for identity in due {
            self.look(identity, now);
            self.activate(identity);
        }
        self.transmit(now);
        self.armed = self.peers.values().filter_map(|known| known.pair.next_timeout()).min();
        self.armed
    }

    /// Whether something may be due before the driver's timer rings. Nothing that was sent just now
    /// is due before the shortest time-out.
    pub fn is_earlier(&self, now: Time) -> bool {
        let soonest = now + self.settings.timing.least;
        self.armed.is_none_or(|armed| armed > soonest)
    }

    /// Has the driver's timer ring after the shortest time-out, if it would ring later.
    pub fn arm(&mut self, now: Time) -> Option<Time> {
        if self.is_earlier(now) && !self.is_idle() {
            self.armed = Some(now + self.settings.timing.least);
        }
        self.armed
    }

    /// Counts a frame that makes no sense.
    pub fn count_malformed(&mut self) {
        self.statistics.malformed += 1;
    }

    /// Sends as much as the queues have room for.
    pub fn transmit(&mut self, now: Time) {
        while let Some(&identity) = self.active.front().filter(|_| self.wire.has_room()) {
            self.active.pop_front();
            let Some(known) = self.peers.get_mut(&identity) else { continue };
            let has_more = known.transmit(&mut self.wire, self.settings.policy, now);
            known.is_active = has_more;
            if has_more {
                self.active.push_back(identity);
            }
        }
        self.wire.flush();
    }

    /// Whether peers have confirmed all messages that were sent to them.
    pub fn is_confirmed(&self) -> bool {
        self.peers.values().all(|known| known.pair.is_confirmed())
    }

    /// Returns the names of the peers that have not confirmed all messages.
    pub fn unconfirmed(&self) -> Vec<String> {
        let late = self.peers.values().filter(|known| !known.pair.is_confirmed());
        late.map(|known| known.peer.name().to_string()).collect()
    }

    /// Notes that nothing reaches peers any more, since the NIC was closed.
    pub fn loses_nic(&mut self) {
        let lost = self.unconfirmed().into_iter().map(|peer| (peer, WhyGivenUp::NicClosed));
        self.losses.get_or_insert_default().extend(lost);
    }

    /// Returns the number of peers.
    pub fn peers(&self) -> usize {
        self.peers.len()
    }

    /// Whether nothing is under way in either direction.
    pub fn is_idle(&self) -> bool {
        self.peers.values().all(|known| known.pair.is_idle())
    }

    /// Ends all receives, and all sends that are not confirmed. Peers are told.
    pub fn close(&mut self, now: Time) {
        self.is_closed = true;
        self.posted.close();
        let peers: Vec<u64> = self.peers.keys().copied().collect();
        for identity in peers {
            self.peers.get_mut(&identity).into_iter().for_each(|known| known.pair.close());
            self.look(identity, now);
            self.activate(identity);
        }
        self.transmit(now);
    }
}
