//! The messages of one sender to one receiver: which are sent, and which are held.

use std::collections::BTreeMap;

use super::{Order, SearchId};
use crate::matching::map::Map;
use crate::matching::{Envelope, Matcher, MessageId, Pattern, Post, PostedId, Taken, Turn};

/// The messages to one receiver that are held, and the room for others.
#[derive(Debug)]
pub struct Outgoing<M> {
    /// The bytes of the window at the receiver that are free.
    window: usize,
    /// The bytes of the whole window at the receiver.
    most: usize,
    next: Order,
    /// The order of the message that the receiver takes for the next within the window, unless the
    /// receiver knows that no message is held.
    expected: Option<Order>,
    held: BTreeMap<Order, (MessageId, Held<M>)>,
    /// How many of the held messages are [back](Self::back) from the receiver.
    back: usize,
    /// The envelopes of held messages, and the searches that take none of these.
    matcher: Matcher<SearchId, Order>,
    /// The searches that take no held message, by their places in the matcher.
    idle: Map<SearchId, (Pattern, PostedId)>,
    /// The searches that may take a held message, in the order in which their receives were posted.
    searches: BTreeMap<SearchId, Pattern>,
    browse: Option<Browse>,
    /// The message that was offered and not answered yet. Messages behind it are not sent
    /// meanwhile.
    offered: Option<Order>,
}

/// A look of the receiver's at all held messages from one on.
#[derive(Debug)]
struct Browse {
    search: SearchId,
    from: Order,
    /// Whether the receiver was told that no message is held from there on.
    is_told: bool,
}

/// The most searches of a receiver that are kept, each of some 200 bytes. A receiver that keeps the
/// rules has half as many under way.
pub const MOST_SEARCHES: usize = 1 << 16;

/// The most messages that may be [back](Outgoing::back) from a receiver, each of some 400 bytes.
pub const MOST_BACK: usize = 1 << 16;

/// The error of a receiver that has more searches, or gives back more messages, than may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooMany;

/// A message that is held.
#[derive(Debug)]
pub struct Held<M> {
    pub envelope: Envelope,
    /// The bytes that the message takes of the window.
    pub cost: usize,
    /// The length of the message's body.
    pub len: usize,
    /// The message, or `None` if the receiver has it already, and holds its place here alone.
    pub message: Option<M>,
}

/// A message, or a word about messages, that is to be sent now.
#[derive(Debug)]
pub enum Release<M> {
    /// A message that the window has room for. `last` tells that no other message is held, which
    /// the receiver is to hear with the message.
    Sent { envelope: Envelope, message: M, last: bool },
    /// The word that all messages before `order` were sent or cancelled, where the receiver could not
    /// count them.
    /// `last` tells that no message is held.
    Passed { order: Order, last: bool },
}

/// A held message whose offer was taken.
#[derive(Debug)]
pub struct Take<M> {
    /// The message, or `None` if the receiver has it already.
    pub message: Option<M>,
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
    Holds { order: Order, first: bool, offer: Option<Answer> },
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

/// An answer to the receiver's searches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    Offer(Offer),
    /// A browse has seen all messages that are held.
    Seen(SearchId),
}

/// A held message as it is matched: in its place among all, whenever it has come there.
fn by_order(envelope: Envelope, order: Order) -> Taken<Order> {
    Taken { turn: Turn { arrival: 0, sent: order }, envelope, message: order }
}

impl<M> Outgoing<M> {
    /// A sender whose messages may take `window` at the receiver before receives take them.
    pub fn new(window: usize) -> Self {
        Self {
            window,
            most: window,
            next: 0,
            expected: None,
            held: BTreeMap::new(),
            back: 0,
            matcher: Matcher::default(),
            idle: Map::default(),
            searches: BTreeMap::new(),
            browse: None,
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
        debug_assert_eq!(self.expected, None, "the receiver knows that no message is held");
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
        if self.has_room(cost) {
            self.sent(cost);
            return Submitted::Send(message);
        }
        let (order, first) = (self.next, self.expected.is_none());
        self.next += 1;
        self.expected.get_or_insert(order);
        let id = self.matcher.insert(by_order(envelope, order));
        self.held.insert(order, (id, Held { envelope, cost, len, message: Some(message) }));
        self.is_new(envelope);
        Submitted::Holds { order, first, offer: self.next_answer() }
    }

    /// Has searches that had found nothing look at a message that is held from now on.
    fn is_new(&mut self, envelope: Envelope) {
        while let Some(search) = self.matcher.receive_for(envelope) {
            let idle = self.idle.remove(&search);
            self.searches.extend(idle.map(|(pattern, _)| (search, pattern)));
        }
        self.browse.iter_mut().for_each(|browse| browse.is_told = false);
    }

    /// Gives back what receives have taken. Returns whether messages had taken so much.
    pub fn freed(&mut self, cost: usize) -> bool {
        let window = self.window.checked_add(cost).filter(|&window| window <= self.most);
        self.window = window.unwrap_or(self.window);
        window.is_some()
    }

    /// Returns what is to be sent next of the held messages: the first, if the window has room for
    /// it, or that all before it are gone. To be called until it returns none whenever the window
    /// has grown, an offer was answered, or a message was cancelled.
    pub fn release(&mut self) -> Option<Release<M>> {
        let expected = self.expected?;
        let Some((&order, (_, first))) = self.held.first_key_value() else {
            self.expected = None;
            return Some(Release::Passed { order: self.next, last: true });
        };
        if self.offered == Some(order) || self.window < first.cost {
            return None;
        }
        if first.message.is_some() && order != expected {
            self.expected = Some(order);
            return Some(Release::Passed { order, last: false });
        }
        let Held { envelope, cost, message, .. } = self.remove(order)?;
        self.window -= cost;
        self.expected = Some(order + 1);
        let last = self.is_last();
        Some(match message {
            Some(message) => Release::Sent { envelope, message, last },
            None => Release::Passed { order: order + 1, last },
        })
    }

    /// Returns whether the receiver learns from what is sent now that no message is held any more.
    fn is_last(&mut self) -> bool {
        self.expected.take_if(|next| self.held.is_empty() && *next == self.next).is_some()
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
    ) -> Result<Option<Answer>, TooMany> {
        if self.held.is_empty() {
            return Ok(None);
        }
        self.give_up(search);
        if self.searches.len() + self.idle.len() >= MOST_SEARCHES {
            return Err(TooMany);
        }
        self.searches.insert(search, pattern);
        Ok(self.next_answer())
    }

    /// Has the receiver look at all held messages from an order on, when no search takes one. The
    /// first is offered. If there is none, the receiver is told so, and the next message that will
    /// be held is offered. A receiver has one browse at a time.
    pub fn browse(&mut self, search: SearchId, from: Order) -> Option<Answer> {
        if !self.held.is_empty() {
            self.browse = Some(Browse { search, from, is_told: false });
        }
        self.next_answer()
    }

    /// Drops a search whose receive waits no more.
    pub fn give_up(&mut self, search: SearchId) {
        self.browse.take_if(|browse| browse.search == search);
        self.searches.remove(&search);
        if let Some((_, posted)) = self.idle.remove(&search) {
            self.matcher.cancel(posted);
        }
    }

    /// Takes the offered message, to be sent now in spite of the window: a receive waits for it.
    /// Returns `None` if that message is not offered.
    pub fn take(&mut self, order: Order) -> Option<Take<M>> {
        self.offered.take_if(|offered| *offered == order)?;
        let message = self.remove(order)?.message;
        // Of a message that is the first, the receiver knows that none before it is held.
        self.expected.iter_mut().filter(|next| **next == order).for_each(|next| *next += 1);
        Some(Take { message, last: self.is_last() })
    }

    /// Has a message take its place among those that are held, although the receiver has it: it
    /// came because its offer was taken, and its receive was dropped. Returns whether the receiver
    /// keeps the rules. A message before which none is held any more is passed over, of which the
    /// receiver hears anyway.
    ///
    /// # Errors
    /// Returns an error when the receiver has given back too many messages.
    pub fn back(&mut self, order: Order, bits: u64, len: usize) -> Result<bool, TooMany> {
        if order >= self.next || self.held.contains_key(&order) {
            return Ok(false);
        }
        if self.held.is_empty() || self.expected.is_none_or(|expected| order < expected) {
            return Ok(true);
        }
        if self.back >= MOST_BACK {
            return Err(TooMany);
        }
        self.back += 1;
        let envelope = Envelope { source: 0, bits };
        let id = self.matcher.insert(by_order(envelope, order));
        self.held.insert(order, (id, Held { envelope, cost: 0, len, message: None }));
        self.is_new(envelope);
        Ok(true)
    }

    fn remove(&mut self, order: Order) -> Option<Held<M>> {
        let (id, held) = self.held.remove(&order)?;
        self.back -= usize::from(held.message.is_none());
        self.matcher.remove(id);
        if self.held.is_empty() {
            // The receiver hears that none is held any more, and searches anew when it hears of
            // the next.
            self.searches.clear();
            self.idle.clear();
            self.browse = None;
            self.matcher.cancel_all(|_| true);
        }
        Some(held)
    }

    /// Leaves the offered message where it is, since no receive waits for it any more. Returns
    /// whether that message was offered.
    pub fn leave(&mut self, order: Order) -> bool {
        self.offered.take_if(|offered| *offered == order).is_some()
    }

    /// Returns the next offer, if a search takes a held message and no other offer is unanswered,
    /// or that a browse is at its end. To be called whenever an offer was answered.
    pub fn next_answer(&mut self) -> Option<Answer> {
        if self.offered.is_some() || self.held.is_empty() {
            return None;
        }
        while let Some((search, pattern)) = self.searches.pop_first() {
            if let Some((envelope, &order)) = self.matcher.probe(pattern) {
                return Some(self.offer(search, order, envelope));
            }
            if let Post::Waits(posted) = self.matcher.post(pattern, search) {
                self.idle.insert(search, (pattern, posted));
            }
        }
        let Browse { search, from, is_told } = self.browse.as_mut().filter(|of| !of.is_told)?;
        let (search, from) = (*search, *from);
        let Some((&order, (_, held))) = self.held.range(from..).next() else {
            *is_told = true;
            return Some(Answer::Seen(search));
        };
        let envelope = held.envelope;
        self.browse = None;
        Some(self.offer(search, order, envelope))
    }

    fn offer(&mut self, search: SearchId, order: Order, envelope: Envelope) -> Answer {
        let len = self.held.get(&order).map_or(0, |(_, held)| held.len);
        self.offered = Some(order);
        Answer::Offer(Offer { search, order, envelope, len })
    }

    /// Takes a held message back, unless it is offered, or is not held any more.
    pub fn cancel(&mut self, order: Order) -> Option<M> {
        let (_, held) = self.held.get(&order)?;
        if self.offered == Some(order) || held.message.is_none() {
            return None;
        }
        self.remove(order)?.message
    }

    /// Takes all held messages out, because the receiver has gone.
    pub fn drain(&mut self) -> impl Iterator<Item = M> {
        std::mem::take(&mut self.held).into_values().filter_map(|(_, held)| held.message)
    }

    /// Returns how many messages are held.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.held.len()
    }
}
