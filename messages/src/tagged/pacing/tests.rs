//! Random programs of several senders and a receiver, joined by channels that keep order and delay
//! as they like, beside a model without windows.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use doorbell_kit::effort;

use super::*;
use crate::matching::{Envelope, Pattern, Source, Taken};

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ z >> 31) % end
    }
}

/// A message on its way to the receiver.
#[derive(Debug)]
enum Forth {
    Message { envelope: Envelope, cost: usize, message: u64, last: bool },
    Taken { order: Order, message: Option<u64>, last: bool },
    Holds,
    Passed { order: Order, last: bool },
    Answer(Answer),
}

const WINDOW: usize = 4;

/// A sender of the simulated world, and its channels to and from the receiver.
struct Line {
    outgoing: Outgoing<u64>,
    forth: VecDeque<Forth>,
    back: VecDeque<Reaction>,
}

/// A simulated world of several senders and one receiver.
struct World {
    lines: Vec<Line>,
    incoming: Incoming<u64, u64>,
    /// The message that each receive has got, and not put back.
    got: Vec<Option<Taken<u64>>>,
    waits: Vec<Option<Receive>>,
    patterns: Vec<Pattern>,
    /// How often something has happened.
    now: u64,
    /// When the receiver has taken each offer.
    takes: HashMap<(Source, Order), u64>,
    /// The messages that were sent, with their envelopes.
    sent: Vec<(Envelope, u64)>,
    /// When each message belonged to a receive, or was cancelled.
    owned: HashMap<u64, Vec<Range<u64>>>,
    /// The bytes that each message takes of the window.
    costs: HashMap<u64, usize>,
    /// Messages that were held, with their places.
    held: Vec<(Source, Order, u64)>,
}

impl World {
    fn new(senders: u64) -> Self {
        let mut incoming = Incoming::new(WINDOW);
        let line = |source| {
            incoming.add_sender(source);
            Line { outgoing: Outgoing::new(WINDOW), forth: VecDeque::new(), back: VecDeque::new() }
        };
        let lines = (0..senders).map(line).collect();
        Self {
            lines,
            incoming,
            got: Vec::new(),
            waits: Vec::new(),
            patterns: Vec::new(),
            now: 0,
            takes: HashMap::new(),
            sent: Vec::new(),
            owned: HashMap::new(),
            costs: HashMap::new(),
            held: Vec::new(),
        }
    }

    fn send(&mut self, envelope: Envelope, cost: usize, message: u64) {
        self.sent.push((envelope, message));
        self.costs.insert(message, cost);
        let line = &mut self.lines[envelope.source as usize];
        match line.outgoing.submit(envelope, (cost, 0), message) {
            Submitted::Send(message) => {
                line.forth.push_back(Forth::Message { envelope, cost, message, last: false });
            }
            Submitted::Holds { first, offer, order } => {
                line.forth.extend(first.then_some(Forth::Holds));
                line.forth.extend(offer.map(Forth::Answer));
                self.held.push((envelope.source, order, message));
            }
        }
    }

    /// Cancels the send of a message that was held once, if it still is.
    fn cancel_send(&mut self, at: usize) {
        let (source, order, message) = self.held[at];
        let cancelled = self.lines[source as usize].outgoing.cancel(order);
        if let Some(cancelled) = cancelled {
            assert_eq!(cancelled, message);
            self.owned.entry(message).or_default().push(self.now..u64::MAX);
            self.releases(source as usize);
        }
    }

    fn post(&mut self, pattern: Pattern) {
        self.now += 1;
        let number = self.got.len() as u64;
        self.got.push(None);
        self.patterns.push(pattern);
        let posting = {
            let mut back = channel(&mut self.lines, &mut self.takes, self.now);
            self.incoming.post(pattern, number, &mut back)
        };
        let waits = match posting {
            Posting::Met(_, taken) => {
                self.gets(number, taken, self.now);
                None
            }
            Posting::Waits(receive) => Some(receive),
        };
        self.waits.push(waits);
    }

    fn cancel(&mut self, number: usize) -> bool {
        self.now += 1;
        let Some(receive) = self.waits[number] else { return false };
        let mut back = channel(&mut self.lines, &mut self.takes, self.now);
        self.incoming.cancel(receive, &mut back).is_some()
    }

    /// Drops a receive that has got a message. Returns whether it had.
    fn put_back(&mut self, number: usize) -> bool {
        self.now += 1;
        let Some(taken) = self.got[number].take() else { return false };
        let owned = self.owned.get_mut(&taken.message).and_then(|all| all.last_mut());
        owned.expect("a receive has got it").end = self.now;
        let met = {
            let mut back = channel(&mut self.lines, &mut self.takes, self.now);
            self.incoming.put_back(taken, 0, &mut back)
        };
        self.meet(met, self.now);
        true
    }

    fn meet(&mut self, met: impl IntoIterator<Item = (u64, Taken<u64>)>, at: u64) {
        met.into_iter().for_each(|(receive, taken)| self.gets(receive, taken, at));
    }

    /// Gives a receive the message that it has met at some time, when no earlier message of the
    /// sender may have been free that the receive takes.
    fn gets(&mut self, receive: u64, taken: Taken<u64>, at: u64) {
        let pattern = self.patterns[receive as usize];
        assert!(pattern.takes(taken.envelope));
        for (envelope, message) in &self.sent {
            let is_before = envelope.source == taken.envelope.source && *message < taken.message;
            let owned = self.owned.get(message).into_iter().flatten();
            if is_before && pattern.takes(*envelope) {
                let was_free = !owned.clone().any(|owned| owned.contains(&at));
                assert!(!was_free, "{} overtakes {message}, at {at}", taken.message);
            }
        }
        self.owned.entry(taken.message).or_default().push(at..u64::MAX);
        let got = &mut self.got[receive as usize];
        assert!(got.replace(taken).is_none(), "received twice");
    }

    /// Delivers the next message of a channel. Returns whether there was one.
    fn deliver(&mut self, source: usize, to_receiver: bool) -> bool {
        self.now += 1;
        match to_receiver {
            true => self.lines[source].forth.pop_front().map(|what| self.receive(source, what)),
            false => self.lines[source].back.pop_front().map(|what| self.react(source, what)),
        }
        .is_some()
    }

    fn receive(&mut self, source: usize, what: Forth) {
        let (from, mut taken) = (source as Source, None);
        let mut back = channel(&mut self.lines, &mut self.takes, self.now);
        let met: Vec<_> = match what {
            Forth::Holds => {
                assert!(self.incoming.holds(from, &mut back));
                Vec::new()
            }
            Forth::Answer(Answer::Offer(offer)) => {
                self.incoming.offered(offer, &mut back).expect("the sender keeps the rules")
            }
            Forth::Answer(Answer::Seen(search)) => {
                self.incoming.seen(from, search, &mut back);
                Vec::new()
            }
            Forth::Passed { order, last } => {
                let met = self.incoming.passed(from, order, last, &mut back);
                met.expect("the sender keeps the rules")
            }
            Forth::Message { envelope, cost, message, last } => {
                if last {
                    self.incoming.holds_none(from);
                }
                let met =
                    self.incoming.arrived(envelope, cost, message, |message| message, &mut back);
                met.expect("it was sent within the window").into_iter().collect()
            }
            Forth::Taken { order, message, last } => {
                let met = match message {
                    Some(message) => self.incoming.came(from, order, message),
                    None => self.incoming.came_again(from, order, &mut back),
                };
                if last {
                    self.incoming.holds_none(from);
                }
                taken = Some(order);
                vec![met.expect("it was promised")]
            }
        };
        drop(back);
        let at = taken.map_or(self.now, |order| self.takes[&(from, order)]);
        self.meet(met, at);
    }

    fn react(&mut self, source: usize, what: Reaction) {
        let Line { outgoing, forth, .. } = &mut self.lines[source];
        match what {
            Reaction::Freed { cost, .. } => assert!(outgoing.freed(cost)),
            Reaction::Search { search, pattern, .. } => {
                let found = outgoing.search(search, pattern).expect("there are few searches");
                forth.extend(found.map(Forth::Answer));
            }
            Reaction::Browse { search, from, .. } => {
                forth.extend(outgoing.browse(search, from).map(Forth::Answer));
            }
            Reaction::GivenUp { search, .. } => outgoing.give_up(search),
            Reaction::Take { order, .. } => {
                let Take { message, last } = outgoing.take(order).expect("it was offered");
                forth.push_back(Forth::Taken { order, message, last });
            }
            Reaction::Leave { order, .. } => assert!(outgoing.leave(order), "it was offered"),
            Reaction::Back { order, bits, len, .. } => {
                assert_eq!(outgoing.back(order, bits, len), Ok(true));
            }
        }
        self.releases(source);
    }

    fn releases(&mut self, source: usize) {
        let Line { outgoing, forth, .. } = &mut self.lines[source];
        while let Some(release) = outgoing.release() {
            forth.push_back(match release {
                Release::Sent { envelope, message, last } => {
                    let cost = self.costs[&message];
                    Forth::Message { envelope, cost, message, last }
                }
                Release::Passed { order, last } => Forth::Passed { order, last },
            });
        }
        forth.extend(outgoing.next_answer().map(Forth::Answer));
    }

    /// Delivers everything that is on its way, and what follows from it.
    fn settle(&mut self, random: &mut Random) {
        loop {
            let start = random.below(2 * self.lines.len() as u64) as usize;
            let all = 2 * self.lines.len();
            let moved = (0..all).any(|at| {
                let at = (start + at) % all;
                self.deliver(at / 2, at.is_multiple_of(2))
            });
            if !moved {
                return;
            }
        }
    }
}

/// Returns what puts a reaction on the channel to its sender, and notes when offers are taken.
fn channel<'w>(
    lines: &'w mut [Line],
    takes: &'w mut HashMap<(Source, Order), u64>,
    now: u64,
) -> impl FnMut(Reaction) + 'w {
    move |reaction| {
        let (Reaction::Freed { to, .. }
        | Reaction::Search { to, .. }
        | Reaction::Browse { to, .. }
        | Reaction::GivenUp { to, .. }
        | Reaction::Take { to, .. }
        | Reaction::Leave { to, .. }
        | Reaction::Back { to, .. }) = reaction;
        if let Reaction::Take { order, .. } = reaction {
            takes.insert((to, order), now);
        }
        lines[to as usize].back.push_back(reaction);
    }
}

/// The message that each receive gets if no message ever waits for room: with receives that name
/// their source that does not depend on when messages arrive.
fn model(posts: &[Pattern], sends: &[(Envelope, u64)]) -> Vec<Option<u64>> {
    let mut left = sends.to_vec();
    posts
        .iter()
        .map(|pattern| {
            let at = left.iter().position(|(envelope, _)| pattern.takes(*envelope))?;
            Some(left.remove(at).1)
        })
        .collect()
}

fn pattern(random: &mut Random, source: Option<Source>) -> Pattern {
    let mask = [u64::MAX, 0, 1, 2][random.below(4) as usize];
    Pattern::new(source, random.below(4), mask)
}

/// Runs a random program of receives that name their source, and returns whether messages were
/// held.
fn agrees_with_the_model(seed: u64) -> bool {
    let mut random = Random(seed);
    let senders = 1 + random.below(3);
    let mut world = World::new(senders);
    let (mut posts, mut sends, mut held) = (Vec::new(), Vec::new(), false);
    for step in 0..120 {
        match random.below(10) {
            0..3 => {
                let source = random.below(senders) as Source;
                let pattern = pattern(&mut random, Some(source));
                posts.push(pattern);
                world.post(pattern);
            }
            3..7 => {
                let source = random.below(senders) as Source;
                let envelope = Envelope { source, bits: random.below(4) };
                sends.push((envelope, step));
                world.send(envelope, 1 + random.below(3) as usize, step);
            }
            _ => {
                world.deliver(random.below(senders) as usize, random.below(2) == 0);
            }
        }
        held |= world.lines.iter().any(|line| line.outgoing.held() > 0);
    }
    world.settle(&mut random);
    let got: Vec<_> = world.got.iter().map(|got| Some(got.as_ref()?.message)).collect();
    assert_eq!(got, model(&posts, &sends), "seed {seed}");
    held
}

#[test]
fn every_receive_gets_the_message_that_it_would_get_without_windows() {
    let programs = effort(2_000, 20_000);
    let held = (0..programs).filter(|&seed| agrees_with_the_model(seed)).count() as u64;
    assert!(held > programs / 2, "messages were held in {held} of {programs} programs only");
}

/// Runs a random program with receives from any source, of which some are cancelled, and others
/// dropped with their messages; and with sends of which some are cancelled. No message ever
/// overtakes another, and at the end of the program no receive waits for a message that is held or
/// has come, and no message was lost or received twice.
fn loses_nothing(seed: u64, most_asked: usize) {
    let mut random = Random(seed);
    let senders = 1 + random.below(3);
    let mut world = World::new(senders);
    world.incoming.asks_at_most(most_asked);
    let mut is_over = Vec::new();
    for step in 0..160 {
        match random.below(13) {
            0..3 => {
                let source = (random.below(2) == 0).then(|| random.below(senders) as Source);
                let pattern = pattern(&mut random, source);
                world.post(pattern);
                is_over.push(false);
            }
            3..7 => {
                let source = random.below(senders) as Source;
                let envelope = Envelope { source, bits: random.below(4) };
                world.send(envelope, 1 + random.below(3) as usize, step);
            }
            7 if !is_over.is_empty() => {
                let number = random.below(is_over.len() as u64) as usize;
                is_over[number] |= world.cancel(number);
            }
            8 | 9 if !is_over.is_empty() => {
                let number = random.below(is_over.len() as u64) as usize;
                is_over[number] |= world.put_back(number);
            }
            10 if !world.held.is_empty() => {
                world.cancel_send(random.below(world.held.len() as u64) as usize);
            }
            _ => {
                world.deliver(random.below(senders) as usize, random.below(2) == 0);
            }
        }
    }
    world.settle(&mut random);
    let is_owned = |message| {
        let owned = world.owned.get(message).and_then(|owned| owned.last());
        owned.is_some_and(|owned| owned.end == u64::MAX)
    };
    for (number, pattern) in world.patterns.iter().enumerate() {
        let waits = world.got[number].is_none() && !is_over[number];
        let mut free = world.sent.iter().filter(|(_, message)| !is_owned(message));
        let missed = free.find(|(envelope, _)| pattern.takes(*envelope));
        assert!(!waits || missed.is_none(), "seed {seed}: receive {number} misses {missed:?}");
    }
    // All that is left is there for receives of any.
    let all = world.sent.iter().filter(|(_, message)| !is_owned(message)).count();
    (0..all).for_each(|_| world.post(Pattern::new(None, 0, 0)));
    world.settle(&mut random);
    let left = world.got[is_over.len()..].iter().filter(|got| got.is_none()).count();
    assert_eq!(left, 0, "seed {seed}: messages are lost");
}

#[test]
fn receives_from_any_source_miss_no_message_and_none_overtakes_another() {
    (0..effort(2_000, 20_000)).for_each(|seed| loses_nothing(seed, usize::MAX));
}

#[test]
fn receives_beyond_those_that_may_search_miss_no_message_and_none_overtakes_another() {
    for seed in 0..effort(2_000, 20_000) {
        loses_nothing(seed, (seed % 3) as usize);
    }
}
