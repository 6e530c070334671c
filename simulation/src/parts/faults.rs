//! The faults of one direction of a cable, and the corruption of frames.

use std::time::Duration;

use crate::random::{Luck, Odds};

/// The faults of one direction of a cable, each with its probability from 0 to 1.
///
/// Whether a fault strikes a frame depends on the seed, the cable's number and direction, and the
/// number of frames that went that way before. It depends neither on traffic elsewhere nor on the
/// other probabilities, except that no other fault strikes a lost frame.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Faults {
    /// The probability that a frame is lost.
    pub loss: f64,
    /// The probability that a second copy of a frame arrives, later than the first would.
    pub duplication: f64,
    /// The probability that one to three bits of a frame are flipped, anywhere in the frame, whose
    /// length stays. A frame and its second copy are corrupted independently.
    pub corruption: f64,
    /// The probability that a frame is held back, so that later frames may overtake it.
    pub reordering: f64,
    /// The longest delay of a second copy. The delay is drawn from 1 ns up to this.
    pub duplication_delay: Duration,
    /// The longest time for which a frame is held back. The time is drawn from 1 ns up to this.
    pub reordering_delay: Duration,
}

impl Faults {
    /// The faults of a perfect cable: none. If only a probability is changed, delays are up to 10
    /// µs.
    pub const NONE: Self = Self {
        loss: 0.0,
        duplication: 0.0,
        corruption: 0.0,
        reordering: 0.0,
        duplication_delay: Duration::from_micros(10),
        reordering_delay: Duration::from_micros(10),
    };
}

impl Default for Faults {
    /// The faults of a perfect cable, [`Faults::NONE`].
    fn default() -> Self {
        Self::NONE
    }
}

/// The faults of one direction of a cable in the form in which outcomes are drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaultModel {
    perfect: bool,
    loss: Odds,
    duplication: Odds,
    corruption: Odds,
    reordering: Odds,
    duplication_delay: u64,
    reordering_delay: u64,
}

/// The outcome that was drawn for one frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FaultOutcome {
    pub(crate) lost: bool,
    pub(crate) corrupted: bool,
    pub(crate) held_back: Option<Duration>,
    pub(crate) copy: Option<Duplicate>,
}

/// The outcome that was drawn for the second copy of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Duplicate {
    pub(crate) later: Duration,
    pub(crate) corrupted: bool,
}

impl FaultModel {
    /// Makes the model of `faults`, and panics if one of the values is no probability.
    pub(crate) fn new(faults: &Faults) -> Self {
        let loss = Odds::of("loss", faults.loss);
        let duplication = Odds::of("duplication", faults.duplication);
        let corruption = Odds::of("corruption", faults.corruption);
        let reordering = Odds::of("reordering", faults.reordering);
        Self {
            perfect: [loss, duplication, corruption, reordering].iter().all(|o| o.is_never()),
            loss,
            duplication,
            corruption,
            reordering,
            duplication_delay: nanos(faults.duplication_delay),
            reordering_delay: nanos(faults.reordering_delay),
        }
    }

    /// Returns whether no fault ever strikes.
    pub(crate) const fn is_perfect(&self) -> bool {
        self.perfect
    }

    /// Draws the outcome for a frame. Numbers are drawn for each fault, even one of probability
    /// zero, so that no fault changes the random numbers of another.
    pub(crate) fn draw(&self, luck: &mut Luck) -> FaultOutcome {
        let lost = luck.chance(self.loss);
        let (duplicated, later) = strikes(luck, self.duplication, self.duplication_delay);
        let (held_back, for_long) = strikes(luck, self.reordering, self.reordering_delay);
        let corrupted = luck.chance(self.corruption);
        let copy_corrupted = luck.chance(self.corruption);
        FaultOutcome {
            lost,
            corrupted,
            held_back: held_back.then_some(for_long),
            copy: duplicated.then_some(Duplicate { later, corrupted: copy_corrupted }),
        }
    }
}

fn strikes(luck: &mut Luck, odds: Odds, longest: u64) -> (bool, Duration) {
    (luck.chance(odds), Duration::from_nanos(luck.below(longest).saturating_add(1)))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Flips one to three different bits of a frame, unless the frame is empty.
pub fn corrupt(frame: &mut [u8], luck: &mut Luck) {
    let bits = frame.len() as u64 * 8;
    if bits == 0 {
        return;
    }
    let count = 1 + luck.below(3) as usize;
    let mut flipped = [u64::MAX; 3];
    for turn in 0..count {
        let mut bit = luck.below(bits);
        // A bit that is flipped twice would be as before, and the frame perhaps whole.
        while flipped.contains(&bit) {
            bit = (bit + 1) % bits;
        }
        flipped[turn] = bit;
        frame[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_to_three_bits_are_flipped_and_all_three_counts_occur() {
        let mut luck = Luck::new(3);
        for len in [1, 2, 60] {
            let mut seen = [0; 4];
            for _ in 0..3_000 {
                let mut frame = vec![0_u8; len];
                corrupt(&mut frame, &mut luck);
                let flipped: u32 = frame.iter().map(|byte| byte.count_ones()).sum();
                seen[flipped as usize] += 1;
            }
            assert_eq!(seen[0], 0);
            assert!(seen[1..].iter().all(|times| (900..1_100).contains(times)), "{seen:?}");
        }
        corrupt(&mut [], &mut luck);
    }

    #[test]
    fn one_fault_does_not_change_the_luck_of_another() {
        let few = Faults { reordering: 0.3, ..Faults::NONE };
        let many = Faults { loss: 0.5, duplication: 0.5, corruption: 0.5, ..few };
        let (few, many) = (FaultModel::new(&few), FaultModel::new(&many));
        for seed in 0..1_000 {
            let outcome = few.draw(&mut Luck::new(seed));
            assert_eq!(outcome.held_back, many.draw(&mut Luck::new(seed)).held_back);
        }
    }

    #[test]
    fn delays_are_never_nothing_and_never_more_than_asked() {
        let longest = Duration::from_nanos(3);
        let faults = Faults {
            duplication: 1.0,
            reordering: 1.0,
            duplication_delay: longest,
            reordering_delay: longest,
            ..Faults::NONE
        };
        let model = FaultModel::new(&faults);
        let mut luck = Luck::new(0);
        let mut seen = [false; 4];
        for _ in 0..100 {
            let outcome = model.draw(&mut luck);
            seen[outcome.held_back.unwrap().as_nanos() as usize] = true;
            assert!((1..=3).contains(&outcome.copy.unwrap().later.as_nanos()));
        }
        assert_eq!(seen, [false, true, true, true]);
    }
}
