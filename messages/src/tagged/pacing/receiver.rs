//! The receives of one receiver, and the messages of all its senders.

use std::collections::{BTreeMap, BTreeSet};

use super::probes::Probes;
use super::sender::{MOST_BACK, MOST_SEARCHES, Offer};
use super::{Order, SearchId};
use crate::matching::map::Map;
use crate::matching::{Envelope, Matcher, Met, Pattern, Post, PostedId, Source, Sources, Taken};

/// Receives of the type `R`, and messages of the type `M` from all senders.
#[derive(Debug)]
pub struct Incoming<R, M> {
    matcher: Matcher<Waiting<R>, Charged<M>>,
    senders: Sources<Sender<M>>,
    /// The searches of receives that wait, where senders were asked or are to be asked.
    searches: Map<SearchId, Search>,
    /// How many senders hold messages.
    holders: usize,
    next: SearchId,
    /// Receives that have taken offered messages which are on their way.
    promised: Map<(Source, Order), Promised<R>>,
    /// Receives that were [posted again](Matcher::post_again), by their searches.
    again: Map<SearchId, PostedId>,
    /// The window of each sender: the bytes that its messages may take before receives take them.
    window: usize,
    /// The most searches that a sender is asked at a time.
    most_asked: usize,
    probes: Probes,
}

/// The most searches that a sender is asked at a time, beside probes. Those of receives which were
/// posted later wait here. When the sender holds no messages any more, searches that are on their
/// way to it count at the sender beside those that follow, so it has room for twice as many.
const MOST_ASKED: usize = MOST_SEARCHES / 2 - 64;

/// The error of a message that takes more than its sender's window has left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overrun;

/// A receive that has taken an offered message, with the message's match bits.
type Promised<R> = (Met<Waiting<R>>, u64);

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

#[derive(Debug)]
struct Sender<M> {
    /// Whether the sender holds messages, as far as it was heard.
    holds: bool,
    /// The bytes of the window that the sender was not given back.
    used: usize,
    /// The part of `used` that receives have taken.
    owed: usize,
    /// The order of the next message that comes within the window. All before it have come, were
    /// cancelled, or came because their offers were taken.
    reached: Order,
    /// Messages that came because their offers were taken, and whose receives were dropped, while
    /// earlier ones are held. The sender has them among those that it holds.
    back: BTreeMap<Order, Back<M>>,
    /// How many of these the sender was told of.
    told: usize,
    /// How many searches the sender was asked.
    asked: usize,
    /// The searches that the sender is to be asked as soon as it has fewer.
    unasked: BTreeSet<SearchId>,
    /// The browse through the sender's messages that finds those of unasked searches.
    browse: Option<Browse>,
}

impl<M> Default for Sender<M> {
    fn default() -> Self {
        Self {
            holds: false,
            used: 0,
            owed: 0,
            reached: 0,
            back: BTreeMap::new(),
            told: 0,
            asked: 0,
            unasked: BTreeSet::new(),
            browse: None,
        }
    }
}

/// A message that its sender has among those that it holds, although it is here.
#[derive(Debug)]
struct Back<M> {
    envelope: Envelope,
    len: usize,
    is_told: bool,
    message: M,
}

#[derive(Debug)]
struct Browse {
    search: SearchId,
    /// Whether the sender has an answer to give. If not, it offers the next message that it holds.
    is_asked: bool,
    /// Whether the browse is to begin anew, since receives were posted or messages went back that
    /// its beginning has not seen.
    is_old: bool,
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

/// Receives with the messages that they have met.
pub type Pairs<R, M> = Vec<(R, Taken<M>)>;

/// A message to a sender that follows from an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reaction {
    Freed { to: Source, cost: usize },
    Search { to: Source, search: SearchId, pattern: Pattern },
    Browse { to: Source, search: SearchId, from: Order },
    GivenUp { to: Source, search: SearchId },
    Take { to: Source, order: Order },
    Leave { to: Source, order: Order },
    Back { to: Source, order: Order, bits: u64, len: usize },
}

impl<R, M> Incoming<R, M> {
    /// A receiver without senders, each of which will have a window of so many bytes.
    pub fn new(window: usize) -> Self {
        Self {
            matcher: Matcher::default(),
            senders: Sources::default(),
            searches: Map::default(),
            holders: 0,
            next: 0,
            promised: Map::default(),
            again: Map::default(),
            window,
            most_asked: MOST_ASKED,
            probes: Probes::default(),
        }
    }

    /// Has senders asked at most so many searches at a time.
    #[cfg(test)]
    pub fn asks_at_most(&mut self, most: usize) {
        self.most_asked = most;
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
    /// receives that wait for messages of that sender alone, and those that meet messages by this.
    /// A receive whose message was on its way waits for another, if it takes those of others, too.
    pub fn remove_sender(
        &mut self,
        source: Source,
        react: &mut impl FnMut(Reaction),
    ) -> (Vec<R>, Pairs<R, M>) {
        self.holds_none(source);
        let mut met = self.come_back(source, Order::MAX, react);
        self.senders.remove(source);
        let promised = self.promised.extract_if(|(of, _), _| *of == source);
        let promised: Vec<_> = promised.map(|(_, (met, _))| met).collect();
        let mut lost = Vec::new();
        for promised in promised {
            match promised.pattern.source {
                Some(_) => lost.push(promised.receive.receive),
                None => met.extend(self.post_again(promised, react)),
            }
        }
        let of_source = self.matcher.cancel_all(|pattern| pattern.source == Some(source));
        for Waiting { search, receive } in of_source {
            self.ends(search, react);
            lost.push(receive);
        }
        (lost, met)
    }

    /// Has a receive wait again that was promised a message which does not come.
    fn post_again(
        &mut self,
        promised: Met<Waiting<R>>,
        react: &mut impl FnMut(Reaction),
    ) -> Option<(R, Taken<M>)> {
        let (search, pattern) = (promised.receive.search, promised.pattern);
        match self.matcher.post_again(promised) {
            Post::Met(waiting, taken) => Some((waiting.receive, self.meets(taken, react))),
            Post::Waits(posted) => {
                self.again.insert(search, posted);
                self.ask_all(search, pattern, react);
                None
            }
        }
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
            Post::Met(waiting, taken) => Posting::Met(waiting.receive, self.meets(taken, react)),
            Post::Waits(posted) => {
                self.next += 1;
                self.ask_all(search, pattern, react);
                Posting::Waits(Receive { posted, search })
            }
        }
    }

    /// Takes a message off its sender's window that has waited here until now.
    fn meets(
        &mut self,
        Taken { turn, envelope, message }: Taken<Charged<M>>,
        react: &mut impl FnMut(Reaction),
    ) -> Taken<M> {
        let Charged { cost, message } = message;
        self.owes(envelope.source, cost, react);
        Taken { turn, envelope, message }
    }

    /// Has a receive that waits search at all senders that hold messages.
    fn ask_all(&mut self, search: SearchId, pattern: Pattern, react: &mut impl FnMut(Reaction)) {
        if self.holders == 0 {
            return;
        }
        let holders = self.senders.iter().filter(|(_, sender)| sender.holds);
        let holders: Vec<_> = holders.map(|(of, _)| of).filter(|&of| pattern.is_of(of)).collect();
        holders.into_iter().for_each(|to| self.ask(to, search, pattern, react));
    }

    /// Has a receive that waits search at a sender, at once or as soon as the sender was asked less.
    fn ask(
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
    fn browse(&mut self, to: Source, react: &mut impl FnMut(Reaction)) {
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
    fn answered(&mut self, to: Source, react: &mut impl FnMut(Reaction)) {
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

    /// Takes in a message that was sent within its sender's window. Returns the receive that takes
    /// it, with the message; without one the message waits here, as `keep` returns it.
    ///
    /// # Errors
    /// Returns an error when the sender's window has no room for the message, which is dropped.
    pub fn arrived(
        &mut self,
        envelope: Envelope,
        cost: usize,
        message: M,
        keep: impl FnOnce(M) -> M,
        react: &mut impl FnMut(Reaction),
    ) -> Result<Option<(R, Taken<M>)>, Overrun> {
        let sender = self.senders.get_mut(envelope.source).ok_or(Overrun)?;
        let used = sender.used.checked_add(cost).filter(|&used| used <= self.window);
        sender.used = used.ok_or(Overrun)?;
        let sent = sender.reached;
        sender.reached = sent.wrapping_add(1);
        self.probes.moves_on(envelope.source);
        match self.matcher.receive_for(envelope) {
            Some(Waiting { search, receive }) => {
                self.ends(search, react);
                self.owes(envelope.source, cost, react);
                let turn = self.matcher.next_turn(sent);
                Ok(Some((receive, Taken { turn, envelope, message })))
            }
            None => {
                self.matcher.put(envelope, sent, Charged { cost, message: keep(message) });
                Ok(None)
            }
        }
    }

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
    fn come_back(
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
    fn comes_now(
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
    fn is_first(&self, envelope: Envelope, order: Order) -> bool {
        let Some(sender) = self.senders.get(envelope.source) else { return false };
        let Some(first) = self.matcher.first_receive_for(envelope) else { return false };
        let pattern = self.searches.get(&first.search).map(|of| of.pattern);
        let mut before = sender.back.range(..order);
        sender.back.is_empty()
            || pattern.is_none_or(|pattern| !before.any(|(_, back)| pattern.takes(back.envelope)))
    }

    /// Promises an offered message to the first receive that takes it.
    fn promise(&mut self, offer: Offer, react: &mut impl FnMut(Reaction)) -> bool {
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
    fn untold_before(
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
    fn tell_back(&mut self, to: Source, react: &mut impl FnMut(Reaction)) {
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

    /// Takes back a receive that waits. Returns `None` if it has met a message before.
    pub fn cancel(&mut self, receive: Receive, react: &mut impl FnMut(Reaction)) -> Option<R> {
        let Receive { mut posted, search } = receive;
        if let Some(&again) = self.again.get(&search) {
            posted = again;
        }
        let Waiting { search, receive } = self.matcher.cancel(posted)?;
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

    /// Takes back all receives that wait, or whose message is on its way.
    pub fn drain_receives(&mut self) -> Vec<R> {
        self.searches.clear();
        let promised = self.promised.drain().map(|(_, (met, _))| met.receive);
        let mut waiting: Vec<_> = promised.collect();
        waiting.extend(self.matcher.cancel_all(|_| true));
        waiting.into_iter().map(|waiting| waiting.receive).collect()
    }

    /// Ends the search of a receive that waits no more.
    fn ends(&mut self, search: SearchId, react: &mut impl FnMut(Reaction)) {
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

    /// Owes a sender what a receive has taken of its window, and gives it back when that is enough,
    /// or the sender waits for it.
    fn owes(&mut self, source: Source, cost: usize, react: &mut impl FnMut(Reaction)) {
        let Some(sender) = self.senders.get_mut(source) else { return };
        sender.owed += cost;
        // Half of the window is given back at once, so that few messages say so.
        if sender.holds || sender.owed >= self.window / 2 {
            let cost = sender.gives_back();
            react(Reaction::Freed { to: source, cost });
        }
    }
}

impl<M> Sender<M> {
    /// Gives the browse up if no receive needs it any more.
    fn ends_browse(&mut self, to: Source, react: &mut impl FnMut(Reaction)) {
        if self.unasked.is_empty()
            && let Some(Browse { search, .. }) = self.browse.take()
        {
            react(Reaction::GivenUp { to, search });
        }
    }

    /// Takes what the sender is to be given back of its window.
    fn gives_back(&mut self) -> usize {
        let owed = std::mem::take(&mut self.owed);
        self.used -= owed;
        owed
    }
}
