//! What comes from peers: messages, their ends, and what is said about windows.

use std::sync::{Arc, MutexGuard};

use bytes::Bytes;
use doorbell_am as am;

use super::arrived::{Arrived, Begins, Content, Sender};
use super::frame::Frame;
use super::partial::Partial;
use super::shared::Shared;
use super::slots::ReceiveSlot;
use super::state::{Known, State, Touched, react};
use crate::error::{SendError, peer_text};
use crate::limits::Limits;
use crate::matching::{Envelope, Pattern, Source};
use crate::pacing::Offer;
use crate::wire::{Description, Heading, Kind, OVERHEAD, Packet};

impl Shared {
    /// Takes in a packet.
    pub fn takes(self: &Arc<Self>, link: &am::Peer, Packet { kind, words, payload }: Packet) {
        let [one, two, three] = words;
        match kind {
            Kind::Eager => {
                let begins = Begins::Sent { bits: one };
                self.begins(link, begins, Heading::from_word(two), three, payload);
            }
            Kind::Taken => {
                let begins = Begins::Taken { order: one };
                self.begins(link, begins, Heading::from_word(two), three, payload);
            }
            Kind::More => self.continues(link, &payload),
            Kind::Done => self.done(link, one, two == 1),
            _ => self.told(link, kind, words),
        }
    }

    /// Takes in a packet that has come by one of several connections, with its sequence number.
    /// Whichever thread has the next packet in order hands on all that are ready.
    pub fn takes_in_order(self: &Arc<Self>, link: &am::Peer, sequence: u64, packet: Packet) {
        let mut state = self.lock();
        let Some((source, known)) = state.peer_of(link) else { return self.count_malformed() };
        if !known.ordered.comes(sequence, packet) {
            return self.count_malformed();
        }
        if let Some(next) = known.ordered.acknowledgement() {
            known.lane.acknowledge(next);
        }
        let lane = known.lane.clone();
        if std::mem::replace(&mut known.is_handing_on, true) {
            return;
        }
        while let Some(known) = state.peers.get_mut(&source) {
            let Some(packet) = known.ordered.next() else {
                known.is_handing_on = false;
                break;
            };
            drop(state);
            self.takes(link, packet);
            state = self.lock();
        }
        drop(state);
        lane.flush();
    }

    /// Takes in the beginning of a message, which may be all of it.
    fn begins(
        self: &Arc<Self>,
        link: &am::Peer,
        begins: Begins,
        heading: Heading,
        number: u64,
        payload: Bytes,
    ) {
        let mut state = self.lock();
        let Some((source, known)) = state.peer_of(link) else { return self.count_malformed() };
        if heading.long || payload.len() == heading.len {
            return self.comes(state, (source, link), begins, heading, number, payload);
        }
        let most = self.limits.eager.max(Limits::LEAST_WINDOW);
        match payload.len() < heading.len && heading.len <= most {
            true => known.partial = Some(Partial::new(begins, heading, number, &payload)),
            false => self.count_malformed(),
        }
    }

    /// Takes in more of a message.
    fn continues(self: &Arc<Self>, link: &am::Peer, more: &[u8]) {
        let mut state = self.lock();
        let Some((source, known)) = state.peer_of(link) else { return self.count_malformed() };
        if !known.partial.as_mut().is_some_and(|partial| partial.add(more)) {
            known.partial = None;
            return self.count_malformed();
        }
        let Some(whole) = known.partial.take_if(|partial| partial.is_whole()) else { return };
        let Partial { begins, heading, number, .. } = whole;
        self.comes(state, (source, link), begins, heading, number, whole.into_bytes());
    }

    /// Takes in a whole message, or the description of a long one.
    fn comes(
        self: &Arc<Self>,
        state: MutexGuard<'_, State>,
        (source, link): (Source, &am::Peer),
        begins: Begins,
        Heading { len, last, long }: Heading,
        number: u64,
        payload: Bytes,
    ) {
        let content = match long {
            true => Description::from_bytes(payload, len).map(Content::There),
            false => Some(Content::Here(payload)),
        };
        let Some(content) = content else { return self.count_malformed() };
        let bits = if let Begins::Sent { bits } = begins { bits } else { 0 };
        let arrived =
            Arrived { bits, len, content, from: Sender { source, link: link.clone() }, number };
        match begins {
            Begins::Sent { .. } => self.arrived(state, source, last, arrived),
            Begins::Taken { order } => self.taken(state, source, last, order, arrived),
        }
    }

    /// Takes in a message that was sent within its sender's window.
    fn arrived(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        source: Source,
        last: bool,
        arrived: Arrived,
    ) {
        let mut touched = Touched::new();
        let envelope = Envelope { source, bits: arrived.bits };
        let cost =
            OVERHEAD + if let Content::Here(body) = &arrived.content { body.len() } else { 0 };
        let State { incoming, peers, .. } = &mut *state;
        if last {
            incoming.holds_none(source);
        }
        let mut reacts = |what| react(peers, &mut touched, what);
        match incoming.arrived(envelope, cost, arrived, &mut reacts) {
            Ok(Some((slot, arrived))) => self.met(state, source, slot, arrived, &mut touched),
            Ok(None) => drop(state),
            Err(_) => {
                drop(state);
                self.count_malformed();
            }
        }
        touched.iter().for_each(|lane| lane.flush());
    }

    /// Takes in a message whose offer was taken.
    fn taken(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        source: Source,
        last: bool,
        order: u64,
        mut arrived: Arrived,
    ) {
        let mut touched = Touched::new();
        let promised = state.incoming.came(source, order);
        if last {
            state.incoming.holds_none(source);
        }
        let Some((slot, bits)) = promised else {
            drop(state);
            return self.count_malformed();
        };
        arrived.bits = bits;
        self.met(state, source, slot, arrived, &mut touched);
        touched.iter().for_each(|lane| lane.flush());
    }

    /// Gives a receive its message, or has the message's body pulled first.
    pub(super) fn met(
        self: &Arc<Self>,
        state: MutexGuard<'_, State>,
        source: Source,
        slot: Arc<ReceiveSlot>,
        arrived: Arrived,
        touched: &mut Touched,
    ) {
        let Arrived { bits, len, content, from, number } = arrived;
        match content {
            Content::There(description) if len <= slot.room => {
                let known = state.peers.get(&source);
                let ways = known.map(|known| (known.pulls.clone(), known.near));
                drop(state);
                self.pull(ways, number, slot, (bits, len, description), from);
            }
            content => {
                state.is_done(source, number, true, touched);
                drop(state);
                let body = if let Content::Here(body) = content { body } else { Bytes::new() };
                slot.give(bits, len, body, from);
            }
        }
    }

    /// The receiver of a message is done with it.
    fn done(&self, link: &am::Peer, number: u64, received: bool) {
        let mut state = self.lock();
        let source = state.peer_of(link).map(|(source, _)| source);
        if state.awaited.get(&number).map(|awaited| awaited.to) != source || source.is_none() {
            return self.count_malformed();
        }
        let Some(awaited) = state.awaited.remove(&number) else { return };
        drop(state);
        awaited.slot.fill(match received {
            true => Ok(()),
            false => Err(SendError::NotReceived { peer: peer_text(link.name()), len: awaited.len }),
        });
        drop(awaited.lending);
    }

    /// Takes in what a peer says about windows, held messages and searches.
    fn told(&self, link: &am::Peer, kind: Kind, words: [u64; 3]) {
        let mut touched = Touched::new();
        let mut state = self.lock();
        let Some((source, _)) = state.peer_of(link) else { return self.count_malformed() };
        match kind {
            Kind::Holds | Kind::Offer => state.receiver_told(source, kind, words, &mut touched),
            _ => state.sender_told(source, kind, words, &mut touched),
        }
        drop(state);
        touched.iter().for_each(|lane| lane.flush());
    }
}

impl State {
    /// Has the receiving side hear of held messages.
    fn receiver_told(
        &mut self,
        source: Source,
        kind: Kind,
        [search, order, bits]: [u64; 3],
        touched: &mut Touched,
    ) {
        let Self { incoming, peers, .. } = self;
        let mut reacts = |what| react(peers, touched, what);
        if kind == Kind::Holds {
            return incoming.holds(source, &mut reacts);
        }
        let offer = Offer { search, order, envelope: Envelope { source, bits } };
        incoming.offered(offer, &mut reacts);
    }

    /// Has the sending side hear of its window and of searches, and sends what may be sent then.
    fn sender_told(
        &mut self,
        source: Source,
        kind: Kind,
        [one, bits, mask]: [u64; 3],
        touched: &mut Touched,
    ) {
        let Some(Known { outgoing, lane, .. }) = self.peers.get_mut(&source) else { return };
        match kind {
            Kind::Freed => outgoing.freed(usize::try_from(one).unwrap_or(usize::MAX)),
            Kind::Search => {
                let offer = outgoing.search(one, Pattern::new(None, bits, mask));
                lane.put(offer.map(Frame::Offer));
            }
            Kind::GivenUp => outgoing.give_up(one),
            Kind::Take => {
                let release = outgoing.take(one);
                lane.put(release.map(|release| Frame::taken(one, release)));
            }
            _ => {
                outgoing.leave(one);
            }
        }
        self.releases(source, touched);
    }
}
