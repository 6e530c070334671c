//! Ranks of keys, and how they are tested.

use super::problem::{Problem, TESTS};

/// The ranks of all keys whose values are in a range, which one process has. The rank of a key is
/// how many keys are less.
pub struct Ranks {
    /// The first value of the range.
    pub first: u32,
    /// How many keys of all processes are less than `first`.
    pub lesser: u32,
    /// For each value of the range, how many keys from `first` on are not greater than the value.
    pub up_to: Vec<u32>,
}

impl Ranks {
    /// The rank of a key, if its value is in the range.
    pub fn rank(&self, key: u32) -> Option<u32> {
        let place = key.checked_sub(self.first)? as usize;
        if place >= self.up_to.len() {
            return None;
        }
        Some(self.lesser + if place == 0 { 0 } else { self.up_to[place - 1] })
    }

    /// Partial verification: how many of the tested keys are in the range, and have the rank that
    /// they must have in this iteration.
    pub fn test(&self, problem: &Problem, tested: [u32; TESTS], iteration: u32) -> u32 {
        let passes = |(test, key): (usize, u32)| {
            self.rank(key).is_some_and(|rank| rank == problem.expected(test, iteration))
        };
        tested.into_iter().enumerate().map(passes).map(u32::from).sum()
    }

    /// Moves the keys of the range to the places that their ranks say. Returns `None` if a rank
    /// says a place that there is not, or a place is said twice.
    pub fn sort(&mut self, keys: &[u32]) -> Option<Vec<u32>> {
        let mut sorted = vec![None; keys.len()];
        for &key in keys {
            let up_to = self.up_to.get_mut(key.checked_sub(self.first)? as usize)?;
            // Equal keys get the places below each other.
            *up_to = up_to.checked_sub(1)?;
            let place = sorted.get_mut(*up_to as usize)?;
            if place.replace(key).is_some() {
                return None;
            }
        }
        sorted.into_iter().collect()
    }
}

/// Replaces each count by the sum of all counts up to and including itself.
pub fn add_up(counts: &mut [u32]) {
    let mut sum = 0;
    for count in counts {
        sum += *count;
        *count = sum;
    }
}
