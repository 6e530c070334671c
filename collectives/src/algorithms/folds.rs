//! Collectives that combine the members' data, element by element.
//!
//! Values are combined in the order of ranks, so that an operator need not be commutative, and by
//! the same brackets at all members, so that floating-point results are the same everywhere.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use futures_util::future::try_join_all;

use crate::communicator::{Fault, Rounds};
use crate::elements::Combine;
use crate::schedule::{Exchange, Prefix, Step, Tree, doubling, pairwise, prefix};

/// The length from which each member combines a part of the data for all.
const LONG: usize = 32 << 10;

/// The round of messages from children to their parents.
const TREE: u32 = 0;
/// The round of the message that brings the result to the root.
const TO_ROOT: u32 = 1;
/// The first round in which parts are exchanged that are to be combined.
const PARTS: u32 = 256;
/// The first round in which parts of the result are exchanged.
const RESULTS: u32 = 512;
/// The first round in which members tell each other what the parts are that follow.
const MARKS: u32 = 768;

/// Combines what all members have, and gives the result to the root. The others get `None`.
pub async fn reduce<R: Rounds>(
    rounds: &R,
    root: usize,
    own: Bytes,
    operator: &mut impl Combine,
) -> Result<Option<Bytes>, R::Failure> {
    match operator.element() {
        Some(element) if R::DIVIDES && own.len() >= LONG && rounds.size() > 2 => {
            Box::pin(reduce_in_parts(rounds, root, own, operator, element)).await
        }
        _ => reduce_by_tree(rounds, root, own, operator).await,
    }
}

/// Combines along a tree whose root is the member of rank 0, since only then each subtree is in the
/// order of ranks. If another member is the root of the reduction, one more message brings it the
/// result.
async fn reduce_by_tree<R: Rounds>(
    rounds: &R,
    root: usize,
    own: Bytes,
    operator: &mut impl Combine,
) -> Result<Option<Bytes>, R::Failure> {
    let (tree, mut value) = (Tree::new(rounds.rank(), 0, rounds.size()), own);
    for child in tree.children() {
        let came = rounds.receive(child.rank, TREE).await?;
        let right = fitting(rounds, child.rank, operator, &value, came)?;
        value = operator.combined(value, right);
    }
    if let Some(parent) = tree.parent() {
        rounds.send(parent, TREE, operator.put(&value)).await?;
    }
    match (rounds.rank(), root) {
        (0, 0) => Ok(Some(value)),
        (0, root) => {
            rounds.send(root, TO_ROOT, operator.put(&value)).await?;
            Ok(None)
        }
        (rank, root) if rank == root => {
            let came = rounds.receive(0, TO_ROOT).await?;
            fitting(rounds, 0, operator, &value, came).map(Some)
        }
        _ => Ok(None),
    }
}

/// Has each member combine one part, and brings the parts to the root.
async fn reduce_in_parts<R: Rounds>(
    rounds: &R,
    root: usize,
    own: Bytes,
    operator: &mut impl Combine,
    element: usize,
) -> Result<Option<Bytes>, R::Failure> {
    let (len, size) = (own.len(), rounds.size());
    let part = part_of_all(rounds, own, operator, element).await?;
    if rounds.rank() != root {
        return rounds.send(root, RESULTS, part).await.map(|()| None);
    }
    let parts = try_join_all((0..size).map(|rank| {
        let (part, len) = (part.clone(), part_of(len, rank, size, element).len());
        async move {
            match rank == rounds.rank() {
                true => Ok(part),
                false => of_length(rounds, rank, len, rounds.receive(rank, RESULTS).await?),
            }
        }
    }));
    Ok(Some(joined(len, &parts.await?)))
}

/// Combines what all members have, and gives the result to every member.
pub async fn all_reduce<R: Rounds>(
    rounds: &R,
    own: Bytes,
    operator: &mut impl Combine,
) -> Result<Bytes, R::Failure> {
    match operator.element() {
        Some(element) if R::DIVIDES && own.len() >= LONG && rounds.size() > 1 => {
            Box::pin(all_reduce_in_parts(rounds, own, operator, element)).await
        }
        _ => all_reduce_whole(rounds, own, operator).await,
    }
}

/// Combines by recursive doubling.
async fn all_reduce_whole<R: Rounds>(
    rounds: &R,
    own: Bytes,
    operator: &mut impl Combine,
) -> Result<Bytes, R::Failure> {
    let mut value = own;
    for (round, step) in doubling(rounds.rank(), rounds.size()) {
        value = match step {
            Step::Give { to } => {
                rounds.send(to, round, operator.put(&value)).await?;
                value
            }
            Step::Adopt { from } => {
                let came = rounds.receive(from, round).await?;
                fitting(rounds, from, operator, &value, came)?
            }
            Step::Fold { from } => {
                let came = rounds.receive(from, round).await?;
                let left = fitting(rounds, from, operator, &value, came)?;
                operator.combined(left, value)
            }
            Step::Swap { with, left } => {
                let exchange = Exchange { round, to: with, from: with };
                let came = rounds.exchange(exchange, operator.put(&value)).await?;
                let other = fitting(rounds, with, operator, &value, came)?;
                match left {
                    true => operator.combined(other, value),
                    false => operator.combined(value, other),
                }
            }
        };
    }
    Ok(value)
}

/// Has each member combine one part, and brings the parts to all.
async fn all_reduce_in_parts<R: Rounds>(
    rounds: &R,
    own: Bytes,
    operator: &mut impl Combine,
    element: usize,
) -> Result<Bytes, R::Failure> {
    let (len, rank, size) = (own.len(), rounds.rank(), rounds.size());
    let mut parts = vec![Bytes::new(); size];
    parts[rank] = part_of_all(rounds, own, operator, element).await?;
    for exchange in pairwise(rank, size) {
        let exchange = Exchange { round: RESULTS + exchange.round, ..exchange };
        let came = rounds.exchange(exchange, parts[rank].clone()).await?;
        let expected = part_of(len, exchange.from, size, element).len();
        parts[exchange.from] = of_length(rounds, exchange.from, expected, came)?;
    }
    Ok(joined(len, &parts))
}

/// Combines what the members up to this one have, with this member's own value and without: the
/// results of an inclusive and of an exclusive scan. The latter is `None` at the member of rank 0.
pub async fn scan<R: Rounds>(
    rounds: &R,
    own: Bytes,
    operator: &mut impl Combine,
) -> Result<(Bytes, Option<Bytes>), R::Failure> {
    let (mut with, mut without): (Bytes, Option<Bytes>) = (own, None);
    for Prefix { round, to, from } in prefix(rounds.rank(), rounds.size()) {
        let came = match (to, from) {
            (Some(to), Some(from)) => {
                let exchange = Exchange { round, to, from };
                Some((from, rounds.exchange(exchange, operator.put(&with)).await?))
            }
            (Some(to), None) => {
                rounds.send(to, round, operator.put(&with)).await?;
                None
            }
            (None, Some(from)) => Some((from, rounds.receive(from, round).await?)),
            (None, None) => None,
        };
        let Some((from, came)) = came else { continue };
        let left = fitting(rounds, from, operator, &with, came)?;
        without = Some(match without {
            Some(without) => operator.combined(left.clone(), without),
            None => left.clone(),
        });
        with = operator.combined(left, with);
    }
    Ok((with, without))
}

/// Combines this member's part of what all members have.
async fn part_of_all<R: Rounds>(
    rounds: &R,
    own: Bytes,
    operator: &mut impl Combine,
    element: usize,
) -> Result<Bytes, R::Failure> {
    let (rank, size) = (rounds.rank(), rounds.size());
    let part = |of| own.slice(part_of(own.len(), of, size, element));
    let mut parts = vec![Bytes::new(); size];
    parts[rank] = part(rank);
    for exchange in pairwise(rank, size) {
        // Parts are sent as they lie, without a mark of their own.
        let Exchange { round, to, from } = exchange;
        let [mark, came] = [MARKS, PARTS].map(|first| rounds.receive(from, first + round));
        let send_mark = rounds.send(to, MARKS + round, operator.put(&Bytes::new()));
        let send_part = rounds.send(to, PARTS + round, part(to));
        // One behind the other, since links may do nothing until a future is polled, and both
        // receives match both messages.
        let receives = async { Ok((mark.await?, came.await?)) };
        let sends = async {
            send_mark.await?;
            send_part.await
        };
        let ((mark, came), ()) = tokio::try_join!(receives, sends)?;
        fitting(rounds, from, operator, &Bytes::new(), mark)?;
        parts[from] = of_length(rounds, from, parts[rank].len(), came)?;
    }
    let combined = parts.into_iter().reduce(|left, right| operator.combined(left, right));
    Ok(combined.unwrap_or_default())
}

/// The bytes of `len` that the member `rank` of `size` combines, in whole elements.
fn part_of(len: usize, rank: usize, size: usize, element: usize) -> Range<usize> {
    let elements = len / element;
    let at = |rank: usize| {
        let (each, more) = (elements / size, elements % size);
        element * (rank * each + rank.min(more))
    };
    at(rank)..at(rank + 1)
}

fn joined(len: usize, parts: &[Bytes]) -> Bytes {
    let mut whole = BytesMut::with_capacity(len);
    parts.iter().for_each(|part| whole.extend_from_slice(part));
    whole.freeze()
}

/// Takes the value out of what came from a member, which is to be combined with the own value.
fn fitting<R: Rounds>(
    rounds: &R,
    from: usize,
    operator: &mut impl Combine,
    own: &Bytes,
    came: Bytes,
) -> Result<Bytes, R::Failure> {
    operator.take(own, came).map_err(|fault| rounds.failure(from, fault))
}

fn of_length<R: Rounds>(
    rounds: &R,
    from: usize,
    expected: usize,
    came: Bytes,
) -> Result<Bytes, R::Failure> {
    let found = came.len();
    match found == expected {
        true => Ok(came),
        false => Err(rounds.failure(from, Fault::Lengths { found, expected })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_members_follow_each_other_and_have_whole_elements() {
        for (size, elements, element) in [(1, 5, 8), (3, 0, 8), (4, 3, 1), (7, 100, 16)] {
            let mut end = 0;
            for rank in 0..size {
                let part = part_of(elements * element, rank, size, element);
                assert_eq!((part.start, part.len() % element), (end, 0));
                end = part.end;
            }
            assert_eq!(end, elements * element);
        }
    }
}
