//! Schedules of collectives: the partners of each member in each round.
//!
//! A schedule is computed from a member's rank and the number of members alone, without any input
//! or output. All members compute their schedules by the same rule, so that each message that one
//! schedule sends is received by another.
//!
//! ```
//! use doorbell_collectives::schedule::{Exchange, dissemination};
//!
//! // A barrier of five members, as member 3 takes part in it.
//! let rounds: Vec<_> = dissemination(3, 5).map(|Exchange { to, from, .. }| (to, from)).collect();
//! assert_eq!(rounds, [(4, 2), (0, 1), (2, 4)]);
//! ```
//!
//! | schedule | for |
//! |---|---|
//! | [`dissemination`] | barriers |
//! | [`Tree`] | broadcasts, gathers, scatters and reductions |
//! | [`doubling`] | reductions whose result every member gets |
//! | [`bruck`] | all-gathers |
//! | [`pairwise`] | all-to-alls |
//! | [`prefix`] | scans |
//!
//! Each takes the rank of a member and the number of members, which is at least 1 and more than
//! the rank.

mod bruck;
mod dissemination;
mod doubling;
mod pairwise;
mod prefix;
mod tree;

pub use bruck::{Gathering, bruck};
pub use dissemination::dissemination;
pub use doubling::{Step, doubling};
pub use pairwise::pairwise;
pub use prefix::{Prefix, prefix};
pub use tree::{Child, Tree};

/// A round in which a member sends to one member and receives from another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// The number of the round, from 0.
    pub round: u32,
    /// The member that is sent to.
    pub to: usize,
    /// The member that is received from.
    pub from: usize,
}

/// The number of rounds in which something that doubles in each round reaches `size` members: the
/// logarithm to base two, rounded up.
pub const fn rounds(size: usize) -> u32 {
    size.next_power_of_two().trailing_zeros()
}

/// The member whose rank is higher by `distance`, modulo `size`.
fn ahead(rank: usize, distance: usize, size: usize) -> usize {
    (rank + distance) % size
}

/// The member whose rank is lower by `distance`, modulo `size`.
fn behind(rank: usize, distance: usize, size: usize) -> usize {
    (rank + size - distance % size) % size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_rounds_is_the_logarithm_rounded_up() {
        let expected =
            [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (33, 6), (1024, 10)];
        for (size, count) in expected {
            assert_eq!(rounds(size), count, "{size} members");
        }
    }

    #[test]
    fn the_members_before_and_behind_are_each_others() {
        for size in 1..=9 {
            for (rank, distance) in (0..size).flat_map(|rank| (0..size).map(move |d| (rank, d))) {
                assert_eq!(behind(ahead(rank, distance, size), distance, size), rank);
            }
        }
    }
}
