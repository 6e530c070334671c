//! The messages of one sender to one receiver: which are sent, and which are held.

use std::collections::BTreeMap;

use super::{Order, SearchId};
use crate::map::Map;
use crate::matching::{Envelope, Matcher, MessageId, Pattern, Post, PostedId};

/// The messages to one receiver that are held, and the room for others.
#[derive(Debug)]
pub struct Outgoing<M> {
    /// The bytes of the window at the receiver that are free.
    window: usize,
    /// The bytes of the whole window at the receiver.
    most: usize,
    next: Order,
    held: BTreeMap<Order, (MessageId, Held<M>)>,
    /// The envelopes of held messages, and the searches that take none of these.
    matcher: Matcher<SearchId, Order>,
    /// The searches that take no held message, by their places in the matcher.
    idle: Map<SearchId, (Pattern, PostedId)>,
    /// The searches that may take a held message, in the order in which their receives were posted.
    searches: BTreeMap<SearchId, Pattern>,
    /// The message that was offered and not answered yet. Messages behind it are not sent
    /// meanwhile.
    offered: Option<Order>,
}

/// The most searches of a receiver that are kept, each of some 200 bytes. So a receiver may have as
/// many receives waiting while a sender holds messages.
const MOST_SEARCHES: usize = 1 << 16;

/// The error of a receiver with more searches than may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManySearches;

/// A message that is held.
#[derive(Debug)]
pub struct Held<M> {
    pub envelope: Envelope,
    /// The bytes that the message takes of the window.
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
        Self {
            window,
            most: window,
            next: 0,
            held: BTreeMap::new(),
            matcher: Matcher::default(),
            idle: Map::default(),
            searches: BTreeMap::new(),
            offered: None,
        }
    }

    /// Makes the window wider.
    pub fn widen(&mut self, by: usize) {
        self.window = self.window.saturating_add(by);
        self.most = self.most.saturating_add(by);
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

    /// Returns whether any message is held.
    pub fn holds_any(&self) -> bool {
        !self.held.is_empty()
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
        let id = self.matcher.put(envelope, order);
        self.held.insert(order, (id, Held { envelope, cost, len, message }));
        while let Some(search) = self.matcher.receive_for(envelope) {
            let idle = self.idle.remove(&search);
            self.searches.extend(idle.map(|(pattern, _)| (search, pattern)));
        }
        Submitted::Holds { order, first, offer: self.next_offer() }
    }

    /// Gives back what receives have taken. Returns whether messages had taken so much.
    pub fn freed(&mut self, cost: usize) -> bool {
        let window = self.window.checked_add(cost).filter(|&window| window <= self.most);
        self.window = window.unwrap_or(self.window);
        window.is_some()
    }

    /// Returns the first held message, to be sent now, if the window has room for it. To be called
    /// until it returns none whenever the window has grown or an offer was answered.
    pub fn release(&mut self) -> Option<Release<M>> {
        let (&order, (_, first)) = self.held.first_key_value()?;
        let cost = first.cost;
        if self.offered == Some(order) || self.window < cost {
            return None;
        }
        self.window -= cost;
        self.remove(order)
    }

    /// Searches for a message that a pattern takes. Returns the offer of the first if one is held,
    /// and keeps the search for messages that will be held if not.
    ///
    /// # Errors
    /// Returns an error when the receiver has too many searches.
    pub fn search(
        &mut self,
        search: SearchId,
        pattern: Pattern,
    ) -> Result<Option<Offer>, TooManySearches> {
        if self.held.is_empty() {
            return Ok(None);
        }
        if self.searches.len() + self.idle.len() >= MOST_SEARCHES {
            return Err(TooManySearches);
        }
        self.give_up(search);
        self.searches.insert(search, pattern);
        Ok(self.next_offer())
    }

    /// Drops a search whose receive waits no more.
    pub fn give_up(&mut self, search: SearchId) {
        self.searches.remove(&search);
        if let Some((_, posted)) = self.idle.remove(&search) {
            self.matcher.cancel(posted);
        }
    }

    /// Takes the offered message, to be sent now in spite of the window: a receive waits for it.
    /// Returns `None` if that message is not offered.
    pub fn take(&mut self, order: Order) -> Option<Release<M>> {
        self.offered.take_if(|offered| *offered == order)?;
        self.remove(order)
    }

    fn remove(&mut self, order: Order) -> Option<Release<M>> {
        let (id, held) = self.held.remove(&order)?;
        self.matcher.remove(id);
        let last = self.held.is_empty();
        if last {
            // The receiver knows by the last message that none is held any more, and searches anew
            // when it hears of the next.
            self.searches.clear();
            self.idle.clear();
            self.matcher.cancel_all(|_| true);
        }
        Some(Release { held, last })
    }

    /// Leaves the offered message where it is, since no receive waits for it any more. Returns
    /// whether that message was offered.
    pub fn leave(&mut self, order: Order) -> bool {
        self.offered.take_if(|offered| *offered == order).is_some()
    }

    /// Returns the next offer, if a search takes a held message and no other offer is unanswered.
    /// To be called whenever an offer was answered.
    pub fn next_offer(&mut self) -> Option<Offer> {
        while self.offered.is_none() && !self.held.is_empty() {
            let (search, pattern) = self.searches.pop_first()?;
            if let Some((envelope, &order)) = self.matcher.probe(pattern) {
                let len = self.held.get(&order).map_or(0, |(_, held)| held.len);
                self.offered = Some(order);
                return Some(Offer { search, order, envelope, len });
            }
            if let Post::Waits(posted) = self.matcher.post(pattern, search) {
                self.idle.insert(search, (pattern, posted));
            }
        }
        None
    }

    /// Takes a held message back, unless it is offered, or is not held any more. Returns whether no
    /// other is held then, too, which the receiver is to hear.
    pub fn cancel(&mut self, order: Order) -> Option<(Held<M>, bool)> {
        if self.offered == Some(order) {
            return None;
        }
        let Release { held, last } = self.remove(order)?;
        Some((held, last))
    }

    /// Takes all held messages out, because the receiver has gone.
    pub fn drain(&mut self) -> impl Iterator<Item = Held<M>> {
        std::mem::take(&mut self.held).into_values().map(|(_, held)| held)
    }

    /// Returns how many messages are held.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.held.len()
    }
}
