//! Scans: what the members up to each one have together.

use super::rounds;

/// A round of a scan: what the member has folded so far goes to a member of a higher rank, and what
/// comes from one of a lower rank is put to the left of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    /// The number of the round, from 0.
    pub round: u32,
    /// The member that is sent to, unless there is none of so high a rank.
    pub to: Option<usize>,
    /// The member that is received from, unless there is none of so low a rank.
    pub from: Option<usize>,
}

/// The rounds of a scan for one member of `size`, by the scheme of Hillis and Steele: before round
/// `k` the member has folded what the `2^k` members up to itself gave, and that goes to the one
/// `2^k` ranks behind.
pub fn prefix(rank: usize, size: usize) -> impl Iterator<Item = Prefix> + Send {
    (0..rounds(size)).map(move |round| {
        let to = Some(rank + (1 << round)).filter(|to| *to < size);
        Prefix { round, to, from: rank.checked_sub(1 << round) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_has_what_those_up_to_it_gave_in_the_order_of_ranks() {
        for size in 1..=33 {
            let mut has: Vec<Vec<usize>> = (0..size).map(|rank| vec![rank]).collect();
            for round in 0..rounds(size) as usize {
                let before = has.clone();
                for (rank, has) in has.iter_mut().enumerate() {
                    let here = prefix(rank, size).nth(round).expect("as many rounds");
                    let Some(from) = here.from else { continue };
                    let there = prefix(from, size).nth(round).expect("as many rounds");
                    assert_eq!(there.to, Some(rank));
                    has.splice(0..0, before[from].iter().copied());
                }
            }
            for (rank, has) in has.iter().enumerate() {
                assert_eq!(*has, (0..=rank).collect::<Vec<_>>(), "{size} members");
            }
        }
    }
}
