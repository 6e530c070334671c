//! Random indices of a table's entries.

/// How many entries the table has, of 64 bits each.
pub const ENTRIES: usize = 1 << 20;

/// A xorshift generator, which takes a nanosecond or two for a number.
pub struct Random(u64);

impl Random {
    /// The generator of a process. Each process has a sequence of its own, which is the same in
    /// each run.
    pub fn of(rank: usize) -> Self {
        Self((rank as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// The next random index of an entry.
    #[inline]
    pub fn index(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> (u64::BITS - ENTRIES.trailing_zeros())) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_reach_all_parts_of_the_table_and_differ_between_processes() {
        let [mut one, mut other] = [0, 1].map(Random::of);
        let mut seen = [0; 64];
        let mut equal = 0;
        for _ in 0..64_000 {
            let index = one.index();
            seen[index * 64 / ENTRIES] += 1;
            equal += usize::from(index == other.index());
        }
        assert!(seen.iter().all(|count| (800..1200).contains(count)), "{seen:?}");
        assert!(equal < 10, "{equal} of 64000 are equal");
    }
}
