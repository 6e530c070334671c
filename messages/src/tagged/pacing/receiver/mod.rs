//! The receives of one receiver, and the messages of all its senders.
//!
//! | file | what it decides |
//! |---|---|
//! | this one | which receives and messages within windows meet, and what senders are given back |
//! | `searches` | at which senders receives and probes search |
//! | `offers` | which offers of held messages are taken |
//! | `held` | what becomes of messages that senders hold, and of those that go back there |

mod held;
mod offers;
mod searches;

use std::collections::{BTreeMap, BTreeSet};

use super::probes::Probes;
use super::sender::{MOST_BACK, MOST_SEARCHES, Offer};
use super::{Order, SearchId};
use crate::matching::map::Map;
use crate::matching::{
    Envelope, Matcher, Met, Pattern, Post, PostedId, Source, Sources, Taken, Turn,
};

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

/// The fate of a message that was sent within its sender's window.
#[derive(Debug)]
pub enum Arrival<R> {
    /// A receive takes the message, which has had this turn.
    Meets(R, Turn),
    /// No receive takes the message.
    Waits(Unmet),
}

/// A message that no receive has taken, and that is to wait before another comes.
#[must_use = "the message is to wait"]
#[derive(Debug)]
pub struct Unmet {
    envelope: Envelope,
    sent: Order,
    cost: usize,
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
        match self.arrives(envelope, cost, react)? {
            Arrival::Meets(receive, turn) => Ok(Some((receive, Taken { turn, envelope, message }))),
            Arrival::Waits(unmet) => {
                self.waits(unmet, keep(message));
                Ok(None)
            }
        }
    }

    /// Hears of a message that was sent within its sender's window. Returns the receive that takes
    /// it. A message without one is to [wait](Self::waits) here.
    ///
    /// # Errors
    /// As [`arrived`](Self::arrived).
    #[inline]
    pub fn arrives(
        &mut self,
        envelope: Envelope,
        cost: usize,
        react: &mut impl FnMut(Reaction),
    ) -> Result<Arrival<R>, Overrun> {
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
                Ok(Arrival::Meets(receive, self.matcher.next_turn(sent)))
            }
            None => Ok(Arrival::Waits(Unmet { envelope, sent, cost })),
        }
    }

    /// Has a message wait that no receive has taken.
    pub fn waits(&mut self, Unmet { envelope, sent, cost }: Unmet, message: M) {
        self.matcher.put(envelope, sent, Charged { cost, message });
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
