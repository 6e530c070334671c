//! Receives whose patterns are compared one after the other.

use super::lists::Place;
use super::pattern::{Envelope, Pattern};

/// Receives in the order in which they were posted, as a table that is scanned quickly.
#[derive(Default, Debug)]
pub struct Scanned {
    /// The patterns, of which those of receives that wait no more take nothing.
    patterns: Vec<Pattern>,
    /// The order and the place of each receive.
    names: Vec<(u64, Place)>,
    /// How many of them wait.
    waiting: usize,
}

impl Scanned {
    /// Puts a receive where its order belongs, which is behind the others as a rule.
    pub fn insert(&mut self, order: u64, pattern: Pattern, place: Place) {
        let at = match self.names.last() {
            Some(&(last, _)) if last >= order => {
                self.names.partition_point(|&(before, _)| before < order)
            }
            _ => self.names.len(),
        };
        // A receive that is posted again may find its own place, which nobody has taken since.
        if self.names.get(at).is_some_and(|&(is, _)| is == order) {
            (self.patterns[at], self.names[at]) = (pattern, (order, place));
        } else {
            self.patterns.insert(at, pattern);
            self.names.insert(at, (order, place));
        }
        self.waiting += 1;
    }

    /// Returns the place of the first receive that takes a message, if it was posted before
    /// another.
    pub fn first_for(&self, message: Envelope, before: u64) -> Option<Place> {
        if self.waiting == 0 {
            return None;
        }
        let at = self.patterns.iter().position(|pattern| pattern.takes(message))?;
        let (order, place) = self.names[at];
        (order < before).then_some(place)
    }

    /// Takes the receive of an order out.
    pub fn remove(&mut self, order: u64) {
        let Ok(at) = self.names.binary_search_by_key(&order, |&(order, _)| order) else { return };
        self.patterns[at] = Pattern::NOTHING;
        self.waiting -= 1;
        // Each receive that is taken out pays for the half of another that is moved.
        if 2 * self.waiting <= self.patterns.len() {
            let mut waits = self.patterns.iter().map(|pattern| *pattern != Pattern::NOTHING);
            self.names.retain(|_| waits.next().is_some_and(|waits| waits));
            self.patterns.retain(|pattern| *pattern != Pattern::NOTHING);
        }
    }
}
