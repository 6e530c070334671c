//! Scans, in which each member gets the combination of the values of all members up to itself.

use super::rounds;

/// A round of a scan: the value that the member has combined so far goes to a member of a higher
/// rank, and the value that comes from a member of a lower rank is combined to the left of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    /// The number of the round, from 0.
    pub round: u32,
    /// The rank of the member that is sent to; `None` if no member has so high a rank.
    pub to: Option<usize>,
    /// The rank of the member that is received from; `None` if the rank would be below zero.
    pub from: Option<usize>,
}

/// The rounds of a scan for the member `rank` of `size`, by the scheme of Hillis and Steele. Before
/// round `k` the member has combined the values of the `2^k` members up to itself; in that round it
/// sends the result to the member whose rank is higher by `2^k`.
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
