//! Offers of held messages: which are taken, and for which receives.

use super::{Back, Incoming, Pairs, Reaction};
use crate::matching::{Envelope, Pattern, Source, Taken};
use crate::tagged::pacing::{Offer, Order, SearchId};

impl<R, M> Incoming<R, M> {
    /// Answers the offer of a held message. The message is taken if it belongs to the very receive
    /// that has searched for it. Another receive that takes it may take an earlier message, too,
    /// which is held and was not searched for. A browse has seen all earlier ones.
    ///
    /// Returns `false` if the very message was taken before, which breaks the rules.
    pub fn offered(
        &mut self,
        offer: Offer,
        react: &mut impl FnMut(Reaction),
    ) -> Option<Pairs<R, M>> {
        let Offer { search, order, envelope, .. } = offer;
        let to = envelope.source;
        if self.promised.contains_key(&(to, order)) {
            return None;
        }
        if self.probes.offered(offer) {
            react(Reaction::Leave { to, order });
            return Some(Vec::new());
        }
        let sender = self.senders.get_mut(to)?;
        if let Some(browse) = sender.browse.as_mut().filter(|browse| browse.search == search) {
            let is_old = std::mem::replace(&mut browse.is_old, false);
            browse.is_asked = true;
            let taken = !is_old && self.is_first(envelope, order) && self.promise(offer, react);
            if !taken {
                react(Reaction::Leave { to, order });
            }
            // Taking the message may have ended the browse.
            if self.senders.get(to).is_some_and(|sender| sender.browse.is_some()) {
                let from = match (is_old, taken) {
                    (true, _) => 0,
                    (false, true) => order,
                    (false, false) => order.saturating_add(1),
                };
                react(Reaction::Browse { to, search, from });
            }
            return Some(Vec::new());
        }
        let Some(of) = self.searches.get_mut(&search) else {
            react(Reaction::Leave { to, order });
            return Some(Vec::new());
        };
        let pattern = of.pattern;
        let Some(place) = of.asked.iter().position(|&of| of == to) else {
            react(Reaction::Leave { to, order });
            return Some(Vec::new());
        };
        of.asked.swap_remove(place);
        let first = self.matcher.first_receive_for(envelope);
        let is_its_own = first.is_some_and(|first| first.search == search);
        if is_its_own && self.is_first(envelope, order) && self.promise(offer, react) {
            self.answered(to, react);
            return Some(Vec::new());
        }
        react(Reaction::Leave { to, order });
        if let Some(met) = self.untold_before(to, search, pattern, order, react) {
            self.answered(to, react);
            return Some(vec![met]);
        }
        if let Some(again) = self.searches.get_mut(&search) {
            again.asked.push(to);
            react(Reaction::Search { to, search, pattern });
        }
        Some(Vec::new())
    }

    /// Returns whether the receive that takes an offered message takes none that came before, was
    /// put back, and that the sender did not know of when it made the offer.
    pub(super) fn is_first(&self, envelope: Envelope, order: Order) -> bool {
        let Some(sender) = self.senders.get(envelope.source) else { return false };
        let Some(first) = self.matcher.first_receive_for(envelope) else { return false };
        let pattern = self.searches.get(&first.search).map(|of| of.pattern);
        let mut before = sender.back.range(..order);
        sender.back.is_empty()
            || pattern.is_none_or(|pattern| !before.any(|(_, back)| pattern.takes(back.envelope)))
    }

    /// Promises an offered message to the first receive that takes it.
    pub(super) fn promise(&mut self, offer: Offer, react: &mut impl FnMut(Reaction)) -> bool {
        let Offer { order, envelope, .. } = offer;
        let to = envelope.source;
        let Some(met) = self.matcher.promise_for(envelope) else { return false };
        let search = met.receive.search;
        self.promised.insert((to, order), (met, envelope.bits));
        self.ends(search, react);
        self.probes.moves_on(to);
        react(Reaction::Take { to, order });
        true
    }

    /// Returns a receive with the message that it takes of those that were put back, and that the
    /// sender could not be told of: the sender has offered a later one, and so holds none that the
    /// receive takes before.
    pub(super) fn untold_before(
        &mut self,
        source: Source,
        search: SearchId,
        pattern: Pattern,
        order: Order,
        react: &mut impl FnMut(Reaction),
    ) -> Option<(R, Taken<M>)> {
        let sender = self.senders.get_mut(source)?;
        let mut before = sender.back.range(..order);
        let (&order, back) = before.find(|(_, back)| pattern.takes(back.envelope))?;
        let first = self.matcher.first_receive_for(back.envelope)?.search;
        if back.is_told || first != search {
            return None;
        }
        let Back { envelope, message, .. } = sender.back.remove(&order)?;
        self.comes_now(envelope, order, message, react)
    }

    /// Returns the receive that has taken an offered message which has come now, with the message's
    /// envelope and turn beside the `message`.
    pub fn came<N>(&mut self, source: Source, order: Order, message: N) -> Option<(R, Taken<N>)> {
        let (met, bits) = self.promised.remove(&(source, order))?;
        let sender = self.senders.get_mut(source)?;
        if sender.reached == order {
            sender.reached = order.wrapping_add(1);
        }
        let turn = self.matcher.next_turn(order);
        let taken = Taken { turn, envelope: Envelope { source, bits }, message };
        Some((met.receive.receive, taken))
    }

    /// Returns the receive that has taken the offer of a message which was put back, with the
    /// message.
    pub fn came_again(
        &mut self,
        source: Source,
        order: Order,
        react: &mut impl FnMut(Reaction),
    ) -> Option<(R, Taken<M>)> {
        let sender = self.senders.get_mut(source)?;
        let back = sender.back.remove(&order)?;
        sender.told -= usize::from(back.is_told);
        let taken = self.came(source, order, back.message);
        self.tell_back(source, react);
        taken
    }
}
