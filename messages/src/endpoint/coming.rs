//! What comes from peers: messages, their ends, and what is said about windows.

use std::sync::{Arc, MutexGuard};

use bytes::Bytes;
use doorbell_am as am;

use super::arrived::{Arrived, Begins, Content, Sender};
use super::effects::Effects;
use super::frame::Frame;
use super::partial::Partial;
use super::shared::Shared;
use super::slots::{ReceiveSlot, Received};
use super::state::{Known, State, react};
use crate::error::{SendError, peer_text};
use crate::limits::Limits;
use crate::matching::{Envelope, Pattern, Source, Taken};
use crate::pacing::Offer;
use crate::wire::{Description, Heading, Kind, OVERHEAD, Packet, short_of_words};

impl Shared {
    /// Takes in a short message. Returns whether a task was woken, as all of these do.
    pub fn takes_short(self: &Arc<Self>, link: &am::Peer, words: &[u64]) -> bool {
        let mut state = self.lock();
        match (state.peer_of(link), short_of_words(words)) {
            (Some((source, known)), Some((bits, body))) => {
                let from = Sender { source, name: known.name.clone() };
                let (len, content) = (body.len(), Content::Here(body));
                self.arrived(state, false, Arrived { bits, len, content, from, number: 0 })
            }
            _ => self.malformed(),
        }
    }

    /// Takes in a packet.
    pub fn takes(
        self: &Arc<Self>,
        link: &am::Peer,
        Packet { kind, words, payload }: Packet,
    ) -> bool {
        let [one, two, three] = words;
        match kind {
            Kind::Eager => {
                let begins = Begins::Sent { bits: one };
                self.begins(link, begins, Heading::from_word(two), three, payload)
            }
            Kind::Taken => {
                let begins = Begins::Taken { order: one };
                self.begins(link, begins, Heading::from_word(two), three, payload)
            }
            Kind::More => self.continues(link, &payload),
            Kind::Done => self.done(link, one, two == 1),
            _ => self.told(link, kind, words, &payload),
        }
    }

    /// Takes in a packet that has come by one of several connections, with its sequence number.
    /// Whichever thread has the next packet in order hands on all that are ready.
    pub fn takes_in_order(
        self: &Arc<Self>,
        link: &am::Peer,
        sequence: u64,
        packet: Packet,
    ) -> bool {
        let mut locked = self.lock();
        let state = &mut *locked;
        let Some(&(source, _)) = state.links.get(link) else { return self.malformed() };
        let Some(known) = state.peers.get_mut(&source) else { return self.malformed() };
        // What the sender's window has room for, and what has taken offers of the sender's.
        let most = || {
            let longest = self.limits.eager.max(Limits::LEAST_WINDOW);
            let offered = state.incoming.promised_of(source).saturating_mul(longest);
            state.incoming.window().saturating_add(offered)
        };
        if !known.ordered.comes(sequence, (packet.bulk(), packet), most) {
            // Without the packet nothing behind it could be handed on.
            let lane = known.lane.clone();
            drop(locked);
            lane.cut_off();
            return self.malformed();
        }
        if let Some(next) = known.ordered.acknowledgement() {
            known.lane.acknowledge(next);
        }
        let lane = known.lane.clone();
        if std::mem::replace(&mut known.is_handing_on, true) {
            return false;
        }
        let mut woke = false;
        while let Some(known) = locked.peers.get_mut(&source) {
            let Some(packet) = known.ordered.next() else {
                known.is_handing_on = false;
                break;
            };
            drop(locked);
            woke |= self.takes(link, packet);
            locked = self.lock();
        }
        drop(locked);
        lane.flush() || woke
    }

    /// Takes in the beginning of a message, which may be all of it.
    fn begins(
        self: &Arc<Self>,
        link: &am::Peer,
        begins: Begins,
        heading: Heading,
        number: u64,
        payload: Bytes,
    ) -> bool {
        let mut state = self.lock();
        let Some((source, known)) = state.peer_of(link) else { return self.malformed() };
        if heading.long || payload.len() == heading.len {
            let from = Sender { source, name: known.name.clone() };
            return self.comes(state, from, begins, heading, number, payload);
        }
        let most = self.limits.eager.max(Limits::LEAST_WINDOW);
        if payload.len() > heading.len || heading.len > most {
            return self.malformed();
        }
        known.partial = Some(Partial::new(begins, heading, number, &payload));
        false
    }

    /// Takes in more of a message.
    fn continues(self: &Arc<Self>, link: &am::Peer, more: &[u8]) -> bool {
        let mut state = self.lock();
        let Some((source, known)) = state.peer_of(link) else { return self.malformed() };
        if !known.partial.as_mut().is_some_and(|partial| partial.add(more)) {
            known.partial = None;
            return self.malformed();
        }
        let Some(whole) = known.partial.take_if(|partial| partial.is_whole()) else {
            return false;
        };
        let from = Sender { source, name: known.name.clone() };
        let Partial { begins, heading, number, .. } = whole;
        self.comes(state, from, begins, heading, number, whole.into_bytes())
    }

    /// Takes in a whole message, or the description of a long one.
    fn comes(
        self: &Arc<Self>,
        state: MutexGuard<'_, State>,
        from: Sender,
        begins: Begins,
        Heading { len, last, long }: Heading,
        number: u64,
        payload: Bytes,
    ) -> bool {
        let content = match long {
            true => Description::from_bytes(payload, len).map(Content::There),
            false => Some(Content::Here(payload)),
        };
        let Some(content) = content else { return self.malformed() };
        let bits = if let Begins::Sent { bits } = begins { bits } else { 0 };
        let arrived = Arrived { bits, len, content, from, number };
        match begins {
            Begins::Sent { .. } => self.arrived(state, last, arrived),
            Begins::Taken { order } => self.taken(state, last, order, arrived),
        }
    }

    /// Takes in a message that was sent within its sender's window.
    fn arrived(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        last: bool,
        arrived: Arrived,
    ) -> bool {
        let (mut effects, source) = (Effects::default(), arrived.from.source);
        let envelope = Envelope { source, bits: arrived.bits };
        let cost =
            OVERHEAD + if let Content::Here(body) = &arrived.content { body.len() } else { 0 };
        let State { incoming, peers, .. } = &mut *state;
        if last {
            incoming.holds_none(source);
        }
        let mut reacts = |what| react(peers, &mut effects, what);
        match incoming.arrived(envelope, cost, arrived, &mut reacts) {
            Ok(Some((slot, taken))) => self.met(state, slot, taken, &mut effects),
            Ok(None) => drop(state),
            Err(_) => {
                drop(state);
                self.malformed();
            }
        }
        effects.finish()
    }

    /// Takes in a message whose offer was taken.
    fn taken(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        last: bool,
        order: u64,
        mut arrived: Arrived,
    ) -> bool {
        let (mut effects, source) = (Effects::default(), arrived.from.source);
        let promised = state.incoming.came(source, order);
        if last {
            state.incoming.holds_none(source);
        }
        let Some((slot, bits, order)) = promised else {
            drop(state);
            return self.malformed();
        };
        arrived.bits = bits;
        let envelope = Envelope { source, bits };
        self.met(state, slot, Taken { order, envelope, message: arrived }, &mut effects);
        effects.finish()
    }

    /// Gives a receive its message, or has the message's body pulled first.
    pub(super) fn met(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        slot: Arc<ReceiveSlot>,
        Taken { order, message: arrived, .. }: Taken<Arrived>,
        effects: &mut Effects,
    ) {
        let Arrived { bits, len, content, from, number } = arrived;
        match content {
            Content::There(description) if len <= slot.room => {
                let known = state.peers.get_mut(&from.source);
                let ways = known.map(|known| {
                    known.pulling += 1;
                    (known.pulls.clone(), known.near.clone())
                });
                drop(state);
                let of = Received { bits, body: Bytes::new(), from, order };
                self.pull(ways, number, slot, (len, description), of);
            }
            content => {
                state.is_done(from.source, number, true, effects);
                drop(state);
                let body = if let Content::Here(body) = content { body } else { Bytes::new() };
                effects.note(self.give(&slot, len, Received { bits, body, from, order }));
            }
        }
    }

    /// Gives a receive its message. If the receive was dropped meanwhile, the message goes to
    /// another, or waits. Returns whether a task was woken.
    pub(super) fn give(
        self: &Arc<Self>,
        slot: &ReceiveSlot,
        len: usize,
        received: Received,
    ) -> bool {
        slot.give(len, received).unwrap_or_else(|received| self.put_back(received))
    }

    /// Takes in a message again that a receive has got and that no program has seen. Returns
    /// whether a task was woken.
    pub(super) fn put_back(self: &Arc<Self>, received: Received) -> bool {
        let Received { bits, body, from, order } = received;
        let (mut effects, envelope) = (Effects::default(), Envelope { source: from.source, bits });
        let (len, content) = (body.len(), Content::Here(body));
        let message = Arrived { bits, len, content, from, number: 0 };
        let mut state = self.lock();
        if state.is_closed {
            return false;
        }
        let State { incoming, peers, .. } = &mut *state;
        let taken = Taken { order, envelope, message };
        match incoming.put_back(taken, &mut |what| react(peers, &mut effects, what)) {
            Some((slot, taken)) => self.met(state, slot, taken, &mut effects),
            None => drop(state),
        }
        effects.finish()
    }

    /// The receiver of a message is done with it.
    fn done(&self, link: &am::Peer, number: u64, received: bool) -> bool {
        let mut state = self.lock();
        let source = state.peer_of(link).map(|(source, _)| source);
        if state.awaited.get(&number).map(|awaited| awaited.to) != source || source.is_none() {
            return self.malformed();
        }
        let Some(awaited) = state.awaited.remove(&number) else { return false };
        let name = state.peers.get(&awaited.to).and_then(|known| known.name.clone());
        drop(state);
        let peer = || peer_text(name.as_deref());
        let woke = awaited.slot.fill(match received {
            true => Ok(()),
            false => Err(SendError::NotReceived { peer: peer(), len: awaited.len }),
        });
        drop(awaited.lending);
        woke
    }

    /// Takes in what a peer says about windows, held messages and searches.
    fn told(&self, link: &am::Peer, kind: Kind, words: [u64; 3], payload: &[u8]) -> bool {
        let mut effects = Effects::default();
        let mut state = self.lock();
        let Some((source, _)) = state.peer_of(link) else { return self.malformed() };
        let keeps_rules = match kind {
            Kind::Holds => state.told_of_held(source, words[0] == 1, &mut effects),
            Kind::Offer => state.offered(source, words, payload, &mut effects),
            _ => state.sender_told(source, kind, words, &mut effects),
        };
        drop(state);
        if !keeps_rules {
            self.malformed();
        }
        effects.finish()
    }
}

impl State {
    /// Has the receiving side hear whether a sender holds messages. Returns whether the peer keeps
    /// the rules.
    fn told_of_held(&mut self, source: Source, holds: bool, effects: &mut Effects) -> bool {
        let Self { incoming, peers, .. } = self;
        if !holds {
            incoming.holds_none(source);
            peers.get(&source).into_iter().for_each(|known| known.lane.drop_searches());
            return true;
        }
        incoming.holds(source, &mut |what| react(peers, effects, what))
    }

    /// Has the receiving side hear of an offer. Returns whether the peer keeps the rules.
    fn offered(
        &mut self,
        source: Source,
        [search, order, bits]: [u64; 3],
        payload: &[u8],
        effects: &mut Effects,
    ) -> bool {
        let Self { incoming, peers, .. } = self;
        let Some(len) = payload.first_chunk() else { return false };
        let len = u64::from_be_bytes(*len) as usize;
        let offer = Offer { search, order, envelope: Envelope { source, bits }, len };
        incoming.offered(offer, &mut |what| react(peers, effects, what))
    }

    /// Has the sending side hear of its window and of searches, and sends what may be sent then.
    /// Returns whether the peer keeps the rules.
    fn sender_told(
        &mut self,
        source: Source,
        kind: Kind,
        [one, bits, mask]: [u64; 3],
        effects: &mut Effects,
    ) -> bool {
        let Some(Known { outgoing, lane, .. }) = self.peers.get_mut(&source) else { return false };
        let mut keeps_rules = true;
        match kind {
            Kind::Freed => {
                keeps_rules = outgoing.freed(usize::try_from(one).unwrap_or(usize::MAX));
            }
            Kind::Search => match outgoing.search(one, Pattern::new(None, bits, mask)) {
                Ok(offer) => lane.put(offer.map(Frame::Offer)),
                Err(_) => {
                    effects.cut_off(lane);
                    return false;
                }
            },
            Kind::GivenUp => outgoing.give_up(one),
            Kind::Take => {
                let release = outgoing.take(one);
                lane.put(release.map(|release| Frame::taken(one, release)));
            }
            _ => {
                outgoing.leave(one);
            }
        }
        self.releases(source, effects);
        keeps_rules
    }
}
