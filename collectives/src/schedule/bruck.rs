//! The all-gather algorithm of Bruck and others, for any number of members.

use super::{Exchange, ahead, behind, rounds};

/// A round of an all-gather: the partners of a member, and the number of blocks that go each way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gathering {
    /// The member that is sent to, and the member that is received from.
    pub exchange: Exchange,
    /// How many of its blocks the member sends, beginning with its own one; it receives as many.
    pub blocks: usize,
}

/// The rounds of an all-gather for the member `rank` of `size`. A member has the blocks of
/// consecutive ranks, beginning with its own and wrapping around after the last rank; at first only
/// its own block. In each round the member sends what it has, or as much as is still missing, to a
/// member of a lower rank, and appends what comes from a member of a higher rank. The distance
/// between the ranks is the number of blocks that the member has.
pub fn bruck(rank: usize, size: usize) -> impl Iterator<Item = Gathering> + Send {
    (0..rounds(size)).map(move |round| {
        let has = 1 << round;
        let (to, from) = (behind(rank, has, size), ahead(rank, has, size));
        Gathering { exchange: Exchange { round, to, from }, blocks: has.min(size - has) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_has_all_blocks_in_order_from_its_own_on() {
        for size in 1..=33 {
            let mut blocks: Vec<Vec<usize>> = (0..size).map(|rank| vec![rank]).collect();
            let schedules: Vec<Vec<_>> =
                (0..size).map(|rank| bruck(rank, size).collect()).collect();
            for round in 0..rounds(size) as usize {
                let before = blocks.clone();
                for (rank, schedule) in schedules.iter().enumerate() {
                    let Gathering { exchange, blocks: count } = schedule[round];
                    let there = schedules[exchange.from][round];
                    assert_eq!((there.exchange.to, there.blocks), (rank, count));
                    blocks[rank].extend(&before[exchange.from][..count]);
                }
            }
            for (rank, blocks) in blocks.iter().enumerate() {
                let expected: Vec<_> = (0..size).map(|at| (rank + at) % size).collect();
                assert_eq!(*blocks, expected, "{size} members");
            }
        }
    }
}
