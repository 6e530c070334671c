//! Which numbers have come: each counts once, and one that is too old to be known not at all.

/// How many numbers behind the newest are known. Several paths, and packets that are sent again, bring
/// them out of order.
const REACH: u64 = 4096;
const WORDS: usize = (REACH / 64) as usize;

/// The numbers that have come with one key.
#[derive(Clone)]
pub(super) struct ReplayWindow {
    /// The first number that is newer than all that have come.
    end: u64,
    /// A bit for each of the last numbers, by the number modulo the reach.
    come: Box<[u64; WORDS]>,
}

impl ReplayWindow {
    pub fn new() -> Self {
        Self { end: 0, come: Box::new([0; WORDS]) }
    }

    fn place(number: u64) -> (usize, u64) {
        ((number / 64) as usize % WORDS, 1 << (number % 64))
    }

    /// Whether a number has not come yet, as far as is known.
    pub fn is_new(&self, number: u64) -> bool {
        if number >= self.end {
            return true;
        }
        let (word, bit) = Self::place(number);
        self.end - number <= REACH && self.come.get(word).is_some_and(|word| word & bit == 0)
    }

    /// Notes that a number has come: what it was sealed with is authentic.
    pub fn take(&mut self, number: u64) {
        if number >= self.end {
            let from = self.end.max(number.saturating_sub(REACH - 1));
            self.clear(from, number + 1 - from);
            self.end = number + 1;
        }
        let (word, bit) = Self::place(number);
        if let Some(word) = self.come.get_mut(word) {
            *word |= bit;
        }
    }

    /// Clears the bits of `count` numbers from `from` on, which are the reach at most.
    fn clear(&mut self, from: u64, count: u64) {
        for number in from..from + count {
            let (word, bit) = Self::place(number);
            if let Some(word) = self.come.get_mut(word) {
                *word &= !bit;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_number_counts_once_in_whatever_order_they_come() {
        let mut window = ReplayWindow::new();
        let mut come = BTreeSet::new();
        let mut random = 7_u64;
        for _ in 0..200_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let newest = come.last().copied().unwrap_or(0);
            let number = match random >> 60 {
                0 => newest + (random >> 33) % 9000,
                _ => (newest + 3).saturating_sub((random >> 33) % 5000),
            };
            let is_known = newest < number || newest + 1 - number <= REACH;
            assert_eq!(window.is_new(number), is_known && !come.contains(&number), "{number}");
            if window.is_new(number) {
                window.take(number);
                come.insert(number);
            }
            while come.len() > 20_000 {
                come.pop_first();
            }
        }
    }
}
