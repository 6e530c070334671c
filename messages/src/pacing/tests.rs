//! Random programs of several senders and a receiver, joined by channels that keep order and delay
//! as they like, beside a model without windows.

use std::collections::VecDeque;

use doorbell_kit::effort;

use super::*;
use crate::matching::{Envelope, Pattern, Source};

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
    Taken { order: Order, message: u64, last: bool },
    Holds,
    Offer(Offer),
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
    /// The message that each receive has got.
    got: Vec<Option<u64>>,
    waits: Vec<Option<Receive>>,
}

impl World {
    fn new(senders: u64) -> Self {
        let mut incoming = Incoming::new(WINDOW);
        let line = |source| {
            incoming.add_sender(source);
            Line { outgoing: Outgoing::new(WINDOW), forth: VecDeque::new(), back: VecDeque::new() }
        };
        let lines = (0..senders).map(line).collect();
        Self { lines, incoming, got: Vec::new(), waits: Vec::new() }
    }

    fn send(&mut self, envelope: Envelope, cost: usize, message: u64) {
        let line = &mut self.lines[envelope.source as usize];
        match line.outgoing.submit(envelope, (cost, 0), message) {
            Submitted::Send(message) => {
                line.forth.push_back(Forth::Message { envelope, cost, message, last: false });
            }
            Submitted::Holds { first, offer, .. } => {
                line.forth.extend(first.then_some(Forth::Holds));
                line.forth.extend(offer.map(Forth::Offer));
            }
        }
    }

    fn post(&mut self, pattern: Pattern) {
        let number = self.got.len() as u64;
        let lines = &mut self.lines;
        let mut react = |reaction| back(lines, reaction);
        let (got, waits) = match self.incoming.post(pattern, number, &mut react) {
            Posting::Met(_, taken) => (Some(taken.message), None),
            Posting::Waits(receive) => (None, Some(receive)),
        };
        self.got.push(got);
        self.waits.push(waits);
    }

    fn cancel(&mut self, number: usize) -> bool {
        let Some(receive) = self.waits[number] else { return false };
        let lines = &mut self.lines;
        self.incoming.cancel(receive, &mut |reaction| back(lines, reaction)).is_some()
    }

    /// Delivers the next message of a channel. Returns whether there was one.
    fn deliver(&mut self, source: usize, to_receiver: bool) -> bool {
        match to_receiver {
            true => self.lines[source].forth.pop_front().map(|what| self.receive(source, what)),
            false => self.lines[source].back.pop_front().map(|what| self.react(source, what)),
        }
        .is_some()
    }

    fn receive(&mut self, source: usize, what: Forth) {
        let from = source as Source;
        let lines = &mut self.lines;
        let mut react = |reaction| back(lines, reaction);
        let (receive, message, last) = match what {
            Forth::Holds => {
                assert!(self.incoming.holds(from, &mut react));
                return;
            }
            Forth::Offer(offer) => {
                assert!(self.incoming.offered(offer, &mut react));
                return;
            }
            Forth::Message { envelope, cost, message, last } => {
                if last {
                    self.incoming.holds_none(from);
                }
                let met = self.incoming.arrived(envelope, cost, message, &mut react);
                let met = met.expect("it was sent within the window");
                let Some((receive, taken)) = met else { return };
                (receive, taken.message, last)
            }
            Forth::Taken { order, message, last } => {
                let (receive, ..) = self.incoming.came(from, order).expect("it was promised");
                (receive, message, last)
            }
        };
        if last {
            self.incoming.holds_none(from);
        }
        assert_eq!(self.got[receive as usize].replace(message), None, "received twice");
    }

    fn react(&mut self, source: usize, what: Reaction) {
        let Line { outgoing, forth, .. } = &mut self.lines[source];
        match what {
            Reaction::Freed { cost, .. } => assert!(outgoing.freed(cost)),
            Reaction::Search { search, pattern, .. } => {
                let found = outgoing.search(search, pattern).expect("there are few searches");
                forth.extend(found.map(Forth::Offer));
            }
            Reaction::GivenUp { search, .. } => outgoing.give_up(search),
            Reaction::Take { order, .. } => {
                let Release { held, last } = outgoing.take(order).expect("it was offered");
                forth.push_back(Forth::Taken { order, message: held.message, last });
            }
            Reaction::Leave { order, .. } => assert!(outgoing.leave(order), "it was offered"),
        }
        while let Some(Release { held, last }) = outgoing.release() {
            let Held { envelope, cost, message, .. } = held;
            forth.push_back(Forth::Message { envelope, cost, message, last });
        }
        forth.extend(outgoing.next_offer().map(Forth::Offer));
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

fn back(lines: &mut [Line], reaction: Reaction) {
    let (Reaction::Freed { to, .. }
    | Reaction::Search { to, .. }
    | Reaction::GivenUp { to, .. }
    | Reaction::Take { to, .. }
    | Reaction::Leave { to, .. }) = reaction;
    lines[to as usize].back.push_back(reaction);
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
    assert_eq!(world.got, model(&posts, &sends), "seed {seed}");
    held
}

#[test]
fn every_receive_gets_the_message_that_it_would_get_without_windows() {
    let programs = effort(2_000, 20_000);
    let held = (0..programs).filter(|&seed| agrees_with_the_model(seed)).count() as u64;
    assert!(held > programs / 2, "messages were held in {held} of {programs} programs only");
}

/// Runs a random program with receives from any source, of which some are cancelled. At its end no
/// receive waits for a message that is held or has come, no message was lost or received twice, and
/// those of a sender that one pattern takes were received in order.
fn loses_nothing(seed: u64) {
    let mut random = Random(seed);
    let senders = 1 + random.below(3);
    let mut world = World::new(senders);
    let (mut posts, mut sends) = (Vec::new(), Vec::new());
    let mut cancelled = Vec::new();
    for step in 0..120 {
        match random.below(11) {
            0..3 => {
                let source = (random.below(2) == 0).then(|| random.below(senders) as Source);
                let pattern = pattern(&mut random, source);
                posts.push(pattern);
                world.post(pattern);
            }
            3..7 => {
                let source = random.below(senders) as Source;
                let envelope = Envelope { source, bits: random.below(4) };
                sends.push((envelope, step));
                world.send(envelope, 1 + random.below(3) as usize, step);
            }
            7 if !posts.is_empty() => {
                let number = random.below(posts.len() as u64) as usize;
                if world.cancel(number) {
                    cancelled.push(number);
                }
            }
            _ => {
                world.deliver(random.below(senders) as usize, random.below(2) == 0);
            }
        }
    }
    world.settle(&mut random);
    let received: Vec<u64> = world.got.iter().copied().flatten().collect();
    let unique: std::collections::BTreeSet<_> = received.iter().copied().collect();
    assert_eq!(unique.len(), received.len(), "seed {seed}: a message was received twice");
    for (number, pattern) in posts.iter().enumerate() {
        let waits = world.got[number].is_none() && !cancelled.contains(&number);
        let missed = sends
            .iter()
            .find(|(envelope, message)| pattern.takes(*envelope) && !unique.contains(message));
        assert!(!waits || missed.is_none(), "seed {seed}: receive {number} misses {missed:?}");
    }
    // Among receives of one pattern, in the order of posting, messages of a sender are in order.
    for pattern in &posts {
        let got = posts.iter().zip(&world.got).filter(|(of, _)| *of == pattern);
        let got: Vec<u64> = got.filter_map(|(_, got)| *got).collect();
        for source in 0..senders as Source {
            let of_source = |message: &&u64| {
                sends.iter().any(|(envelope, of)| of == *message && envelope.source == source)
            };
            let got: Vec<_> = got.iter().filter(of_source).collect();
            assert!(got.is_sorted(), "seed {seed}: {got:?} of {source} for {pattern:?}");
        }
    }
}

#[test]
fn receives_from_any_source_miss_no_message_and_none_overtakes_another() {
    (0..effort(2_000, 20_000)).for_each(loses_nothing);
}
