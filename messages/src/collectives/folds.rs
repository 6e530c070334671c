//! Collectives that combine the members' data, element by element.
//!
//! Values are combined in the order of ranks, so that an operator need not be commutative, and by
//! the same brackets at all members, so that floating-point results are the same everywhere.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use doorbell_am::schedule::{Exchange, Step, Tree, doubling, pairwise};
use futures_util::future::try_join_all;

use super::elements::Combine;
use super::error::GroupError;
use super::links::Links;
use super::mark::{Differ, Mark};
use super::run::Run;

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
pub async fn reduce<L: Links>(
    run: &Run<L>,
    root: usize,
    own: Bytes,
    operator: &mut impl Combine,
) -> Result<Option<Bytes>, GroupError> {
    match own.len() >= LONG && run.size() > 2 {
        true => reduce_in_parts(run, root, own, operator).await,
        false => reduce_by_tree(run, root, own, operator).await,
    }
}

/// Combines along a tree whose root is the member of rank 0, since only then each subtree is in the
/// order of ranks. If another member is the root of the reduction, one more message brings it the
/// result.
async fn reduce_by_tree<L: Links>(
    run: &Run<L>,
    root: usize,
    own: Bytes,
    operator: &mut impl Combine,
) -> Result<Option<Bytes>, GroupError> {
    let (tree, mut value) = (Tree::new(run.rank(), 0, run.size()), own);
    for child in tree.children() {
        let came = run.receive(child.rank, TREE).await?;
        let right = fitting(run, child.rank, operator, &value, came)?;
        value = operator.combined(value, right);
    }
    if let Some(parent) = tree.parent() {
        run.send(parent, TREE, operator.mark().put(&value)).await?;
    }
    match (run.rank(), root) {
        (0, 0) => Ok(Some(value)),
        (0, root) => {
            run.send(root, TO_ROOT, operator.mark().put(&value)).await?;
            Ok(None)
        }
        (rank, root) if rank == root => {
            let came = run.receive(0, TO_ROOT).await?;
            fitting(run, 0, operator, &value, came).map(Some)
        }
        _ => Ok(None),
    }
}

/// Has each member combine one part, and brings the parts to the root.
async fn reduce_in_parts<L: Links>(
    run: &Run<L>,
    root: usize,
    own: Bytes,
    operator: &mut impl Combine,
) -> Result<Option<Bytes>, GroupError> {
    let (len, size, element) = (own.len(), run.size(), operator.element());
    let part = part_of_all(run, own, operator).await?;
    if run.rank() != root {
        return run.send(root, RESULTS, part).await.map(|()| None);
    }
    let parts = try_join_all((0..size).map(|rank| {
        let (part, len) = (part.clone(), part_of(len, rank, size, element).len());
        async move {
            match rank == run.rank() {
                true => Ok(part),
                false => of_length(run, rank, len, run.receive(rank, RESULTS).await?),
            }
        }
    }));
    Ok(Some(joined(len, &parts.await?)))
}

/// Combines what all members have, and gives the result to every member.
pub async fn all_reduce<L: Links>(
    run: &Run<L>,
    own: Bytes,
    operator: &mut impl Combine,
) -> Result<Bytes, GroupError> {
    match own.len() >= LONG && run.size() > 1 {
        true => all_reduce_in_parts(run, own, operator).await,
        false => all_reduce_whole(run, own, operator).await,
    }
}

/// Combines by recursive doubling.
async fn all_reduce_whole<L: Links>(
    run: &Run<L>,
    own: Bytes,
    operator: &mut impl Combine,
) -> Result<Bytes, GroupError> {
    let mut value = own;
    for (round, step) in doubling(run.rank(), run.size()) {
        value = match step {
            Step::Give { to } => {
                run.send(to, round, operator.mark().put(&value)).await?;
                value
            }
            Step::Adopt { from } => {
                let came = run.receive(from, round).await?;
                fitting(run, from, operator, &value, came)?
            }
            Step::Fold { from } => {
                let came = run.receive(from, round).await?;
                let left = fitting(run, from, operator, &value, came)?;
                operator.combined(left, value)
            }
            Step::Swap { with, left } => {
                let exchange = Exchange { round, to: with, from: with };
                let came = run.exchange(exchange, operator.mark().put(&value)).await?;
                let other = fitting(run, with, operator, &value, came)?;
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
async fn all_reduce_in_parts<L: Links>(
    run: &Run<L>,
    own: Bytes,
    operator: &mut impl Combine,
) -> Result<Bytes, GroupError> {
    let (len, rank, size) = (own.len(), run.rank(), run.size());
    let mut parts = vec![Bytes::new(); size];
    parts[rank] = part_of_all(run, own, operator).await?;
    for exchange in pairwise(rank, size) {
        let exchange = Exchange { round: RESULTS + exchange.round, ..exchange };
        let came = run.exchange(exchange, parts[rank].clone()).await?;
        let expected = part_of(len, exchange.from, size, operator.element()).len();
        parts[exchange.from] = of_length(run, exchange.from, expected, came)?;
    }
    Ok(joined(len, &parts))
}

/// Combines this member's part of what all members have.
async fn part_of_all<L: Links>(
    run: &Run<L>,
    own: Bytes,
    operator: &mut impl Combine,
) -> Result<Bytes, GroupError> {
    let (rank, size) = (run.rank(), run.size());
    let element = operator.element();
    let part = |of| own.slice(part_of(own.len(), of, size, element));
    let mut parts = vec![Bytes::new(); size];
    parts[rank] = part(rank);
    for exchange in pairwise(rank, size) {
        // Parts are sent as they lie, without a mark of their own.
        let Exchange { round, to, from } = exchange;
        let [mark, came] = [MARKS, PARTS].map(|first| run.receive(from, first + round));
        let send_mark = run.send(to, MARKS + round, operator.mark().put(&[]));
        let send_part = run.send(to, PARTS + round, part(to));
        // One behind the other, since links may do nothing until a future is polled, and both
        // receives match both messages.
        let receives = async { Ok((mark.await?, came.await?)) };
        let sends = async {
            send_mark.await?;
            send_part.await
        };
        let ((mark, came), ()) = tokio::try_join!(receives, sends)?;
        fitting(run, from, operator, &Bytes::new(), mark)?;
        parts[from] = of_length(run, from, parts[rank].len(), came)?;
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

/// Takes the mark off what came from a member, and checks that the elements are of the same type as
/// the own value, as many, and combined by the same operator.
fn fitting<L: Links>(
    run: &Run<L>,
    from: usize,
    operator: &mut impl Combine,
    own: &Bytes,
    came: Bytes,
) -> Result<Bytes, GroupError> {
    let (came, mark) = Mark::split(came).ok_or_else(|| run.malformed(from))?;
    match operator.mark().meet(mark) {
        Ok(()) => of_length(run, from, own.len(), came),
        Err(Differ::Types) => Err(run.types(from, operator.type_name())),
        Err(Differ::Operators { here, there }) => Err(run.operators(from, here, there)),
    }
}

fn of_length<L: Links>(
    run: &Run<L>,
    from: usize,
    expected: usize,
    came: Bytes,
) -> Result<Bytes, GroupError> {
    match came.len() == expected {
        true => Ok(came),
        false => Err(run.lengths(from, came.len(), expected)),
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
