//! The messages of one sender to one receiver: which are sent, and which are held.

use std::collections::BTreeMap;

use super::{Order, SearchId};
use crate::matching::{Envelope, Pattern};

/// The messages to one receiver that are held, and the room for others.
#[derive(Debug)]
pub struct Outgoing<M> {
    /// What messages may still take at the receiver.
    window: usize,
    next: Order,
    held: BTreeMap<Order, Held<M>>,
    /// The message that was offered and not answered yet. Messages behind it are not sent
    /// meanwhile.
    offered: Option<Order>,
    /// Searches that have found nothing yet, in the order in which their receives were posted.
    searches: BTreeMap<SearchId, Pattern>,
}

/// The most searches of a receiver that are kept. A receiver that has more receives waiting than
/// that, for messages of a sender that holds some, gets these only as the window has room for them.
const MOST_SEARCHES: usize = 1 << 18;

/// A message that is held.
#[derive(Debug)]
pub struct Held<M> {
    pub envelope: Envelope,
    /// What the message takes of the window.
    pub cost: usize,
    /// The length of the message's body.
    pub len: usize,
    pub message: M,
}

/// A message that was held, and is to be sent now.
#[derive(Debug)]
pub struct Release<M> {
    pub held: Held<M>,
    /// Whether no other message is held, which the receiver is to hear with the message.
    pub last: bool,
}

/// The outcome of submitting a message.
#[derive(Debug)]
pub enum Submitted<M> {
    /// The message is to be sent now.
    Send(M),
    /// The message is held, with its place in the order. `first` tells that none was held before,
    /// which the receiver is to hear; and `offer` that a search which had found nothing takes the
    /// message.
    Holds { order: Order, first: bool, offer: Option<Offer> },
}

/// An offer of a held message to the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offer {
    pub search: SearchId,
    pub order: Order,
    pub envelope: Envelope,
    /// The length of the message's body.
    pub len: usize,
}

impl<M> Outgoing<M> {
    /// A sender whose messages may take `window` at the receiver before receives take them.
    pub fn new(window: usize) -> Self {
        Self { window, next: 0, held: BTreeMap::new(), offered: None, searches: BTreeMap::new() }
    }

    /// Returns whether a message that takes `cost` of the window would be sent now.
    #[inline]
    pub fn has_room(&self, cost: usize) -> bool {
        self.held.is_empty() && self.window >= cost
    }

    /// Notes that a message was sent for which there [was room](Self::has_room).
    #[inline]
    pub fn sent(&mut self, cost: usize) {
        self.window -= cost;
        self.next += 1;
    }

    /// Submits a message of `len` bytes, which takes `cost` of the window, behind those before it.
    pub fn submit(
        &mut self,
        envelope: Envelope,
        (cost, len): (usize, usize),
        message: M,
    ) -> Submitted<M> {
        let first = self.held.is_empty();
        if self.has_room(cost) {
            self.sent(cost);
            return Submitted::Send(message);
        }
        let order = self.next;
        self.next += 1;
        self.held.insert(order, Held { envelope, cost, len, message });
        Submitted::Holds { order, first, offer: self.next_offer() }
    }

    /// Gives back what receives have taken.
    pub fn freed(&mut self, cost: usize) {
        self.window = self.window.saturating_add(cost);
    }

    /// Returns the first held message, to be sent now, if the window has room for it. To be called
    /// until it returns none whenever the window has grown or an offer was answered.
    pub fn release(&mut self) -> Option<Release<M>> {
        let first = self.held.first_entry()?;
        if self.offered == Some(*first.key()) || self.window < first.get().cost {
            return None;
        }
        let held = first.remove();
        self.window -= held.cost;
        Some(self.released(held))
    }

    /// Searches for a message that a pattern takes. Returns the offer of the first if one is held,
    /// and keeps the search for messages that will be held if not.
    pub fn search(&mut self, search: SearchId, pattern: Pattern) -> Option<Offer> {
        if self.held.is_empty() || self.searches.len() >= MOST_SEARCHES {
            return None;
        }
        self.searches.insert(search, pattern);
        self.next_offer()
    }

    /// Drops a search whose receive waits no more.
    pub fn give_up(&mut self, search: SearchId) {
        self.searches.remove(&search);
    }

    /// Takes the offered message, to be sent now in spite of the window: a receive waits for it.
    /// Returns `None` if that message is not offered.
    pub fn take(&mut self, order: Order) -> Option<Release<M>> {
        self.offered.take_if(|offered| *offered == order)?;
        let held = self.held.remove(&order)?;
        Some(self.released(held))
    }

    fn released(&mut self, held: Held<M>) -> Release<M> {
        let last = self.held.is_empty();
        if last {
            // The receiver knows by the last message that none is held any more, and searches anew
            // when it hears of the next.
            self.searches.clear();
        }
        Release { held, last }
    }

    /// Leaves the offered message where it is, since no receive waits for it any more. Returns
    /// whether that message was offered.
    pub fn leave(&mut self, order: Order) -> bool {
        self.offered.take_if(|offered| *offered == order).is_some()
    }

    /// Returns the next offer, if a search takes a held message and no other offer is unanswered.
    /// To be called whenever an offer was answered.
    pub fn next_offer(&mut self) -> Option<Offer> {
        if self.offered.is_some() {
            return None;
        }
        let offer = self.searches.iter().find_map(|(&search, pattern)| {
            let mut held = self.held.iter();
            let (&order, held) = held.find(|(_, held)| pattern.takes(held.envelope))?;
            Some(Offer { search, order, envelope: held.envelope, len: held.len })
        })?;
        self.searches.remove(&offer.search);
        self.offered = Some(offer.order);
        Some(offer)
    }

    /// Takes a held message back, unless it is offered, or is not held any more. Returns whether no
    /// other is held then, too, which the receiver is to hear.
    pub fn cancel(&mut self, order: Order) -> Option<(Held<M>, bool)> {
        if self.offered == Some(order) {
            return None;
        }
        let held = self.held.remove(&order)?;
        let none = self.held.is_empty();
        if none {
            self.searches.clear();
        }
        Some((held, none))
    }

    /// Takes all held messages out, because the receiver has gone.
    pub fn drain(&mut self) -> impl Iterator<Item = Held<M>> {
        std::mem::take(&mut self.held).into_values()
    }

    /// Returns how many messages are held.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.held.len()
    }
}
