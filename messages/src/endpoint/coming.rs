//! What comes from peers: messages, their ends, and what is said about windows.

use std::sync::{Arc, MutexGuard};

use bytes::Bytes;
use doorbell_am as am;

use super::arrived::{Arrived, Begins, Content, Sender};
use super::lane::{Frame, Outbound};
use super::partial::Partial;
use super::shared::Shared;
use super::slots::ReceiveSlot;
use super::state::{Known, State, Touched, react};
use crate::error::{SendError, peer_text};
use crate::limits::Limits;
use crate::matching::{Envelope, Source};
use crate::pacing::{Incoming, Outgoing, Reaction};
use crate::wire::{Description, Heading, OVERHEAD};

impl Shared {
    /// Takes in the beginning of a message, which may be all of it.
    pub fn begins(
        self: &Arc<Self>,
        link: &am::Peer,
        begins: Begins,
        heading: Heading,
        number: u64,
        payload: Bytes,
    ) {
        let mut state = self.lock();
        let Some(&source) = state.links.get(link) else { return self.count_malformed() };
        if heading.long || payload.len() == heading.len {
            return self.comes(state, (source, link), begins, heading, number, payload);
        }
        let most = self.limits.eager.max(Limits::LEAST_WINDOW);
        let known = state.peers.get_mut(&source);
        match known.filter(|_| payload.len() < heading.len && heading.len <= most) {
            Some(known) => {
                known.partial = Some(Partial::new(begins, heading, number, &payload));
            }
            None => self.count_malformed(),
        }
    }

    /// Takes in more of a message.
    pub fn continues(self: &Arc<Self>, link: &am::Peer, more: &[u8]) {
        let mut state = self.lock();
        let source = state.links.get(link).copied();
        let known = source.and_then(|source| Some((source, state.peers.get_mut(&source)?)));
        let Some((source, known)) = known else { return self.count_malformed() };
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
    pub fn done(&self, link: &am::Peer, number: u64, received: bool) {
        let mut state = self.lock();
        let source = state.links.get(link).copied();
        let is_to = |to: Source| Some(to) == source;
        if !state.awaited.get(&number).is_some_and(|awaited| is_to(awaited.to)) {
            drop(state);
            return self.count_malformed();
        }
        let Some(awaited) = state.awaited.remove(&number) else { return };
        drop(state);
        let peer = || peer_text(link.name());
        awaited.slot.fill(match received {
            true => Ok(()),
            false => Err(SendError::NotReceived { peer: peer(), len: awaited.len }),
        });
        drop(awaited.lending);
    }

    /// Takes in a message about the window, held messages or searches.
    pub fn told(&self, link: &am::Peer, tells: impl FnOnce(&mut Told<'_>)) {
        let mut touched = Touched::new();
        let mut state = self.lock();
        let Some(&source) = state.links.get(link) else { return self.count_malformed() };
        tells(&mut Told { state: &mut state, source, touched: &mut touched });
        drop(state);
        touched.iter().for_each(|lane| lane.flush());
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
        let State { incoming, peers, .. } = &mut *self.state;
        tells(incoming, &mut |what| react(peers, self.touched, what));
    }

    /// Has the sending side react, and sends what may be sent then.
    pub fn outgoing(&mut self, tells: impl FnOnce(&mut Outgoing<Outbound>) -> Option<Frame>) {
        let Some(Known { outgoing, lane, .. }) = self.state.peers.get_mut(&self.source) else {
            return;
        };
        lane.put(tells(outgoing));
        self.state.releases(self.source, self.touched);
    }
}
