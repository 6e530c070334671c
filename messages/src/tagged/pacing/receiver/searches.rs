//! The searches of receives that wait, and of probes, at senders that hold messages.

use super::{Browse, Incoming, Reaction, Search, Seen};
use crate::matching::{Pattern, Source};
use crate::tagged::pacing::SearchId;

impl<R, M> Incoming<R, M> {
    /// Has a receive that waits search at all senders that hold messages.
    pub(super) fn ask_all(
        &mut self,
        search: SearchId,
        pattern: Pattern,
        react: &mut impl FnMut(Reaction),
    ) {
        if self.holders == 0 {
            return;
        }
        let holders = self.senders.iter().filter(|(_, sender)| sender.holds);
        let holders: Vec<_> = holders.map(|(of, _)| of).filter(|&of| pattern.is_of(of)).collect();
        holders.into_iter().for_each(|to| self.ask(to, search, pattern, react));
    }

    /// Has a receive that waits search at a sender, at once or as soon as the sender was asked less.
    pub(super) fn ask(
        &mut self,
        to: Source,
        search: SearchId,
        pattern: Pattern,
        react: &mut impl FnMut(Reaction),
    ) {
        let Some(sender) = self.senders.get_mut(to) else { return };
        let new = || Search { pattern, asked: Vec::new() };
        let of = self.searches.entry(search).or_insert_with(new);
        if sender.asked < self.most_asked && sender.unasked.is_empty() {
            sender.asked += 1;
            of.asked.push(to);
            react(Reaction::Search { to, search, pattern });
        } else {
            sender.unasked.insert(search);
            self.browse(to, react);
        }
    }

    /// Begins a browse through the messages of a sender, or has the one under way begin anew.
    pub(super) fn browse(&mut self, to: Source, react: &mut impl FnMut(Reaction)) {
        let Some(sender) = self.senders.get_mut(to) else { return };
        match &mut sender.browse {
            Some(browse) if browse.is_asked => browse.is_old = true,
            _ => {
                let search = self.next;
                self.next += 1;
                sender.browse = Some(Browse { search, is_asked: true, is_old: false });
                react(Reaction::Browse { to, search, from: 0 });
            }
        }
    }

    /// Hears that a sender has nothing to answer to a search any more, and asks it the next.
    pub(super) fn answered(&mut self, to: Source, react: &mut impl FnMut(Reaction)) {
        let Some(sender) = self.senders.get_mut(to) else { return };
        sender.asked = sender.asked.saturating_sub(1);
        while sender.asked < self.most_asked
            && let Some(search) = sender.unasked.pop_first()
        {
            let Some(of) = self.searches.get_mut(&search) else { continue };
            sender.asked += 1;
            of.asked.push(to);
            react(Reaction::Search { to, search, pattern: of.pattern });
        }
        sender.ends_browse(to, react);
    }

    /// Ends the search of a receive that waits no more.
    pub(super) fn ends(&mut self, search: SearchId, react: &mut impl FnMut(Reaction)) {
        if !self.again.is_empty() {
            self.again.remove(&search);
        }
        if self.searches.is_empty() {
            return;
        }
        let Some(Search { asked, .. }) = self.searches.remove(&search) else { return };
        for (to, sender) in self.senders.iter_mut() {
            if sender.unasked.remove(&search) {
                sender.ends_browse(to, react);
            }
        }
        for to in asked {
            react(Reaction::GivenUp { to, search });
            self.answered(to, react);
        }
    }

    /// Looks for a message that a receive of a pattern would meet now, and leaves it where it is.
    /// If no message has come, senders that hold some are asked, and a later probe sees what they
    /// answer.
    pub fn probe(
        &mut self,
        pattern: Pattern,
        react: &mut impl FnMut(Reaction),
    ) -> Option<Seen<'_, M>> {
        // Asked twice, since the borrow of an answer would last until the end of this function.
        if self.matcher.probe(pattern).is_some() {
            let here = self.matcher.probe(pattern);
            return here.map(|(envelope, charged)| Seen::Here(envelope, &charged.message));
        }
        if self.holders == 0 {
            return None;
        }
        if let Some(offer) = self.probes.take(pattern) {
            return Some(Seen::Held(offer));
        }
        if !self.probes.is_asked(pattern) {
            let holders = self.senders.iter().filter(|(_, sender)| sender.holds);
            let asked: Vec<_> =
                holders.map(|(source, _)| source).filter(|&of| pattern.is_of(of)).collect();
            if !asked.is_empty() {
                let search = self.next;
                self.next += 1;
                asked.iter().for_each(|&to| react(Reaction::Search { to, search, pattern }));
                if let Some((search, senders)) = self.probes.ask(search, pattern, asked) {
                    senders.iter().for_each(|&to| react(Reaction::GivenUp { to, search }));
                }
            }
        }
        None
    }

    /// Hears that a browse of a sender's messages has come to its end.
    pub fn seen(&mut self, to: Source, search: SearchId, react: &mut impl FnMut(Reaction)) {
        let Some(sender) = self.senders.get_mut(to) else { return };
        let browse = sender.browse.as_mut().filter(|browse| browse.search == search);
        let Some(browse) = browse else { return };
        browse.is_asked = std::mem::replace(&mut browse.is_old, false);
        if browse.is_asked {
            react(Reaction::Browse { to, search, from: 0 });
        }
    }
}
