//! What comes from peers: messages, their ends, and what is said about windows.

use std::sync::{Arc, MutexGuard};

use bytes::Bytes;
use doorbell_am as am;

use super::arrived::{Arrived, Begins, Content};
use super::effects::Effects;
use super::frame::Frame;
use super::partial::Partial;
use super::shared::Shared;
use super::state::{Known, State, react};
use crate::matching::{Envelope, Pattern, Source, Sources};
use crate::tagged::error::{SendError, Unsent};
use crate::tagged::limits::Limits;
use crate::tagged::pacing::Offer;
use crate::tagged::wire::{Description, Heading, Kind, OVERHEAD, Packet};

impl Shared {
    /// Takes in a packet of a peer. Returns whether a task was woken, as all of these do; or `None`
    /// if the peer is not known.
    pub fn takes(self: &Arc<Self>, source: Source, packet: Packet) -> Option<bool> {
        let state = self.lock();
        let is_known = state.peers.contains(source);
        is_known.then(|| self.takes_from(state, source, packet))
    }

    /// Takes in a packet of a peer. If the peer has gone meanwhile, the packet is dropped.
    fn takes_from(
        self: &Arc<Self>,
        state: MutexGuard<'_, State>,
        source: Source,
        Packet { kind, words, payload }: Packet,
    ) -> bool {
        let [one, two, three] = words;
        match kind {
            Kind::Eager => {
                let begins = Begins::Sent { bits: one };
                self.begins(state, (source, begins), Heading::from_word(two), three, payload)
            }
            Kind::Taken => {
                let begins = Begins::Taken { order: one };
                self.begins(state, (source, begins), Heading::from_word(two), three, payload)
            }
            Kind::More => self.continues(state, source, &payload),
            Kind::Done => self.done(state, source, one, two == 1),
            Kind::Connect => {
                drop(state);
                self.connects_again(source, one);
                false
            }
            _ => self.told(state, source, kind, words, &payload),
        }
    }

    /// Takes in a packet that has come by one of several connections, with its sequence number.
    /// Whichever thread has the next packet in order hands on all that are ready. Returns `None` if
    /// the peer is not known.
    pub fn takes_in_order(
        self: &Arc<Self>,
        source: Source,
        sequence: u64,
        packet: Packet,
    ) -> Option<bool> {
        let mut locked = self.lock();
        let state = &mut *locked;
        let known = state.peers.get_mut(source)?;
        // What the sender's window has room for, and what has taken offers of the sender's.
        let most = || {
            let longest = self.limits.eager.max(Limits::LEAST_WINDOW);
            let offered = state.incoming.promised_of(source).saturating_mul(longest);
            state.incoming.window().saturating_add(offered)
        };
        if !known.ordered.comes(sequence, (packet.bulk(), packet), Packet::kept, most) {
            // Without the packet nothing behind it could be handed on.
            let lane = known.lane.clone();
            drop(locked);
            lane.cut_off();
            return Some(self.malformed());
        }
        if let Some(next) = known.ordered.acknowledgement() {
            known.lane.acknowledge(next);
        }
        let lane = known.lane.clone();
        if std::mem::replace(&mut known.is_handing_on, true) {
            return Some(false);
        }
        let mut woke = false;
        while let Some(known) = locked.peers.get_mut(source) {
            let Some(packet) = known.ordered.next() else {
                known.is_handing_on = false;
                break;
            };
            // By the peer, since the connection may have ended, and the packet counts all the same.
            woke |= self.takes_from(locked, source, packet);
            locked = self.lock();
        }
        drop(locked);
        Some(lane.flush() || woke)
    }

    /// Takes in the beginning of a message, which may be all of it.
    fn begins(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        (source, begins): (Source, Begins),
        heading: Heading,
        number: u64,
        payload: Bytes,
    ) -> bool {
        let Some(known) = state.peers.get_mut(source) else { return false };
        if heading.long || payload.len() == heading.len {
            let payload = Payload::InItsBuffer(payload);
            return self.comes(state, (source, begins), heading, number, payload);
        }
        let most = self.limits.eager.max(Limits::LEAST_WINDOW);
        if payload.len() > heading.len || heading.len > most {
            return self.malformed();
        }
        known.partial = Some(Partial::new(begins, heading, number, &payload));
        false
    }

    /// Takes in more of a message.
    fn continues(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        source: Source,
        more: &[u8],
    ) -> bool {
        let Some(known) = state.peers.get_mut(source) else { return false };
        if !known.partial.as_mut().is_some_and(|partial| partial.add(more)) {
            known.partial = None;
            return self.malformed();
        }
        let Some(whole) = known.partial.take_if(|partial| partial.is_whole()) else {
            return false;
        };
        let Partial { begins, heading, number, .. } = whole;
        self.comes(state, (source, begins), heading, number, Payload::Own(whole.into_bytes()))
    }

    /// Takes in a whole message, or the description of a long one.
    fn comes(
        self: &Arc<Self>,
        state: MutexGuard<'_, State>,
        (source, begins): (Source, Begins),
        Heading { len, last, long }: Heading,
        number: u64,
        payload: Payload,
    ) -> bool {
        let (payload, keep): (_, Keep) = match payload {
            Payload::InItsBuffer(payload) => (payload, Arrived::kept),
            Payload::Own(payload) => (payload, |arrived| arrived),
        };
        let content = match long {
            true => Description::from_bytes(payload, len).map(|there| Content::There(there.into())),
            false => Some(Content::Here(payload)),
        };
        let Some(content) = content else { return self.malformed() };
        let arrived = Arrived { len, content, number };
        match begins {
            Begins::Sent { bits } => {
                self.arrived(state, Envelope { source, bits }, last, arrived, keep)
            }
            Begins::Taken { order } => self.taken(state, source, last, order, arrived),
        }
    }

    /// Takes in a message that was sent within its sender's window.
    fn arrived(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        envelope: Envelope,
        last: bool,
        arrived: Arrived,
        keep: Keep,
    ) -> bool {
        let (mut effects, source) = (Effects::default(), envelope.source);
        let cost =
            OVERHEAD + if let Content::Here(body) = &arrived.content { body.len() } else { 0 };
        let State { incoming, peers, .. } = &mut *state;
        if last {
            incoming.holds_none(source);
            drop_searches(peers, source);
        }
        let mut reacts = |what| react(peers, &mut effects, what);
        match incoming.arrived(envelope, cost, arrived, keep, &mut reacts) {
            Ok(Some((receive, met))) => state.meets(receive, met, &mut effects),
            Ok(None) => {}
            Err(_) => {
                self.malformed();
            }
        }
        drop(state);
        self.finish(effects)
    }

    /// Takes in a message whose offer was taken.
    fn taken(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        source: Source,
        last: bool,
        order: u64,
        arrived: Arrived,
    ) -> bool {
        let mut effects = Effects::default();
        let promised = state.incoming.came(source, order, arrived);
        let Some((receive, met)) = promised else {
            drop(state);
            return self.malformed();
        };
        if last {
            state.incoming.holds_none(source);
            drop_searches(&state.peers, source);
        }
        state.meets(receive, met, &mut effects);
        drop(state);
        self.finish(effects)
    }

    /// The receiver of a message is done with it.
    fn done(
        &self,
        mut state: MutexGuard<'_, State>,
        source: Source,
        number: u64,
        received: bool,
    ) -> bool {
        if !state.peers.contains(source) {
            return false;
        }
        if state.awaited.get(&number).map(|awaited| awaited.to) != Some(source) {
            return self.malformed();
        }
        let Some(awaited) = state.awaited.remove(&number) else { return false };
        let outcome = match received {
            true => Ok(()),
            false => {
                let (peer, what) = (state.peer_text(source), Unsent::Bytes(awaited.len));
                Err(SendError::NotReceived { peer, what })
            }
        };
        drop(state);
        let woke = awaited.slot.fill(outcome);
        drop(awaited.lending);
        woke
    }

    /// Takes in what a peer says about windows, held messages and searches.
    fn told(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        source: Source,
        kind: Kind,
        words: [u64; 3],
        payload: &[u8],
    ) -> bool {
        let mut effects = Effects::default();
        if !state.peers.contains(source) {
            return false;
        }
        let keeps_rules = match kind {
            Kind::Holds | Kind::Offer | Kind::Passed | Kind::Again | Kind::Seen => {
                state.receiver_told(source, kind, words, payload, &mut effects).is_some()
            }
            _ => state.sender_told(source, kind, words, &mut effects),
        };
        drop(state);
        if !keeps_rules {
            self.malformed();
        }
        self.finish(effects)
    }

    /// Passes over what has come by a connection of no known peer. It is malformed, unless the
    /// connection has ended meanwhile.
    pub fn unknown(&self, link: &am::Peer) {
        if link.ending().is_none() {
            self.malformed();
        }
    }
}

impl State {
    /// Has the receiving side hear of messages that a sender holds, or holds no more. Returns
    /// `None` if the peer breaks the rules.
    fn receiver_told(
        &mut self,
        source: Source,
        kind: Kind,
        [one, two, bits]: [u64; 3],
        payload: &[u8],
        effects: &mut Effects,
    ) -> Option<()> {
        let Self { incoming, peers, .. } = self;
        let mut reacts = |what| react(peers, effects, what);
        let met = match kind {
            Kind::Holds => {
                return incoming.holds(source, &mut reacts).then_some(());
            }
            Kind::Offer => {
                let len = u64::from_be_bytes(*payload.first_chunk()?) as usize;
                let envelope = Envelope { source, bits };
                let offer = Offer { search: one, order: two, envelope, len };
                incoming.offered(offer, &mut reacts)?
            }
            Kind::Passed => {
                let last = two == 1;
                let met = incoming.passed(source, one, last, &mut reacts)?;
                if last {
                    drop_searches(peers, source);
                }
                met
            }
            Kind::Again => {
                let met = incoming.came_again(source, one, &mut reacts)?;
                if two == 1 {
                    incoming.holds_none(source);
                    drop_searches(peers, source);
                }
                vec![met]
            }
            _ => {
                incoming.seen(source, one, &mut reacts);
                Vec::new()
            }
        };
        met.into_iter().for_each(|(receive, met)| self.meets(receive, met, effects));
        Some(())
    }

    /// Has the sending side hear of its window and of searches, and sends what may be sent then.
    /// Returns whether the peer keeps the rules.
    fn sender_told(
        &mut self,
        source: Source,
        kind: Kind,
        [one, two, three]: [u64; 3],
        effects: &mut Effects,
    ) -> bool {
        let Some(Known { outgoing, lane, .. }) = self.peers.get_mut(source) else { return false };
        let mut keeps_rules = Ok(true);
        match kind {
            Kind::Freed => {
                keeps_rules = Ok(outgoing.freed(usize::try_from(one).unwrap_or(usize::MAX)));
            }
            Kind::Search => match outgoing.search(one, Pattern::new(None, two, three)) {
                Ok(answer) => lane.put(answer.map(Frame::Answer)),
                Err(too_many) => keeps_rules = Err(too_many),
            },
            Kind::Browse => lane.put(outgoing.browse(one, two).map(Frame::Answer)),
            Kind::Back => {
                let len = usize::try_from(three).unwrap_or(usize::MAX);
                keeps_rules = outgoing.back(one, two, len);
            }
            Kind::GivenUp => outgoing.give_up(one),
            Kind::Take => {
                let taken = outgoing.take(one);
                lane.put(taken.map(|taken| Frame::taken(one, taken)));
            }
            _ => {
                outgoing.leave(one);
            }
        }
        let Ok(keeps_rules) = keeps_rules else {
            effects.cut_off(lane);
            return false;
        };
        self.releases(source, effects);
        keeps_rules
    }
}

/// A payload that has come.
enum Payload {
    /// A payload in the buffer in which it has come, of which it may be a small part.
    InItsBuffer(Bytes),
    Own(Bytes),
}

/// Makes a message what is kept of it while it waits for a receive.
type Keep = fn(Arrived) -> Arrived;

/// Drops searches that were not sent to a peer, which holds no messages any more.
fn drop_searches(peers: &Sources<Known>, source: Source) {
    if let Some(known) = peers.get(source) {
        known.lane.drop_searches();
    }
}
