//! Several connections to one peer, over the several devices of both.

use doorbell_am as am;
use futures_util::future::select_all;

use super::frame::Rest;
use crate::tagged::striping::Sent;
use crate::tagged::wire::{ACKNOWLEDGED, Packet, STRIPED};

/// The connections to one peer, in the order of the devices that carry them.
#[derive(Debug)]
pub struct Rails {
    links: Vec<Option<am::Peer>>,
    /// The place of the connection that is tried first.
    turn: usize,
    sent: Sent<Packet>,
    /// The acknowledgement that is due, if one is.
    acknowledgement: Option<u64>,
}

/// A packet that was sent.
pub struct SentPacket {
    /// The rest of the message that it was the beginning of, if it was one.
    pub rest: Option<Rest>,
}

/// The most packets that are kept until the peer acknowledges them. The credits of eight
/// connections allow half as many under way.
const MOST_KEPT: usize = 1 << 16;

impl Rails {
    /// The connections to a peer with which this endpoint has `count` devices in common.
    pub fn new(count: usize) -> Self {
        Self { links: vec![None; count], turn: 0, sent: Sent::default(), acknowledgement: None }
    }

    /// Adds the connection at a place.
    pub fn add(&mut self, place: usize, link: &am::Peer) {
        if let Some(place) = self.links.get_mut(place) {
            *place = Some(link.clone());
        }
    }

    /// Notes that a connection has ended: what it may not have carried to its end is sent again.
    /// Returns whether there is another connection.
    pub fn lose(&mut self, link: &am::Peer) -> bool {
        if let Some(place) = self.links.iter().position(|of| of.as_ref() == Some(link)) {
            self.links[place] = None;
            self.sent.ended(place);
        }
        self.links.iter().any(Option::is_some)
    }

    /// Takes in how many packets the peer has got. Returns whether that many were sent.
    pub fn acknowledged(&mut self, next: u64) -> bool {
        self.sent.acknowledged(next)
    }

    /// Has the peer told how many packets have come.
    pub fn acknowledge(&mut self, next: u64) {
        self.acknowledgement = Some(next);
    }

    /// Returns whether the peer has acknowledged less than a peer that keeps the rules does. So
    /// what is kept for a peer is bounded.
    pub fn is_ignored(&self) -> bool {
        self.sent.kept() > MOST_KEPT
    }

    /// Returns whether there is something to send beside new packets.
    pub fn has_more(&self) -> bool {
        self.sent.has_again() || self.acknowledgement.is_some()
    }

    /// Returns the longest payload that all connections carry.
    /// Returns a function of the length of a body, which says how many bytes of it a packet carries.
    pub fn part_of(&self) -> impl Fn(usize) -> usize + use<> {
        let longest = self.links.iter().flatten().map(am::Peer::longest_payload).min().unwrap_or(0);
        move |len| am::part_of(len, 5, longest)
    }

    /// Returns the connections that have not ended.
    pub fn links(&self) -> Vec<am::Peer> {
        self.links.iter().flatten().cloned().collect()
    }

    /// Waits until one of several connections has a credit. Returns `false` if all have ended.
    pub async fn wait_for_credit(links: Vec<am::Peer>) -> bool {
        let mut waits: Vec<_> = links.iter().map(|link| Box::pin(link.credit())).collect();
        while !waits.is_empty() {
            let (credit, _, others) = select_all(waits).await;
            // The credit is given back here, and taken again by whoever sends.
            if credit.is_ok() {
                return true;
            }
            waits = others;
        }
        false
    }

    /// Sends one packet, which is a packet that was lost with its connection, an acknowledgement,
    /// or the next packet of the lane. Returns `None` if no connection has a credit.
    pub fn try_send(
        &mut self,
        next: impl FnOnce() -> Option<(Packet, Option<Rest>)>,
    ) -> Option<SentPacket> {
        for step in 0..self.links.len() {
            let place = (self.turn + step) % self.links.len();
            let Some(link) = &self.links[place] else { continue };
            let Ok(Some(credit)) = link.try_credit() else { continue };
            self.turn = place + 1;
            if let Some(next) = self.acknowledgement.take() {
                let sent = credit.request(ACKNOWLEDGED, next);
                if sent.is_err() {
                    self.acknowledgement = Some(next);
                }
                return Some(SentPacket { rest: None });
            }
            let (sequence, packet, rest) = match self.sent.again(place) {
                Some((sequence, packet)) => (sequence, packet, None),
                None => {
                    let (packet, rest) = next()?;
                    (self.sent.keep(place, packet.clone()), packet, rest)
                }
            };
            let Packet { kind, words: [one, two, three], payload } = packet;
            let words = [sequence, kind as u64, one, two, three];
            // A connection that has ended is noticed by an event, upon which the packet is sent
            // again.
            if let Err(why) = credit.request_with(STRIPED, words, &payload) {
                tracing::debug!(%why, "a packet was not sent by one of several connections");
            }
            return Some(SentPacket { rest });
        }
        None
    }
}
