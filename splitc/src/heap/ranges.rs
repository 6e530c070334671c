//! The free ranges of a heap.

/// The free ranges of a heap, in ascending order. The first range that fits is used, and adjacent
/// free ranges are merged.
///
/// Deterministic: two heaps on which the same calls are made in the same order give the same
/// places.
#[derive(Debug)]
pub(crate) struct Ranges {
    /// The beginning and the end of each free range.
    free: Vec<(u64, u64)>,
}

impl Ranges {
    /// A single free range.
    pub fn new(from: u64, to: u64) -> Self {
        Self { free: vec![(from, to)] }
    }

    /// Takes `len` bytes from the beginning of the first free range that has them below the place
    /// `below`.
    pub fn take_low(&mut self, len: u64, below: u64) -> Option<u64> {
        let has_room = |(from, to): &(u64, u64)| to.min(&below).saturating_sub(*from) >= len;
        let at = self.free.iter().position(has_room)?;
        let (from, to) = &mut self.free[at];
        let taken = *from;
        *from += len;
        if from == to {
            self.free.remove(at);
        }
        Some(taken)
    }

    /// Takes `len` bytes from the end of the last free range that has them above the place `above`.
    pub fn take_high(&mut self, len: u64, above: u64) -> Option<u64> {
        let has_room = |(from, to): &(u64, u64)| to.saturating_sub(*from.max(&above)) >= len;
        let at = self.free.iter().rposition(has_room)?;
        let (from, to) = &mut self.free[at];
        *to -= len;
        let taken = *to;
        if from == to {
            self.free.remove(at);
        }
        Some(taken)
    }

    /// Frees a range that was taken, and merges it with free ranges beside it.
    pub fn give(&mut self, from: u64, to: u64) {
        let at = self.free.partition_point(|range| range.0 < from);
        self.free.insert(at, (from, to));
        if at + 1 < self.free.len() && self.free[at].1 == self.free[at + 1].0 {
            self.free[at].1 = self.free[at + 1].1;
            self.free.remove(at + 1);
        }
        if at > 0 && self.free[at - 1].1 == self.free[at].0 {
            self.free[at - 1].1 = self.free[at].1;
            self.free.remove(at);
        }
    }

    /// The beginning of the free range that reaches up to a place, or the place itself if none
    /// does.
    pub fn end_below(&self, to: u64) -> u64 {
        let range = self.free.iter().find(|(from, end)| *from < to && to <= *end);
        range.map_or(to, |(from, _)| *from)
    }

    /// The length of the longest free range.
    pub fn longest(&self) -> u64 {
        self.free.iter().map(|(from, to)| to - from).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_is_joined_with_its_neighbours() {
        let mut ranges = Ranges::new(0, 100);
        let taken: Vec<_> = (0..4).map(|_| ranges.take_low(20, 100)).collect();
        assert_eq!(taken, [Some(0), Some(20), Some(40), Some(60)]);
        assert_eq!(ranges.take_low(21, 100), None);
        for from in [20, 60, 40, 0] {
            ranges.give(from, from + 20);
        }
        assert_eq!(ranges.free, [(0, 100)]);
    }

    #[test]
    fn low_and_high_ranges_grow_towards_each_other() {
        let mut ranges = Ranges::new(8, 100);
        assert_eq!((ranges.take_low(12, 100), ranges.take_high(40, 20)), (Some(8), Some(60)));
        assert_eq!(
            (ranges.longest(), ranges.take_high(21, 40), ranges.take_low(21, 40)),
            (40, None, None)
        );
    }
}
