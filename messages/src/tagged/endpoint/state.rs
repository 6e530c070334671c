//! The state of an endpoint: its receives, its peers, and what goes to each.

use std::collections::VecDeque;
use std::sync::Arc;

use doorbell_am as am;

use super::arrived::{Arrived, Content, Met, Pull, PullJob};
use super::due::Due;
use super::effects::Effects;
use super::frame::{Frame, Outbound, SendSlot};
use super::lane::{Lane, ShortSend};
use super::partial::Partial;
use super::places::ReceiveId;
use super::receives::Receives;
use crate::matching::map::Map;
use crate::matching::{Envelope, Pattern, Source, Sources};
use crate::tagged::error::{ReceiveError, SendError, Unsent, WhyGone, peer_text};
use crate::tagged::pacing::{Incoming, Outgoing, Reaction, Submitted};
use crate::tagged::pull::{Connections, Lending, NearProcess};
use crate::tagged::striping::Ordered;
use crate::tagged::wire::{OVERHEAD, Packet, Proof};

/// The state of an endpoint: its receives, its peers, and its sends that wait for the peers.
#[derive(Debug)]
pub struct State {
    pub incoming: Incoming<ReceiveId, Arrived>,
    pub receives: Receives,
    /// The peers by their connections, with the device that carries each. A peer has several
    /// connections if both endpoints have several devices, or if both connect at once.
    links: Map<am::Peer, (Source, usize)>,
    pub peers: Sources<Known>,
    /// Messages that have left, and whose senders wait until the receiver is done with them.
    pub awaited: Map<u64, Awaited>,
    /// The peers that have gone, the last first, for errors.
    pub gone: VecDeque<Gone>,
    pub next_number: u64,
    pub is_closed: bool,
    due: Arc<Due<Lane>>,
}

/// A peer, and what goes to it and comes from it.
#[derive(Debug)]
pub struct Known {
    pub outgoing: Outgoing<Outbound>,
    pub lane: Arc<Lane>,
    /// The name by which others connect to the peer, as far as it is known.
    pub name: Option<Box<str>>,
    /// The longest body that is sent to the peer before its receive is known.
    pub eager: usize,
    /// Whether the peer was heard of. Before, nothing is sent to it.
    pub is_greeted: bool,
    /// The number by which further connections are known to be the same peer's, which only the peer
    /// knows; zero if the peer has not connected.
    pub joins: u64,
    /// The number that this endpoint has told when it connected to the peer, by the peer's name;
    /// zero if it has not.
    pub told: u64,
    /// The ways to the connections for long bodies, one for each device that both endpoints have.
    pub pulls: Connections,
    /// The packets that come by several connections.
    pub ordered: Ordered<Packet>,
    /// Whether a thread is handing on packets that have come by several connections.
    pub is_handing_on: bool,
    /// Whether a device that reaches this machine's processes alone leads to the peer.
    pub is_here: bool,
    /// The peer's process, if it is on this machine and this process may read its memory.
    pub near: Option<NearProcess>,
    /// The token that the peer shows when it makes the connection for long bodies by a device, for
    /// each device by which the peer has greeted.
    pub tokens: Vec<Option<u64>>,
    /// The message of which a part has come.
    pub partial: Option<Partial>,
    /// How many long bodies are being pulled from the peer.
    pub pulling: usize,
}

/// A peer that has gone.
#[derive(Debug)]
pub struct Gone {
    pub source: Source,
    pub name: Option<Box<str>>,
    /// The reason why the peer counts as gone.
    pub why: WhyGone,
}

/// A message that has left, and whose sender waits for more.
#[derive(Debug)]
pub struct Awaited {
    pub to: Source,
    pub slot: Arc<SendSlot>,
    pub len: usize,
    /// The body, if the receiver pulls it.
    pub lending: Option<Lending>,
}

impl Known {
    /// Returns whether messages wait for room at the peer, or a message of the peer has come in
    /// part.
    fn is_awaited(&self) -> bool {
        let comes = self.partial.is_some() || self.pulling > 0;
        comes || self.outgoing.holds_any() || self.lane.holds_any()
    }

    /// Returns the token of the peer at a device, which is drawn when the peer greets by the device
    /// for the first time: a peer that greets again and again has one all the same.
    pub fn token(&mut self, device: usize, draw: impl FnOnce() -> u64) -> u64 {
        if self.tokens.len() <= device {
            self.tokens.resize(device + 1, None);
        }
        match self.tokens.get_mut(device) {
            Some(token) => *token.get_or_insert_with(draw),
            None => draw(),
        }
    }

    /// Sends a short message to the peer at once, if nothing holds it up.
    #[inline]
    pub fn try_send_short(&mut self, bits: u64, body: &[u8]) -> ShortSend {
        let cost = OVERHEAD + body.len();
        if body.len() > self.eager || !self.outgoing.has_room(cost) {
            return ShortSend::HeldUp;
        }
        let sent = self.lane.try_send_short(bits, body);
        if sent == ShortSend::Sent {
            self.outgoing.sent(cost);
        }
        sent
    }
}

impl State {
    pub fn new(window: usize, due: Arc<Due<Lane>>) -> Self {
        Self {
            incoming: Incoming::new(window),
            receives: Receives::default(),
            links: Map::default(),
            peers: Sources::default(),
            awaited: Map::default(),
            gone: VecDeque::new(),
            next_number: 1,
            is_closed: false,
            due,
        }
    }

    /// Notes that a connection leads to a peer, by a device.
    pub fn add_link(&mut self, link: &am::Peer, source: Source, device: usize) {
        link.note(source);
        self.links.insert(link.clone(), (source, device));
    }

    /// Forgets a connection that has ended. Returns the peer that it led to, and the device.
    pub fn remove_link(&mut self, link: &am::Peer) -> Option<(Source, usize)> {
        let removed = self.links.remove(link)?;
        link.note(0);
        Some(removed)
    }

    /// Forgets all connections to a peer.
    pub fn remove_links_to(&mut self, source: Source) {
        let removed = self.links.extract_if(|_, (of, _)| *of == source);
        removed.for_each(|(link, _)| link.note(0));
    }

    /// Returns whether a connection leads to a peer.
    pub fn has_link(&self, link: &am::Peer) -> bool {
        self.links.contains_key(link)
    }

    /// Returns the connections to all peers.
    pub fn all_links(&self) -> Vec<am::Peer> {
        self.links.keys().cloned().collect()
    }

    /// Returns the number of a peer by its first connection. A peer that is not known becomes known.
    /// Until it was heard of, nothing is sent to it.
    pub fn meet(&mut self, link: &am::Peer, name: Option<&str>, eager: usize) -> Source {
        if let Some(&(source, _)) = self.links.get(link) {
            return source;
        }
        let source = self.peers.draw();
        self.incoming.add_sender(source);
        let known = Known {
            outgoing: Outgoing::new(0),
            lane: Lane::new(link.clone(), name, self.incoming.window(), &self.due),
            name: name.map(Box::from),
            eager,
            is_greeted: false,
            joins: 0,
            told: 0,
            pulls: Vec::new(),
            ordered: Ordered::default(),
            is_handing_on: false,
            is_here: false,
            near: None,
            tokens: Vec::new(),
            partial: None,
            pulling: 0,
        };
        self.peers.insert(source, known);
        self.add_link(link, source, 0);
        source
    }

    /// Returns the peer that this endpoint has connected to, or is connecting to, by a name. A peer
    /// that merely says that the name is its own is not found.
    pub fn connected_by(&self, name: &str) -> Option<(Source, &Known)> {
        let is_it = |known: &Known| known.told != 0 && known.name.as_deref() == Some(name);
        self.peers.iter().find(|(_, known)| is_it(known))
    }

    /// Returns the peer that this endpoint has told a number when it connected to it.
    pub fn told(&self, number: u64) -> Option<Source> {
        let is_it = |known: &Known| number != 0 && known.told == number;
        self.peers.iter().find(|(_, known)| is_it(known)).map(|(source, _)| source)
    }

    /// Returns the peer that has connected to this endpoint by another connection than the one of
    /// `but`, and of which the peer at the other end of that one has given proof, having been
    /// greeted with the number `told`.
    pub fn proved(&self, but: Source, proof: Proof, told: u64) -> Option<Source> {
        let is_it = |known: &Known| {
            known.is_greeted && known.joins != 0 && Proof::new(known.joins, told) == proof
        };
        let mut others = self.peers.iter().filter(|&(source, _)| source != but);
        others.find(|(_, known)| is_it(known)).map(|(source, _)| source)
    }

    /// Remembers a peer that has gone. The last 1,024 are remembered.
    pub fn remember(&mut self, gone: Gone) {
        self.gone.truncate(1023);
        self.gone.push_front(gone);
    }

    /// Returns the name of a peer, also if it has gone not long ago, as far as the name is known.
    pub fn name_of(&self, source: Source) -> Option<&str> {
        match self.peers.get(source) {
            Some(known) => known.name.as_deref(),
            None => self.gone_of(source)?.name.as_deref(),
        }
    }

    /// Returns the name of a peer for errors.
    pub fn peer_text(&self, source: Source) -> Box<str> {
        peer_text(self.name_of(source))
    }

    fn gone_of(&self, source: Source) -> Option<&Gone> {
        self.gone.iter().find(|gone| gone.source == source)
    }

    /// Returns why a peer counts as gone.
    fn why_gone(&self, source: Source) -> WhyGone {
        self.gone_of(source).map_or(WhyGone::LongAgo, |gone| gone.why.clone())
    }

    /// Returns the error of a message of `len` bytes to a peer that has gone.
    #[cold]
    pub fn unsent(&self, to: Source, len: usize) -> SendError {
        let (peer, what) = (self.peer_text(to), Unsent::Bytes(len));
        if self.is_closed {
            return SendError::Closed { peer, what };
        }
        SendError::Gone { peer, what, why: self.why_gone(to) }
    }

    /// Returns why a receive can't be posted, if it can't.
    pub fn refuses(&mut self, pattern: Pattern) -> Option<ReceiveError> {
        if self.is_closed {
            return Some(ReceiveError::Closed);
        }
        let source = pattern.source?;
        // Messages of a peer that has gone may still be here.
        let is_known = self.peers.contains(source);
        if is_known || self.incoming.has(pattern) {
            return None;
        }
        let (peer, why) = (self.peer_text(source), self.why_gone(source));
        Some(ReceiveError::PeerGone { peer, why })
    }

    /// Returns the connections to the peers that something is awaited of: a message that a receive
    /// takes of that peer alone, the rest of a message, room, or the end of a send.
    pub fn awaited_links(&self) -> Vec<am::Peer> {
        let of_sends = self.awaited.values().map(|awaited| awaited.to);
        let of_peers = self.peers.iter().filter(|(_, known)| known.is_awaited());
        let mut sources: Vec<_> = of_sends.chain(self.incoming.awaited()).collect();
        sources.extend(of_peers.map(|(source, _)| source));
        sources.sort_unstable();
        let links = self.links.iter();
        let awaited = links.filter(|(_, (source, _))| sources.binary_search(source).is_ok());
        awaited.map(|(link, _)| link.clone()).collect()
    }

    /// Enters a message whose sender waits until the receiver is done with it, and returns the
    /// message's number.
    pub fn awaits(&mut self, awaited: Awaited) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        self.awaited.insert(number, awaited);
        number
    }

    /// Submits a message to a peer. Returns the order of the message if it is held.
    pub fn submit(&mut self, source: Source, bits: u64, outbound: Outbound) -> Option<u64> {
        let Known { outgoing, lane, .. } = self.peers.get_mut(source)?;
        let cost = OVERHEAD + if outbound.long { 0 } else { outbound.len };
        let len = outbound.len;
        match outgoing.submit(Envelope { source: 0, bits }, (cost, len), outbound) {
            Submitted::Send(outbound) => {
                lane.put([Frame::Eager { bits, last: false, outbound }]);
                None
            }
            Submitted::Holds { order, first, offer } => {
                lane.put(first.then_some(Frame::Holds));
                lane.put(offer.map(Frame::Answer));
                Some(order)
            }
        }
    }

    /// Sends what may be sent to a peer, because its window has grown or an offer was answered.
    pub fn releases(&mut self, source: Source, effects: &mut Effects) {
        let Some(Known { outgoing, lane, .. }) = self.peers.get_mut(source) else { return };
        while let Some(release) = outgoing.release() {
            lane.put([Frame::released(release)]);
        }
        lane.put(outgoing.next_answer().map(Frame::Answer));
        effects.send(lane);
    }

    /// Takes a receive off those that wait for messages. Returns whether the receive was one of them.
    pub fn cancels(&mut self, id: ReceiveId, effects: &mut Effects) -> bool {
        let Self { incoming, peers, receives, .. } = self;
        let mut reacts = |what| react(peers, effects, what);
        let waits = receives.waits_as(id);
        waits.and_then(|receive| incoming.cancel(receive, &mut reacts)).is_some()
    }

    /// Gives a receive its message, or has the message's body pulled first. If the receive was
    /// dropped meanwhile, the message goes to another, or waits.
    ///
    /// Nothing can come between the meeting and this, since the state is locked: else a receive
    /// that is dropped then could leave its message behind a later one.
    pub fn meets(&mut self, receive: ReceiveId, mut met: Met, effects: &mut Effects) {
        let (source, len) = (met.envelope.source, met.message.len);
        let fits = || self.receives.room(receive).is_some_and(|room| len <= room);
        match &met.message.content {
            Content::There(_) if fits() => return self.pulls(receive, met, effects),
            Content::Coming(pull) if fits() => {
                let pull = pull.clone();
                self.receives.is_pulled(receive, &pull);
                match pull.is_wanted(receive, met) {
                    Ok(()) => return,
                    Err(has_come) => met = has_come,
                }
            }
            _ => {}
        }
        let is_here = matches!(met.message.content, Content::Here(_) | Content::InPlace);
        let number = met.message.number;
        met.message.number = if is_here { 0 } else { number };
        match self.receives.put(receive, Ok(met)) {
            Ok(waker) => {
                effects.wake(waker);
                if is_here {
                    self.is_done(source, number, true, effects);
                }
            }
            Err(Ok(mut met)) => {
                met.message.number = number;
                self.put_back(met, effects);
            }
            Err(Err(_)) => {}
        }
    }

    /// Has the body of a message pulled for a receive.
    fn pulls(&mut self, receive: ReceiveId, mut met: Met, effects: &mut Effects) {
        let pull = Arc::<Pull>::default();
        let content = Content::Coming(pull.clone());
        let content = std::mem::replace(&mut met.message.content, content);
        let Content::There(description) = content else { return };
        let (source, len) = (met.envelope.source, met.message.len);
        let number = std::mem::take(&mut met.message.number);
        self.peers.get_mut(source).into_iter().for_each(|known| known.pulling += 1);
        self.receives.is_pulled(receive, &pull);
        let waits = pull.is_wanted(receive, met);
        debug_assert!(waits.is_ok(), "the pull has not begun");
        let (description, target) = (*description, self.receives.target(receive));
        effects.pull(PullJob { pull, source, number, len, description, target });
    }

    /// Takes in a message again that a receive has got and that no program has seen.
    pub fn put_back(&mut self, met: Met, effects: &mut Effects) {
        if self.is_closed {
            return;
        }
        let (len, Self { incoming, peers, .. }) = (met.message.len, &mut *self);
        let met = incoming.put_back(met, len, &mut |what| react(peers, effects, what));
        if let Some((receive, met)) = met {
            self.meets(receive, met, effects);
        }
    }

    /// Notes that a long body was pulled, or can't be, and tells the sender.
    pub fn pulled(&mut self, source: Source, number: u64, received: bool, effects: &mut Effects) {
        self.peers.get_mut(source).into_iter().for_each(|known| known.pulling -= 1);
        self.is_done(source, number, received, effects);
    }

    /// Tells the sender of a message that the receiver is done with it, if the sender waits for
    /// that.
    pub fn is_done(&self, source: Source, number: u64, received: bool, effects: &mut Effects) {
        if number != 0
            && let Some(Known { lane, .. }) = self.peers.get(source)
        {
            lane.put([Frame::Done { number, received }]);
            effects.send(lane);
        }
    }
}

/// Puts a reaction on the lane to its peer.
pub fn react(peers: &Sources<Known>, effects: &mut Effects, what: Reaction) {
    let (to, frame) = match what {
        Reaction::Freed { to, cost } => (to, Frame::Freed(cost)),
        Reaction::Search { to, search, pattern } => (to, Frame::Search { search, pattern }),
        Reaction::Browse { to, search, from } => (to, Frame::Browse { search, from }),
        Reaction::GivenUp { to, search } => (to, Frame::GivenUp(search)),
        Reaction::Back { to, order, bits, len } => (to, Frame::Back { order, bits, len }),
        Reaction::Take { to, order } => (to, Frame::Take(order)),
        Reaction::Leave { to, order } => (to, Frame::Leave(order)),
    };
    if let Some(Known { lane, .. }) = peers.get(to) {
        lane.put([frame]);
        effects.send(lane);
    }
}
