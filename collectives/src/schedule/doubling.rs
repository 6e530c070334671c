//! Recursive doubling, for reductions whose result every member gets.

/// The next step of a member in an all-reduce, with the value that the member has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Sends the value to another member.
    Give {
        /// The rank of the receiver.
        to: usize,
    },
    /// Receives another value, and combines it with the own value, which goes to the right.
    Fold {
        /// The rank of the sender.
        from: usize,
    },
    /// Exchanges values with another member, and combines the two.
    Swap {
        /// The rank of the other member.
        with: usize,
        /// Whether the other member's value goes to the left.
        left: bool,
    },
    /// Receives the result, which replaces the value.
    Adopt {
        /// The rank of the sender.
        from: usize,
    },
}

/// The steps of an all-reduce for the member `rank` of `size`, each with the number of its round.
///
/// First, as many values must be left as the greatest power of two that does not exceed `size`:
/// among the lowest ranks, each even one gives its value to the next. Then values are swapped over
/// distances of 1, 2, 4 and so on. A value always stands for consecutive ranks, and all members
/// combine the same values with the same bracketing. So an associative operator need not be
/// commutative to give its result in the order of ranks, and floating-point results are the same at
/// every member.
pub fn doubling(rank: usize, size: usize) -> impl Iterator<Item = (u32, Step)> + Send {
    let bits = size.ilog2();
    let pairs = size - (1 << bits);
    let last = bits + 1;
    let paired = rank < 2 * pairs;
    let gives = paired && rank.is_multiple_of(2);
    // The place of the member's value among the values that are swapped.
    let place = if paired { rank / 2 } else { rank - pairs };
    let rank_at = move |place: usize| if place < pairs { 2 * place + 1 } else { place + pairs };
    let first = match (paired, gives) {
        (true, true) => Some(Step::Give { to: rank + 1 }),
        (true, false) => Some(Step::Fold { from: rank - 1 }),
        _ => None,
    };
    let swaps = (0..if gives { 0 } else { bits }).map(move |bit| {
        let other = place ^ (1 << bit);
        (bit + 1, Step::Swap { with: rank_at(other), left: other < place })
    });
    let end = match (paired, gives) {
        (true, true) => Some(Step::Adopt { from: rank + 1 }),
        (true, false) => Some(Step::Give { to: rank - 1 }),
        _ => None,
    };
    first.map(|step| (0, step)).into_iter().chain(swaps).chain(end.map(|step| (last, step)))
}

#[cfg(test)]
mod tests {
    use super::super::rounds;
    use super::*;

    /// Plays all members' steps, round by round, with an operator that shows how it was bracketed.
    fn played(size: usize) -> Vec<String> {
        let schedules: Vec<Vec<_>> = (0..size).map(|rank| doubling(rank, size).collect()).collect();
        let mut has: Vec<String> = (0..size).map(|rank| format!("{rank}")).collect();
        for round in 0..=size.ilog2() + 1 {
            let before = has.clone();
            let in_round = |rank: usize| {
                schedules[rank].iter().find(|(at, _)| *at == round).map(|(_, step)| *step)
            };
            for (rank, has) in has.iter_mut().enumerate() {
                match in_round(rank) {
                    Some(Step::Fold { from }) => {
                        assert_eq!(in_round(from), Some(Step::Give { to: rank }));
                        *has = format!("({} {has})", before[from]);
                    }
                    Some(Step::Swap { with, left }) => {
                        assert_eq!(in_round(with), Some(Step::Swap { with: rank, left: !left }));
                        *has = match left {
                            true => format!("({} {has})", before[with]),
                            false => format!("({has} {})", before[with]),
                        };
                    }
                    Some(Step::Adopt { from }) => {
                        assert_eq!(in_round(from), Some(Step::Give { to: rank }));
                        has.clone_from(&before[from]);
                    }
                    Some(Step::Give { .. }) | None => {}
                }
            }
        }
        has
    }

    #[test]
    fn all_members_have_the_same_result_in_the_order_of_ranks() {
        for size in 1..=33 {
            let has = played(size);
            assert!(has.iter().all(|result| *result == has[0]), "{size} members: {has:?}");
            let flat: Vec<_> =
                has[0].split([' ', '(', ')']).filter(|part| !part.is_empty()).collect();
            let expected: Vec<_> = (0..size).map(|rank| rank.to_string()).collect();
            assert_eq!(flat, expected);
        }
    }

    #[test]
    fn an_all_reduce_takes_two_rounds_more_than_the_logarithm_at_most() {
        for size in 1..=33 {
            for rank in 0..size {
                let steps = doubling(rank, size).count() as u32;
                let most = size.ilog2() + if size.is_power_of_two() { 0 } else { 2 };
                assert!(steps <= most && most <= rounds(size) + 1, "{size} members: {steps}");
            }
        }
    }
}
