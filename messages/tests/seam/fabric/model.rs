//! MPI's rules of matching, for what one receiver has seen.
//!
//! When a message and a receive meet, no earlier message of the same sender waits that the receive
//! takes, and no receive that was posted earlier waits for the message. So what was seen says of
//! pairs of meetings which was first, and is possible if that is not a circle.
//!
//! That leaves open whose message a receive gets of those that several senders have sent. If all
//! messages go to the receiver at once, they arrive there in one order, and a receive gets the one
//! that arrived first. So more is to be seen: of pairs of messages, which arrived first.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;

/// The place of a message: its sender, and its number among those of the sender.
pub type Place = (usize, usize);

/// The messages that a receive takes, or that a probe looks for.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    pub sender: Option<usize>,
    pub bits: u64,
    pub mask: u64,
}

impl Pattern {
    fn takes(&self, sender: usize, bits: u64) -> bool {
        (bits ^ self.bits) & self.mask == 0 && self.sender.is_none_or(|of| of == sender)
    }
}

/// What a receiver did, in the order in which it did that.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A receive, with the message that it got if it was not cancelled.
    Receive(Pattern, Option<Place>),
    /// A probe that saw a message.
    Probe(Pattern, Place),
}

/// All messages that were sent to a receiver, and what the receiver did.
#[derive(Clone, Default, Debug)]
pub struct History {
    /// The bits of each sender's messages, in the order of sending.
    pub sent: Vec<Vec<u64>>,
    pub steps: Vec<Step>,
}

impl History {
    /// Returns why what was seen breaks MPI's rules, if it does.
    pub fn violation(&self) -> Option<String> {
        let mut received = HashMap::new();
        for (at, step) in self.steps.iter().enumerate() {
            let Some((pattern, place)) = step.met() else { continue };
            if !pattern.takes(place.0, self.sent[place.0][place.1]) {
                return Some(format!("step {at}, {step:?}, does not take what it got"));
            }
            if matches!(step, Step::Receive(..)) && received.insert(place, at).is_some() {
                return Some(format!("the message {place:?} was received twice"));
            }
        }
        let left: Vec<_> = self.places().filter(|place| !received.contains_key(place)).collect();
        if !left.is_empty() {
            return Some(format!("{left:?} were not received"));
        }
        let steps: Vec<_> = (0..self.steps.len()).collect();
        circle(&steps, &self.meetings(&received))
    }

    /// Returns why what was seen is not possible if messages of all senders arrive in one order, if
    /// it is not.
    pub fn is_of_no_order(&self) -> Option<String> {
        let receives = self.steps.iter().enumerate();
        let received = receives.filter_map(|(at, step)| match step {
            Step::Receive(_, Some(place)) => Some((*place, at)),
            _ => None,
        });
        circle(&self.places().collect::<Vec<_>>(), &self.arrivals(&received.collect()))
    }

    /// Returns the pairs of steps of which the first met its message before the second.
    fn meetings(&self, received: &HashMap<Place, usize>) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        for (at, step) in self.steps.iter().enumerate() {
            let Some((pattern, place)) = step.met() else { continue };
            let (sender, number) = place;
            let before = (0..number).filter(|&of| pattern.takes(sender, self.sent[sender][of]));
            pairs.extend(before.map(|number| (received[&(sender, number)], at)));
            if let Step::Probe(..) = step {
                pairs.push((at, received[&place]));
                // What is posted after a probe meets its message after that.
                pairs.extend((at + 1..self.steps.len()).map(|later| (at, later)));
                continue;
            }
            let earlier = self.steps[..at].iter().enumerate().filter(|(_, earlier)| {
                let Step::Receive(earlier, Some(_)) = earlier else { return false };
                earlier.takes(sender, self.sent[sender][number])
            });
            pairs.extend(earlier.map(|(earlier, _)| (earlier, at)));
        }
        pairs
    }

    /// Returns the pairs of messages of which the first arrived before the second.
    fn arrivals(&self, received: &HashMap<Place, usize>) -> Vec<(Place, Place)> {
        let mut pairs = Vec::new();
        for (sender, number) in self.places().filter(|(_, number)| *number > 0) {
            pairs.push(((sender, number - 1), (sender, number)));
        }
        for (at, step) in self.steps.iter().enumerate() {
            let Some((pattern, first)) = step.met() else { continue };
            let later = self.places().filter(|&(sender, number)| {
                let was_there = received.get(&(sender, number)).is_none_or(|&got| got > at);
                let is_first = (sender, number) == first;
                was_there && !is_first && pattern.takes(sender, self.sent[sender][number])
            });
            pairs.extend(later.map(|later| (first, later)));
        }
        pairs
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        let of_sender = |(sender, sent): (usize, &Vec<u64>)| {
            (0..sent.len()).map(move |number| (sender, number))
        };
        self.sent.iter().enumerate().flat_map(of_sender)
    }
}

impl Step {
    /// Returns the pattern, and the message that was got or seen, if one was.
    fn met(&self) -> Option<(Pattern, Place)> {
        match *self {
            Step::Receive(pattern, got) => got.map(|place| (pattern, place)),
            Step::Probe(pattern, place) => Some((pattern, place)),
        }
    }
}

/// Takes away what nothing before is left of, until all is gone or a circle is left, which is
/// described.
fn circle<N: Copy + Eq + Ord + Hash + Debug>(all: &[N], pairs: &[(N, N)]) -> Option<String> {
    let mut earlier: HashMap<N, usize> = all.iter().map(|&node| (node, 0)).collect();
    let mut later: HashMap<N, Vec<N>> = HashMap::new();
    for &(before, after) in pairs {
        *earlier.get_mut(&after).expect("it is among all") += 1;
        later.entry(before).or_default().push(after);
    }
    let mut firsts: Vec<_> = all.iter().filter(|node| earlier[node] == 0).copied().collect();
    while let Some(first) = firsts.pop() {
        earlier.remove(&first);
        for after in later.remove(&first).unwrap_or_default() {
            let count = earlier.get_mut(&after).expect("what is before it was there");
            *count -= 1;
            firsts.extend((*count == 0).then_some(after));
        }
    }
    let mut left: Vec<_> = earlier.into_keys().collect();
    left.sort_unstable();
    (!left.is_empty()).then(|| format!("each of {left:?} would have been before another"))
}

const ANY: Pattern = Pattern { sender: None, bits: 0, mask: 0 };

fn exactly(bits: u64) -> Pattern {
    Pattern { sender: None, bits, mask: !0 }
}

#[test]
fn the_model_allows_what_follows_the_rules() {
    let steps = vec![
        Step::Receive(exactly(9), None),
        Step::Probe(ANY, (0, 0)),
        Step::Receive(exactly(2), Some((0, 1))),
        Step::Receive(ANY, Some((0, 0))),
        Step::Receive(ANY, Some((1, 0))),
        Step::Receive(ANY, Some((0, 2))),
    ];
    let history = History { sent: vec![vec![1, 2, 2], vec![2]], steps };
    assert_eq!((history.violation(), history.is_of_no_order()), (None, None));
}

#[test]
fn the_model_forbids_what_breaks_the_rules() {
    let got = |pattern, place| Step::Receive(pattern, Some(place));
    let broken: [(&str, Vec<u64>, Vec<Step>); 6] = [
        ("a message overtakes", vec![1, 1], vec![got(ANY, (0, 1)), got(ANY, (0, 0))]),
        (
            "a later receive gets the message of an earlier one",
            vec![1, 2],
            vec![got(ANY, (0, 1)), got(exactly(1), (0, 0))],
        ),
        ("a receive gets other bits", vec![1], vec![got(exactly(2), (0, 0))]),
        ("a message is received twice", vec![1], vec![got(ANY, (0, 0)), got(ANY, (0, 0))]),
        ("a message is lost", vec![1, 1], vec![got(ANY, (0, 0))]),
        (
            "a probe sees a message behind one that waits",
            vec![1, 1],
            vec![Step::Probe(ANY, (0, 1)), got(ANY, (0, 0)), got(ANY, (0, 1))],
        ),
    ];
    for (what, sent, steps) in broken {
        assert!(History { sent: vec![sent], steps }.violation().is_some(), "{what}");
    }
}

#[test]
fn the_model_forbids_receives_that_see_two_senders_in_different_orders() {
    let got = |pattern, place| Step::Receive(pattern, Some(place));
    let (one, two) = (exactly(1), exactly(2));
    let steps = vec![got(one, (1, 1)), got(two, (0, 1)), got(one, (0, 0)), got(two, (1, 0))];
    let history = History { sent: vec![vec![1, 2], vec![2, 1]], steps };
    assert_eq!(history.violation(), None, "MPI leaves it open");
    assert!(history.is_of_no_order().is_some());
}
