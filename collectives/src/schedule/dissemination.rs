//! The dissemination barrier algorithm of Hensgen, Finkel and Manber.

use super::{Exchange, ahead, behind, rounds};

/// The rounds of a barrier for the member `rank` of `size`. In round `k` the member sends to the
/// member whose rank is higher by `2^k`, and receives from the member whose rank is lower by `2^k`,
/// both modulo `size`. After ⌈log₂ size⌉ rounds each member has heard from all others, directly or
/// through others.
pub fn dissemination(rank: usize, size: usize) -> impl Iterator<Item = Exchange> + Send {
    (0..rounds(size)).map(move |round| Exchange {
        round,
        to: ahead(rank, 1 << round, size),
        from: behind(rank, 1 << round, size),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_member_has_heard_of_all_after_the_logarithm_of_rounds() {
        for size in 1..=33 {
            let schedules: Vec<Vec<_>> =
                (0..size).map(|rank| dissemination(rank, size).collect()).collect();
            let mut heard: Vec<BTreeSet<usize>> = (0..size).map(|rank| [rank].into()).collect();
            for round in 0..rounds(size) as usize {
                let before = heard.clone();
                for (rank, schedule) in schedules.iter().enumerate() {
                    let Exchange { to, from, .. } = schedule[round];
                    assert_eq!(schedules[to][round].from, rank, "{size} members, round {round}");
                    heard[rank].extend(&before[from]);
                }
            }
            assert!(schedules.iter().all(|schedule| schedule.len() == rounds(size) as usize));
            assert!(heard.iter().all(|heard| heard.len() == size), "{size} members");
        }
    }

    #[test]
    fn a_member_sends_to_no_other_twice() {
        for size in 1..=33 {
            let to: Vec<_> = dissemination(0, size).map(|exchange| exchange.to).collect();
            let different: BTreeSet<_> = to.iter().collect();
            assert_eq!(different.len(), to.len(), "{size} members");
        }
    }
}
