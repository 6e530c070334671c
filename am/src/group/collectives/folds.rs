//! Collectives that combine the members' data by an operator: reductions and scans.
//!
//! The left operand of an operator is what members of lower ranks gave, and takes the result. The
//! right operand is what members of higher ranks gave.

use bytes::Bytes;

use crate::group::collectives::run::Run;
use crate::group::failure::Failure;
use doorbell_collectives::schedule::{Exchange, Step, Tree, doubling, prefix};

/// The round of messages from children to their parents.
const TREE: u32 = 0;
/// The round of the message that brings the result to the root.
const TO_ROOT: u32 = 1;

/// Combines what all members have, in the order of their ranks, and gives the result to the root.
/// The others get `None`.
///
/// The root of the tree is always the member of rank 0, since only then is each subtree in the
/// order of ranks. If another member is the root of the reduction, one more message brings it the
/// result.
pub(in crate::group) async fn reduce(
    run: &Run,
    root: usize,
    own: Bytes,
    op: &mut impl FnMut(&mut Vec<u8>, &[u8]),
) -> Result<Option<Bytes>, Failure> {
    run.enter().await?;
    let tree = Tree::new(run.rank(), 0, run.size());
    let mut value = own;
    for child in tree.children() {
        let right = run.receive(child.rank, TREE).await?;
        value = folded(value, &right, op);
    }
    if let Some(parent) = tree.parent() {
        run.send(parent, TREE, &value).await?;
    }
    match (run.rank(), root) {
        (0, 0) => Ok(Some(value)),
        (0, root) => run.send(root, TO_ROOT, &value).await.map(|()| None),
        (rank, root) if rank == root => run.receive(0, TO_ROOT).await.map(Some),
        _ => Ok(None),
    }
}

/// Combines what all members have, in the order of their ranks and with the same bracketing at all
/// members, and gives the result to every member.
pub(in crate::group) async fn all_reduce(
    run: &Run,
    own: Bytes,
    op: &mut impl FnMut(&mut Vec<u8>, &[u8]),
) -> Result<Bytes, Failure> {
    run.enter().await?;
    let mut value = own;
    for (round, step) in doubling(run.rank(), run.size()) {
        match step {
            Step::Give { to } => run.send(to, round, &value).await?,
            Step::Adopt { from } => value = run.receive(from, round).await?,
            Step::Fold { from } => {
                let left = run.receive(from, round).await?;
                value = folded(left, &value, op);
            }
            Step::Swap { with, left } => {
                let exchange = Exchange { round, to: with, from: with };
                let other = run.exchange(exchange, &value).await?;
                value = match left {
                    true => folded(other, &value, op),
                    false => folded(value, &other, op),
                };
            }
        }
    }
    Ok(value)
}

/// Combines what the members up to this one have, with this member's own data and without: the
/// results of an inclusive and of an exclusive scan. The latter is `None` at the member of rank 0.
pub(in crate::group) async fn scan(
    run: &Run,
    own: Bytes,
    op: &mut impl FnMut(&mut Vec<u8>, &[u8]),
) -> Result<(Bytes, Option<Bytes>), Failure> {
    run.enter().await?;
    let mut with: Bytes = own;
    let mut without: Option<Bytes> = None;
    for round in prefix(run.rank(), run.size()) {
        let number = round.round;
        let left = match (round.to, round.from) {
            (Some(to), Some(from)) => {
                let exchange = Exchange { round: number, to, from };
                Some(run.exchange(exchange, &with).await?)
            }
            (Some(to), None) => run.send(to, number, &with).await.map(|()| None)?,
            (None, Some(from)) => Some(run.receive(from, number).await?),
            (None, None) => None,
        };
        let Some(left) = left else { continue };
        without = Some(match without {
            Some(without) => folded(left.clone(), &without, op),
            None => left.clone(),
        });
        with = folded(left, &with, op);
    }
    Ok((with, without))
}

/// Combines two values by an operator. The bytes of the left value are not copied, unless something
/// else shares them.
fn folded(left: Bytes, right: &[u8], op: &mut impl FnMut(&mut Vec<u8>, &[u8])) -> Bytes {
    let mut left = Vec::from(left);
    op(&mut left, right);
    left.into()
}
