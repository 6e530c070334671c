//! Pseudorandom numbers: streams that all come from one seed.

/// A stream of pseudorandom numbers, by the generator SplitMix64: a counter whose values are mixed.
/// The generator passes the usual batteries of tests, and streams that begin at mixed places don't
/// meet in practice.
#[derive(Clone, Debug)]
pub struct Luck {
    counter: u64,
}

/// The odd number nearest to 2^64 divided by the golden ratio.
const STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;

/// The bits of a probability: as many as a double has.
const ODDS_BITS: u32 = 53;

/// A probability, in a form that random numbers are compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Odds(u64);

impl Odds {
    /// Makes the odds of a probability. `what` names the event in the panic's message.
    ///
    /// # Panics
    /// Unless the probability is from 0 to 1.
    pub fn of(what: &str, probability: f64) -> Self {
        let proper = (0.0..=1.0).contains(&probability);
        assert!(proper, "{what} has a probability of {probability}, which is not from 0 to 1");
        Self((probability * (1_u64 << ODDS_BITS) as f64) as u64)
    }

    /// Returns whether the probability is zero.
    pub const fn is_never(self) -> bool {
        self.0 == 0
    }
}

impl Luck {
    /// Makes the stream of a seed from which a single stream is needed.
    pub const fn new(seed: u64) -> Self {
        Self { counter: mix(seed) }
    }

    /// Makes the stream with this number among the streams of a seed.
    pub const fn stream(seed: u64, number: u32) -> Self {
        Self::new(mix(seed).wrapping_add(number as u64))
    }

    /// Draws the next 64 random bits.
    pub const fn draw(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(STRIDE);
        mix(self.counter)
    }

    /// Draws whether an event of this probability happens.
    pub const fn chance(&mut self, odds: Odds) -> bool {
        self.draw() >> (u64::BITS - ODDS_BITS) < odds.0
    }

    /// Draws a number below `bound`, or zero if `bound` is zero. The bias is `bound` in 2^64.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.draw() as u128 * bound as u128) >> u64::BITS) as u64
    }
}

const fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        // The published sequence from a counter of 1234567.
        let mut luck = Luck { counter: 1_234_567 };
        let drawn = [luck.draw(), luck.draw(), luck.draw()];
        let published =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(drawn, published);
    }

    #[test]
    fn never_is_never_and_always_is_always() {
        let mut luck = Luck::new(0);
        let (never, always) = (Odds::of("this", 0.0), Odds::of("that", 1.0));
        assert!((0..10_000).all(|_| !luck.chance(never) && luck.chance(always)));
    }

    #[test]
    fn a_bound_is_kept_and_all_below_it_is_drawn() {
        let mut luck = Luck::new(9);
        let mut seen = [0; 10];
        for _ in 0..10_000 {
            seen[luck.below(10) as usize] += 1;
        }
        assert!(seen.iter().all(|&times| (900..1_100).contains(&times)), "{seen:?}");
        assert_eq!(luck.below(0), 0);
    }

    #[test]
    #[should_panic(expected = "loss has a probability of 1.5, which is not from 0 to 1")]
    fn what_is_no_probability_is_refused() {
        let _ = Odds::of("loss", 1.5);
    }
}
