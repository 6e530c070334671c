//! The all-gather of Bruck and others, for any number of members.

use super::{Exchange, ahead, behind, rounds};

/// A round of an all-gather: who is sent to, who is received from, and how many blocks go each way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gathering {
    /// Who is sent to, and who is received from.
    pub exchange: Exchange,
    /// How many of the blocks that the member has are sent, from its own one on; as many come.
    pub blocks: usize,
}

/// The rounds of an all-gather for one member of `size`. A member has the blocks of the ranks from
/// its own on, around the end; at first one. In each round it sends what it has, or as much as is
/// still missing, to the member before, and appends what comes from the member behind.
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
