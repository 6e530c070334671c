//! The pairwise exchange, in which every member sends to every other.

use super::{Exchange, ahead, behind};

/// The rounds in which the member `rank` of `size` sends to each other member, and receives from
/// each. In round `k` it sends to the member whose rank is higher by `k + 1`, and receives from the
/// member whose rank is lower by `k + 1`, both modulo `size`. So in each round a member is sent to
/// by only one other.
pub fn pairwise(rank: usize, size: usize) -> impl Iterator<Item = Exchange> + Send {
    (1..size).map(move |distance| Exchange {
        round: distance as u32 - 1,
        to: ahead(rank, distance, size),
        from: behind(rank, distance, size),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_member_meets_every_other_once_and_none_is_crowded() {
        for size in 1..=33 {
            for rank in 0..size {
                let others: BTreeSet<_> = (0..size).filter(|other| *other != rank).collect();
                let schedule: Vec<_> = pairwise(rank, size).collect();
                assert_eq!(schedule.len(), size - 1);
                assert_eq!(
                    schedule.iter().map(|exchange| exchange.to).collect::<BTreeSet<_>>(),
                    others
                );
                for Exchange { round, to, .. } in schedule {
                    let there = pairwise(to, size).nth(round as usize);
                    assert_eq!(there.map(|exchange| exchange.from), Some(rank));
                }
            }
        }
    }
}
