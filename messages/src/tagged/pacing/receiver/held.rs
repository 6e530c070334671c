//! What senders hold: that they do, what is gone of it, and messages that go back among it.

use super::{Back, Charged, Incoming, MOST_BACK, Pairs, Reaction, Waiting};
use crate::matching::{Envelope, Source, Taken};
use crate::tagged::pacing::Order;

impl<R, M> Incoming<R, M> {
    /// Hears that a sender holds messages: receives that wait search for theirs there. Returns
    /// `false` if that was heard before, which breaks the rules.
    pub fn holds(&mut self, source: Source, react: &mut impl FnMut(Reaction)) -> bool {
        let sender = self.senders.get_mut(source).filter(|sender| !sender.holds);
        let Some(sender) = sender else { return false };
        sender.holds = true;
        self.holders += 1;
        let owed = sender.gives_back();
        if owed > 0 {
            react(Reaction::Freed { to: source, cost: owed });
        }
        let receives = self.matcher.receives_in_order().into_iter();
        let of_source = receives.filter(|(pattern, _)| pattern.is_of(source));
        let of_source: Vec<_> =
            of_source.map(|(pattern, waiting)| (waiting.search, pattern)).collect();
        for (search, pattern) in of_source {
            self.ask(source, search, pattern, react);
        }
        true
    }

    /// Hears that a sender holds no messages any more.
    pub fn holds_none(&mut self, source: Source) {
        let sender = self.senders.get_mut(source).filter(|sender| sender.holds);
        let Some(sender) = sender else { return };
        sender.holds = false;
        sender.asked = 0;
        sender.browse = None;
        let unasked = std::mem::take(&mut sender.unasked);
        self.holders -= 1;
        self.probes.holds_none(source);
        let others: Vec<_> = self.senders.values().filter(|of| !of.unasked.is_empty()).collect();
        self.searches.retain(|search, of| {
            let was_asked = of.asked.len();
            of.asked.retain(|&of| of != source);
            let is_over = was_asked > of.asked.len() || unasked.contains(search);
            !is_over || !of.asked.is_empty() || others.iter().any(|of| of.unasked.contains(search))
        });
    }

    /// Hears that a sender has sent all messages before one, or has cancelled them, and holds none
    /// any more if this is the `last`. Returns the receives that take messages which came ahead of
    /// those, and were put back; or `None` if the sender has sent more before, which breaks the
    /// rules.
    pub fn passed(
        &mut self,
        source: Source,
        order: Order,
        last: bool,
        react: &mut impl FnMut(Reaction),
    ) -> Option<Pairs<R, M>> {
        let sender = self.senders.get_mut(source).filter(|sender| order >= sender.reached)?;
        sender.reached = order;
        if last {
            self.holds_none(source);
        }
        self.probes.moves_on(source);
        Some(self.come_back(source, if last { Order::MAX } else { order }, react))
    }

    /// Takes in messages again that were put back while earlier ones were held, up to an order.
    pub(super) fn come_back(
        &mut self,
        source: Source,
        end: Order,
        react: &mut impl FnMut(Reaction),
    ) -> Pairs<R, M> {
        let mut met = Vec::new();
        while let Some(sender) = self.senders.get_mut(source)
            && let Some(first) = sender.back.first_entry().filter(|first| *first.key() < end)
        {
            let (order, Back { envelope, is_told, message, .. }) = first.remove_entry();
            sender.told -= usize::from(is_told);
            met.extend(self.comes_now(envelope, order, message, react));
        }
        self.tell_back(source, react);
        met
    }

    /// Takes in a message as the last that has come, though it takes nothing of the window.
    pub(super) fn comes_now(
        &mut self,
        envelope: Envelope,
        sent: Order,
        message: M,
        react: &mut impl FnMut(Reaction),
    ) -> Option<(R, Taken<M>)> {
        match self.matcher.receive_for(envelope) {
            Some(Waiting { search, receive }) => {
                self.ends(search, react);
                let turn = self.matcher.next_turn(sent);
                Some((receive, Taken { turn, envelope, message }))
            }
            None => {
                self.matcher.put(envelope, sent, Charged { cost: 0, message });
                None
            }
        }
    }

    /// Takes in a message of `len` bytes again that a receive has taken and has not used. Returns
    /// the receive that takes the message, if one waits. Otherwise the message waits in its turn,
    /// and takes no part of its sender's window, which was given back. If its sender still holds
    /// earlier messages, the message takes its place among those.
    pub fn put_back(
        &mut self,
        Taken { turn, envelope, message }: Taken<M>,
        len: usize,
        react: &mut impl FnMut(Reaction),
    ) -> Option<(R, Taken<M>)> {
        let source = envelope.source;
        let sender = self.senders.get_mut(source);
        if let Some(ahead) = sender.filter(|sender| sender.holds && turn.sent >= sender.reached) {
            ahead.back.insert(turn.sent, Back { envelope, len, is_told: false, message });
            self.tell_back(source, react);
            return None;
        }
        match self.matcher.receive_for(envelope) {
            Some(Waiting { search, receive }) => {
                self.ends(search, react);
                Some((receive, Taken { turn, envelope, message }))
            }
            None => {
                let message = Charged { cost: 0, message };
                self.matcher.put_back(Taken { turn, envelope, message });
                None
            }
        }
    }

    /// Tells a sender of messages that were put back, as many as it has room for.
    pub(super) fn tell_back(&mut self, to: Source, react: &mut impl FnMut(Reaction)) {
        let Some(sender) = self.senders.get_mut(to) else { return };
        if sender.told == sender.back.len() || sender.told >= MOST_BACK {
            return;
        }
        let room = MOST_BACK - sender.told;
        let untold = sender.back.iter_mut().filter(|(_, back)| !back.is_told).take(room);
        for (&order, back) in untold {
            back.is_told = true;
            sender.told += 1;
            react(Reaction::Back { to, order, bits: back.envelope.bits, len: back.len });
        }
        if sender.browse.is_some() {
            self.browse(to, react);
        }
    }
}
