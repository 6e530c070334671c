//! A set of frames.

/// A set of numbers below a bound, each of which is added once.
#[derive(Clone, Debug)]
pub struct Bits {
    words: Vec<u64>,
    len: u32,
    count: u32,
    /// The least number that is not in the set, or the bound if the set is full.
    first_missing: u32,
}

impl Bits {
    /// An empty set of numbers below `len`.
    pub fn new(len: u32) -> Self {
        Self { words: vec![0; len.div_ceil(64) as usize], len, count: 0, first_missing: 0 }
    }

    /// Whether a number is in the set.
    pub fn has(&self, number: u32) -> bool {
        self.words.get((number / 64) as usize).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Adds a number to the set. Returns whether the number is below the bound and was not in the
    /// set.
    pub fn add(&mut self, number: u32) -> bool {
        if number >= self.len || self.has(number) {
            return false;
        }
        self.words[(number / 64) as usize] |= 1 << (number % 64);
        self.count += 1;
        while self.first_missing < self.len && self.has(self.first_missing) {
            self.first_missing += 1;
        }
        true
    }

    /// Returns how many numbers are in the set.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns whether the set contains every number below the bound.
    pub fn is_full(&self) -> bool {
        self.count == self.len
    }

    /// Returns the least number that is not in the set, or the bound.
    pub fn first_missing(&self) -> u32 {
        self.first_missing
    }

    /// Returns whether the set contains every number of a range.
    pub fn has_all(&self, mut range: std::ops::Range<u32>) -> bool {
        range.all(|number| self.has(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_knows_what_is_missing() {
        let mut bits = Bits::new(130);
        assert!(bits.add(0) && bits.add(129) && !bits.add(129) && !bits.add(130));
        assert_eq!((bits.count(), bits.first_missing()), (2, 1));
        (1..129).for_each(|number| assert!(bits.add(number)));
        assert!(bits.is_full() && bits.has_all(0..130) && bits.first_missing() == 130);
    }
}
