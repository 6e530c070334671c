//! The receives of one receiver, and the messages of all its senders.

use super::probes::Probes;
use super::{Offer, Order, SearchId};
use crate::map::Map;
use crate::matching::{Envelope, Matcher, Pattern, Post, PostedId, Source, Taken};

/// Receives of the type `R`, and messages of the type `M` from all senders.
#[derive(Debug)]
pub struct Incoming<R, M> {
    matcher: Matcher<Waiting<R>, Charged<M>>,
    senders: Map<Source, Sender>,
    /// The searches of receives that wait, where senders were asked.
    searches: Map<SearchId, Search>,
    /// How many senders hold messages.
    holders: usize,
    next: SearchId,
    /// Receives that have taken an offered message, which is on its way, with its match bits.
    promised: Map<(Source, Order), (R, u64)>,
    /// The window of each sender: the bytes that its messages may take before receives take them.
    window: usize,
    probes: Probes,
}

/// The error of a message that takes more than its sender's window has left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overrun;

#[derive(Debug)]
struct Waiting<R> {
    search: SearchId,
    receive: R,
}

/// A message that takes a part of its sender's window.
#[derive(Debug)]
struct Charged<M> {
    cost: usize,
    message: M,
}

#[derive(Debug, Default)]
struct Sender {
    /// Whether the sender holds messages, as far as it was heard.
    holds: bool,
    /// The bytes of the window that the sender was not given back.
    used: usize,
    /// The part of `used` that receives have taken.
    owed: usize,
}

#[derive(Debug)]
struct Search {
    pattern: Pattern,
    /// The senders that were asked, and have neither offered a message nor heard that the search is
    /// over.
    asked: Vec<Source>,
}

/// A receive that waits, for whoever cancels it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Receive {
    posted: PostedId,
    search: SearchId,
}

/// The outcome of posting a receive.
#[derive(Debug)]
pub enum Posting<R, M> {
    Met(R, Taken<M>),
    Waits(Receive),
}

/// A message that a probe has found.
#[derive(Debug)]
pub enum Seen<'m, M> {
    /// The message has come.
    Here(Envelope, &'m M),
    /// The message is held by its sender.
    Held(Offer),
}

/// A message to a sender that follows from an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reaction {
    Freed { to: Source, cost: usize },
    Search { to: Source, search: SearchId, pattern: Pattern },
    GivenUp { to: Source, search: SearchId },
    Take { to: Source, order: Order },
    Leave { to: Source, order: Order },
}

impl<R, M> Incoming<R, M> {
    /// A receiver without senders, each of which will have a window of so many bytes.
    pub fn new(window: usize) -> Self {
        Self {
            matcher: Matcher::default(),
            senders: Map::default(),
            searches: Map::default(),
            holders: 0,
            next: 0,
            promised: Map::default(),
            window,
            probes: Probes::default(),
        }
    }

    /// Returns the window of each sender.
    pub fn window(&self) -> usize {
        self.window
    }

    /// Returns how many receives have taken an offered message of a sender that is on its way.
    pub fn promised_of(&self, source: Source) -> usize {
        self.promised.keys().filter(|(of, _)| *of == source).count()
    }

    /// Makes a sender known, whose window is empty.
    pub fn add_sender(&mut self, source: Source) {
        self.senders.insert(source, Sender::default());
    }

    /// Forgets a sender that has gone. Messages that have come from it stay here. Returns the
    /// receives that wait for messages of that sender alone, and those that have taken offered
    /// messages which will not come any more.
    pub fn remove_sender(&mut self, source: Source) -> Vec<R> {
        self.holds_none(source);
        self.senders.remove(&source);
        let promised = self.promised.extract_if(|(of, _), _| *of == source);
        let mut lost: Vec<_> = promised.map(|(_, (receive, _))| receive).collect();
        let of_source = self.matcher.cancel_all(|pattern| pattern.source == Some(source));
        for Waiting { search, receive } in of_source {
            self.searches.remove(&search);
            lost.push(receive);
        }
        lost
    }

    /// Posts a receive, which takes a message that waits, or waits itself and searches the senders
    /// that hold messages.
    pub fn post(
        &mut self,
        pattern: Pattern,
        receive: R,
        react: &mut impl FnMut(Reaction),
    ) -> Posting<R, M> {
        let search = self.next;
        match self.matcher.post(pattern, Waiting { search, receive }) {
            Post::Met(waiting, Taken { order, envelope, message: charged }) => {
                self.owes(envelope.source, charged.cost, react);
                let Charged { message, .. } = charged;
                Posting::Met(waiting.receive, Taken { order, envelope, message })
            }
            Post::Waits(posted) => {
                self.next += 1;
                if self.holders > 0 {
                    self.ask_all(search, pattern, react);
                }
                Posting::Waits(Receive { posted, search })
            }
        }
    }

    /// Has a receive that waits search at all senders that hold messages.
    fn ask_all(&mut self, search: SearchId, pattern: Pattern, react: &mut impl FnMut(Reaction)) {
        let holders = self.senders.iter().filter(|(_, sender)| sender.holds);
        let asked = holders.map(|(&source, _)| source);
        let asked: Vec<_> = asked.filter(|&of| pattern.is_of(of)).collect();
        asked.iter().for_each(|&to| react(Reaction::Search { to, search, pattern }));
        if !asked.is_empty() {
            self.searches.insert(search, Search { pattern, asked });
        }
    }

    /// Takes in a message that was sent within its sender's window. Returns the receive that takes
    /// it, with the message; without one the message waits here.
    ///
    /// # Errors
    /// Returns an error when the sender's window has no room for the message, which is dropped.
    pub fn arrived(
        &mut self,
        envelope: Envelope,
        cost: usize,
        message: M,
        react: &mut impl FnMut(Reaction),
    ) -> Result<Option<(R, Taken<M>)>, Overrun> {
        let sender = self.senders.get_mut(&envelope.source).ok_or(Overrun)?;
        let used = sender.used.checked_add(cost).filter(|&used| used <= self.window);
        sender.used = used.ok_or(Overrun)?;
        self.probes.moves_on(envelope.source);
        match self.matcher.receive_for(envelope) {
            Some(Waiting { search, receive }) => {
                self.ends(search, react);
                self.owes(envelope.source, cost, react);
                let order = self.matcher.next_order();
                Ok(Some((receive, Taken { order, envelope, message })))
            }
            None => {
                self.matcher.put(envelope, Charged { cost, message });
                Ok(None)
            }
        }
    }

    /// Hears that a sender holds messages: receives that wait search for theirs there. Returns
    /// `false` if that was heard before, which breaks the rules.
    pub fn holds(&mut self, source: Source, react: &mut impl FnMut(Reaction)) -> bool {
        let sender = self.senders.get_mut(&source).filter(|sender| !sender.holds);
        let Some(sender) = sender else { return false };
        sender.holds = true;
        self.holders += 1;
        let owed = sender.gives_back();
        if owed > 0 {
            react(Reaction::Freed { to: source, cost: owed });
        }
        for (pattern, waiting) in self.matcher.receives_in_order() {
            if pattern.is_of(source) {
                let search = waiting.search;
                let of = self.searches.entry(search);
                of.or_insert_with(|| Search { pattern, asked: Vec::new() }).asked.push(source);
                react(Reaction::Search { to: source, search, pattern });
            }
        }
        true
    }

    /// Hears that a sender holds no messages any more.
    pub fn holds_none(&mut self, source: Source) {
        let sender = self.senders.get_mut(&source).filter(|sender| sender.holds);
        let Some(sender) = sender else { return };
        sender.holds = false;
        self.holders -= 1;
        self.probes.holds_none(source);
        self.searches.retain(|_, search| {
            search.asked.retain(|&of| of != source);
            !search.asked.is_empty()
        });
    }

    /// Answers the offer of a held message. The message is taken if it belongs to the very receive
    /// that has searched for it. Another receive that takes it may take an earlier message, too,
    /// which is held and was not searched for.
    ///
    /// Returns `false` if the very message was taken before, which breaks the rules.
    pub fn offered(&mut self, offer: Offer, react: &mut impl FnMut(Reaction)) -> bool {
        let Offer { search, order, envelope, .. } = offer;
        let to = envelope.source;
        if self.promised.contains_key(&(to, order)) {
            return false;
        }
        if self.probes.offered(offer) {
            react(Reaction::Leave { to, order });
            return true;
        }
        if let Some(search) = self.searches.get_mut(&search) {
            search.asked.retain(|&of| of != to);
        }
        let first = self.matcher.first_receive_for(envelope);
        if first.is_some_and(|first| first.search == search) {
            let taken = self.matcher.receive_for(envelope);
            self.promised.extend(taken.map(|taken| ((to, order), (taken.receive, envelope.bits))));
            self.ends(search, react);
            self.probes.moves_on(to);
            react(Reaction::Take { to, order });
            return true;
        }
        react(Reaction::Leave { to, order });
        if let Some(again) = self.searches.get_mut(&search) {
            again.asked.push(to);
            react(Reaction::Search { to, search, pattern: again.pattern });
        }
        true
    }

    /// Returns the receive that has taken an offered message which has come now, with the message's
    /// match bits and its place in the order of arrival.
    pub fn came(&mut self, source: Source, order: Order) -> Option<(R, u64, u64)> {
        let (receive, bits) = self.promised.remove(&(source, order))?;
        Some((receive, bits, self.matcher.next_order()))
    }

    /// Takes in a message again that a receive has taken and has not used. Returns the receive that
    /// takes the message, if one waits. Otherwise the message waits where it was in the order of
    /// arrival, and takes no part of its sender's window, which was given back.
    pub fn put_back(
        &mut self,
        Taken { order, envelope, message }: Taken<M>,
        react: &mut impl FnMut(Reaction),
    ) -> Option<(R, Taken<M>)> {
        match self.matcher.receive_for(envelope) {
            Some(Waiting { search, receive }) => {
                self.ends(search, react);
                Some((receive, Taken { order, envelope, message }))
            }
            None => {
                let message = Charged { cost: 0, message };
                self.matcher.put_back(Taken { order, envelope, message });
                None
            }
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
                holders.map(|(&source, _)| source).filter(|&of| pattern.is_of(of)).collect();
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

    /// Takes back a receive that waits. Returns `None` if it has met a message before.
    pub fn cancel(&mut self, receive: Receive, react: &mut impl FnMut(Reaction)) -> Option<R> {
        let Waiting { search, receive } = self.matcher.cancel(receive.posted)?;
        self.ends(search, react);
        Some(receive)
    }

    /// Returns whether a message that a pattern takes has come.
    pub fn has(&mut self, pattern: Pattern) -> bool {
        self.matcher.probe(pattern).is_some()
    }

    /// Returns the senders that receives wait for: those that take messages of one sender alone,
    /// and those whose message is on its way.
    pub fn awaited(&self) -> impl Iterator<Item = Source> {
        let promised = self.promised.keys().map(|&(source, _)| source);
        promised.chain(self.matcher.patterns().filter_map(|pattern| pattern.source))
    }

    /// Takes back all receives that wait.
    pub fn drain_receives(&mut self) -> Vec<R> {
        self.searches.clear();
        let waiting = self.matcher.cancel_all(|_| true);
        waiting.into_iter().map(|waiting| waiting.receive).collect()
    }

    /// Ends the search of a receive that waits no more.
    fn ends(&mut self, search: SearchId, react: &mut impl FnMut(Reaction)) {
        if self.searches.is_empty() {
            return;
        }
        let Some(Search { asked, .. }) = self.searches.remove(&search) else { return };
        asked.into_iter().for_each(|to| react(Reaction::GivenUp { to, search }));
    }

    /// Owes a sender what a receive has taken of its window, and gives it back when that is enough,
    /// or the sender waits for it.
    fn owes(&mut self, source: Source, cost: usize, react: &mut impl FnMut(Reaction)) {
        let Some(sender) = self.senders.get_mut(&source) else { return };
        sender.owed += cost;
        // Half of the window is given back at once, so that few messages say so.
        if sender.holds || sender.owed >= self.window / 2 {
            let cost = sender.gives_back();
            react(Reaction::Freed { to: source, cost });
        }
    }
}

impl Sender {
    /// Takes what the sender is to be given back of its window.
    fn gives_back(&mut self) -> usize {
        let owed = std::mem::take(&mut self.owed);
        self.used -= owed;
        owed
    }
}
