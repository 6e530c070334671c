//! The state of an endpoint: its receives, its peers, and what goes to each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use doorbell_am as am;

use super::lane::{Frame, Lane, Outbound};
use super::peer::Peer;
use super::receive::{Match, Message, Probed, ReceiveSlot, Receiving};
use super::send::{SendSlot, Sending};
use crate::error::{ReceiveError, SendError, peer_text};
use crate::matching::{Envelope, Source};
use crate::pacing::{Held, Incoming, Outgoing, Posting, Reaction, Receive, Release, Submitted};
use crate::wire::{Flags, OVERHEAD};

/// The limits of an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// What messages of one peer may take here before receives take them.
    pub window: usize,
}

/// What the handles to an endpoint and its handlers share.
#[derive(Debug)]
pub struct Shared {
    state: Mutex<State>,
    limits: Limits,
}

#[derive(Debug)]
struct State {
    incoming: Incoming<Arc<ReceiveSlot>, Arrived>,
    peers: HashMap<am::Peer, Source>,
    senders: HashMap<Source, Sender>,
    /// Synchronous sends that no receive has taken yet, by their numbers.
    synchronous: HashMap<u64, (Source, Arc<SendSlot>, usize)>,
    next_source: Source,
    next_synchronous: u64,
    is_closed: bool,
}

/// A peer, and what goes to it.
#[derive(Debug)]
struct Sender {
    outgoing: Outgoing<Outbound>,
    lane: Arc<Lane>,
}

/// A message that has come.
#[derive(Debug)]
pub(super) struct Arrived {
    message: Message,
    /// The number of a synchronous send; zero if it is not synchronous.
    synchronous: u64,
}

/// The lanes to which an event has put something, to be flushed without the state's lock.
type Touched = Vec<Arc<Lane>>;

impl Shared {
    pub fn new(limits: Limits) -> Arc<Self> {
        let state = State {
            incoming: Incoming::new(limits.window / 2),
            peers: HashMap::new(),
            senders: HashMap::new(),
            synchronous: HashMap::new(),
            next_source: 0,
            next_synchronous: 1,
            is_closed: false,
        };
        Arc::new(Self { state: Mutex::new(state), limits })
    }

    /// Returns the handle to a peer, which becomes known if it was not.
    pub fn peer(self: &Arc<Self>, link: &am::Peer) -> Peer {
        let source = self.lock().source(link, self.limits.window);
        Peer::new(source, link, self)
    }

    /// Posts a send.
    pub fn send(
        &self,
        source: Source,
        link: &am::Peer,
        bits: u64,
        body: Bytes,
        is_synchronous: bool,
    ) -> Sending {
        let (len, most) = (body.len(), link.longest_payload());
        if len > most {
            let peer = peer_text(link.name());
            return Sending::done(Err(SendError::TooLong { peer, len, most }));
        }
        let mut state = self.lock();
        if !state.senders.contains_key(&source) {
            let peer = peer_text(link.name());
            return Sending::done(Err(SendError::PeerGone { peer, len }));
        }
        let slot = Arc::new(SendSlot::default());
        let synchronous = match is_synchronous {
            true => state.synchronous(source, &slot, len),
            false => 0,
        };
        let outbound = Outbound { body, synchronous, slot: Some(slot.clone()) };
        let lane = state.submit(source, bits, outbound);
        drop(state);
        lane.iter().for_each(|lane| lane.flush());
        Sending::waits(slot)
    }

    /// Posts a receive.
    pub fn receive(self: &Arc<Self>, of: Match, room: usize) -> Receiving {
        let slot = Arc::new(ReceiveSlot { outcome: Default::default(), room });
        let (mut touched, pattern) = (Touched::new(), of.pattern());
        let mut state = self.lock();
        if let Some(why) = state.refuses(pattern.source) {
            slot.outcome.fill(Err(why));
            return Receiving::new(slot, None);
        }
        let State { incoming, senders, .. } = &mut *state;
        let posting =
            incoming.post(pattern, slot.clone(), &mut |what| react(senders, &mut touched, what));
        let waits = match posting {
            Posting::Met(_, envelope, arrived) => {
                state.met(envelope.source, &arrived, &mut touched);
                drop(state);
                slot.give(arrived.message);
                None
            }
            Posting::Waits(receive) => {
                drop(state);
                Some((self.clone(), receive))
            }
        };
        touched.iter().for_each(|lane| lane.flush());
        Receiving::new(slot, waits)
    }

    /// Cancels a receive. Returns whether it waited still.
    pub fn cancel(&self, receive: Receive) -> bool {
        let mut touched = Touched::new();
        let mut state = self.lock();
        let State { incoming, senders, .. } = &mut *state;
        let taken = incoming.cancel(receive, &mut |what| react(senders, &mut touched, what));
        drop(state);
        touched.iter().for_each(|lane| lane.flush());
        taken.is_some()
    }

    /// Looks for a message that a receive would meet now.
    pub fn probe(&self, of: Match) -> Option<Probed> {
        let mut state = self.lock();
        let (envelope, arrived) = state.incoming.probe(of.pattern())?;
        let Message { body, from, .. } = &arrived.message;
        Some(Probed { bits: envelope.bits, len: body.len(), from: from.clone() })
    }

    /// Takes in a message that was sent within its sender's window.
    pub fn arrived(
        self: &Arc<Self>,
        link: &am::Peer,
        bits: u64,
        flags: Flags,
        synchronous: u64,
        body: Bytes,
    ) {
        let mut touched = Touched::new();
        let mut state = self.lock();
        let source = state.source(link, self.limits.window);
        let cost = body.len() + OVERHEAD;
        let message = Message { bits, body, from: Peer::new(source, link, self) };
        let (envelope, arrived) = (Envelope { source, bits }, Arrived { message, synchronous });
        let State { incoming, senders, .. } = &mut *state;
        if flags.last {
            incoming.holds_none(source);
        }
        let mut reacts = |what| react(senders, &mut touched, what);
        let met = incoming.arrived(envelope, cost, arrived, &mut reacts);
        if let Some((_, arrived)) = &met {
            state.met(source, arrived, &mut touched);
        }
        drop(state);
        if let Some((slot, arrived)) = met {
            slot.give(arrived.message);
        }
        touched.iter().for_each(|lane| lane.flush());
    }

    /// Takes in a message whose offer was taken.
    pub fn came(
        self: &Arc<Self>,
        link: &am::Peer,
        order: u64,
        flags: Flags,
        synchronous: u64,
        body: Bytes,
    ) {
        let mut touched = Touched::new();
        let mut state = self.lock();
        let source = state.source(link, self.limits.window);
        let promised = state.incoming.came(source, order);
        if flags.last {
            state.incoming.holds_none(source);
        }
        // A message that nothing was promised to is of a peer that does not keep to the protocol.
        let Some((slot, bits)) = promised else { return };
        let message = Message { bits, body, from: Peer::new(source, link, self) };
        let arrived = Arrived { message, synchronous };
        state.met(source, &arrived, &mut touched);
        drop(state);
        slot.give(arrived.message);
        touched.iter().for_each(|lane| lane.flush());
    }

    /// Takes in a message about the window, held messages or searches.
    pub fn told(&self, link: &am::Peer, tells: impl FnOnce(&mut Told<'_>)) {
        let mut touched = Touched::new();
        let mut state = self.lock();
        let source = state.source(link, self.limits.window);
        tells(&mut Told { state: &mut state, source, touched: &mut touched });
        drop(state);
        touched.iter().for_each(|lane| lane.flush());
    }

    /// Ends what waits for a peer that has gone.
    pub fn gone(&self, link: &am::Peer) {
        let mut state = self.lock();
        let Some(source) = state.peers.remove(link) else { return };
        let sender = state.senders.remove(&source);
        let receives = state.incoming.remove_sender(source);
        let unmatched: Vec<_> = state.synchronous.extract_if(|_, (of, ..)| *of == source).collect();
        drop(state);
        let peer = peer_text(link.name());
        for slot in receives {
            slot.outcome.fill(Err(ReceiveError::PeerGone { peer: peer.clone() }));
        }
        for (_, (_, slot, len)) in unmatched {
            slot.fill(Err(SendError::PeerGone { peer: peer.clone(), len }));
        }
        let Some(Sender { mut outgoing, lane }) = sender else { return };
        lane.close();
        for Held { message, .. } in outgoing.drain() {
            let gone = lane.gone(message.body.len());
            message.slot.iter().for_each(|slot| slot.fill(Err(gone.clone())));
        }
    }

    /// Ends what waits for peers whose ends were missed.
    pub fn look_for_gone(&self) {
        let peers: Vec<_> = self.lock().peers.keys().cloned().collect();
        peers.iter().filter(|peer| peer.ending().is_some()).for_each(|peer| self.gone(peer));
    }

    /// Ends all sends and receives, because the endpoint has ended.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let peers: Vec<_> = state.peers.keys().cloned().collect();
        let receives = state.incoming.drain_receives();
        drop(state);
        peers.iter().for_each(|peer| self.gone(peer));
        receives.iter().for_each(|slot| slot.outcome.fill(Err(ReceiveError::Closed)));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the number of a peer, which becomes known if it was not.
    fn source(&mut self, link: &am::Peer, window: usize) -> Source {
        if let Some(&source) = self.peers.get(link) {
            return source;
        }
        let source = self.next_source;
        self.next_source += 1;
        self.peers.insert(link.clone(), source);
        self.incoming.add_sender(source);
        let sender = Sender { outgoing: Outgoing::new(window), lane: Lane::new(link.clone()) };
        self.senders.insert(source, sender);
        source
    }

    /// Returns why a receive can't be posted, if it can't.
    fn refuses(&mut self, source: Option<Source>) -> Option<ReceiveError> {
        if self.is_closed {
            return Some(ReceiveError::Closed);
        }
        let source = source?;
        let peer = || ReceiveError::PeerGone { peer: peer_text(None) };
        // Messages of a peer that has gone may still be here.
        let is_known = self.senders.contains_key(&source);
        (!is_known && !self.incoming.has_messages_of(source)).then(peer)
    }

    fn synchronous(&mut self, source: Source, slot: &Arc<SendSlot>, len: usize) -> u64 {
        let number = self.next_synchronous;
        self.next_synchronous += 1;
        self.synchronous.insert(number, (source, slot.clone(), len));
        number
    }

    /// Submits a message to a peer that is there. Returns the lane to flush.
    fn submit(&mut self, source: Source, bits: u64, outbound: Outbound) -> Option<Arc<Lane>> {
        let Sender { outgoing, lane } = self.senders.get_mut(&source)?;
        let (envelope, cost) = (Envelope { source: 0, bits }, outbound.body.len() + OVERHEAD);
        match outgoing.submit(envelope, cost, outbound) {
            Submitted::Send(outbound) => {
                let synchronous = outbound.synchronous != 0;
                let flags = Flags { last: false, synchronous };
                lane.put([Frame::Eager { bits, flags, outbound }]);
            }
            Submitted::Holds { first, offer } => {
                lane.put(first.then_some(Frame::Holds));
                lane.put(offer.map(Frame::Offer));
            }
        }
        Some(lane.clone())
    }

    /// Tells the sender of a synchronous message that a receive has taken it.
    fn met(&mut self, source: Source, arrived: &Arrived, touched: &mut Touched) {
        if arrived.synchronous != 0
            && let Some(Sender { lane, .. }) = self.senders.get(&source)
        {
            lane.put([Frame::Matched(arrived.synchronous)]);
            touched.push(lane.clone());
        }
    }
}

/// What a peer says beside its messages, on the state of the endpoint.
pub struct Told<'s> {
    state: &'s mut State,
    pub source: Source,
    touched: &'s mut Touched,
}

impl Told<'_> {
    /// Has the receiving side react.
    pub fn incoming(
        &mut self,
        tells: impl FnOnce(&mut Incoming<Arc<ReceiveSlot>, Arrived>, &mut dyn FnMut(Reaction)),
    ) {
        let State { incoming, senders, .. } = &mut *self.state;
        tells(incoming, &mut |what| react(senders, self.touched, what));
    }

    /// Has the sending side react, and sends what may be sent then.
    pub fn outgoing(&mut self, tells: impl FnOnce(&mut Outgoing<Outbound>) -> Option<Frame>) {
        let Some(Sender { outgoing, lane }) = self.state.senders.get_mut(&self.source) else {
            return;
        };
        lane.put(tells(outgoing));
        while let Some(Release { held, last }) = outgoing.release() {
            let Held { envelope, message: outbound, .. } = held;
            let flags = Flags { last, synchronous: outbound.synchronous != 0 };
            lane.put([Frame::Eager { bits: envelope.bits, flags, outbound }]);
        }
        lane.put(outgoing.next_offer().map(Frame::Offer));
        self.touched.push(lane.clone());
    }

    /// A receive has taken the message of a synchronous send.
    pub fn matched(&mut self, number: u64) {
        if let Some((_, slot, _)) = self.state.synchronous.remove(&number) {
            slot.fill(Ok(()));
        }
    }
}

/// Puts a reaction on the lane to its peer.
fn react(senders: &HashMap<Source, Sender>, touched: &mut Touched, what: Reaction) {
    let (to, frame) = match what {
        Reaction::Freed { to, cost } => (to, Frame::Freed(cost)),
        Reaction::Search { to, search, pattern } => (to, Frame::Search { search, pattern }),
        Reaction::GivenUp { to, search } => (to, Frame::GivenUp(search)),
        Reaction::Take { to, order } => (to, Frame::Take(order)),
        Reaction::Leave { to, order } => (to, Frame::Leave(order)),
    };
    if let Some(Sender { lane, .. }) = senders.get(&to) {
        lane.put([frame]);
        touched.push(lane.clone());
    }
}
