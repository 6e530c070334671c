//! Collectives that move data between members.

use bytes::Bytes;

use crate::group::collectives::blocks::{pack, unpack};
use crate::group::collectives::run::Run;
use crate::group::failure::{Cause, Failure};
use doorbell_collectives::schedule::{Exchange, Tree, bruck, pairwise};

/// The round of messages between parents and children of a tree: at most one for each pair.
const TREE: u32 = 0;

/// Gives all members what the root has. The `own` bytes of the others are ignored.
pub(in crate::group) async fn broadcast(
    run: &Run,
    root: usize,
    own: Bytes,
) -> Result<Bytes, Failure> {
    run.enter().await?;
    let tree = Tree::new(run.rank(), root, run.size());
    let bytes = match tree.parent() {
        Some(parent) => run.receive(parent, TREE).await?,
        None => own,
    };
    run.send_all(tree.children().rev().map(|child| (child.rank, bytes.clone())), TREE).await?;
    Ok(bytes)
}

/// Gives the root what all members have, in the order of their ranks. The others get `None`.
pub(in crate::group) async fn gather(
    run: &Run,
    root: usize,
    own: Bytes,
) -> Result<Option<Vec<Bytes>>, Failure> {
    run.enter().await?;
    let tree = Tree::new(run.rank(), root, run.size());
    let mut blocks = vec![own];
    for child in tree.children() {
        let message = run.receive(child.rank, TREE).await?;
        blocks.extend(blocks_of(run, child.rank, message, child.members)?);
    }
    let Some(parent) = tree.parent() else {
        blocks.rotate_right(root);
        return Ok(Some(blocks));
    };
    run.send(parent, TREE, &pack(blocks.iter())).await?;
    Ok(None)
}

/// Gives each member its part of what the root has: `parts` has one for each member, in the order
/// of ranks, and is ignored at the others.
pub(in crate::group) async fn scatter(
    run: &Run,
    root: usize,
    parts: Option<Vec<Bytes>>,
) -> Result<Bytes, Failure> {
    run.enter().await?;
    let tree = Tree::new(run.rank(), root, run.size());
    let mut blocks = match tree.parent() {
        Some(parent) => {
            let message = run.receive(parent, TREE).await?;
            blocks_of(run, parent, message, tree.members())?
        }
        None => {
            let mut parts = parts.unwrap_or_default();
            parts.rotate_left(root);
            parts
        }
    };
    let below = tree.children().rev().map(|child| {
        let below = &blocks[child.offset..child.offset + child.members];
        (child.rank, pack(below.iter()))
    });
    run.send_all(below, TREE).await?;
    Ok(blocks.swap_remove(0))
}

/// Gives every member what all members have, in the order of ranks.
pub(in crate::group) async fn all_gather(run: &Run, own: Bytes) -> Result<Vec<Bytes>, Failure> {
    run.enter().await?;
    let mut blocks = vec![own];
    for round in bruck(run.rank(), run.size()) {
        let message = pack(blocks[..round.blocks].iter());
        let came = run.exchange(round.exchange, &message).await?;
        blocks.extend(blocks_of(run, round.exchange.from, came, round.blocks)?);
    }
    blocks.rotate_right(run.rank());
    Ok(blocks)
}

/// Exchanges a part between each two members. The parts that a member passes, one for each member,
/// and the parts that it gets, one from each member, are in the order of ranks.
pub(in crate::group) async fn all_to_all(
    run: &Run,
    mut parts: Vec<Bytes>,
) -> Result<Vec<Bytes>, Failure> {
    run.enter().await?;
    let mut came = vec![Bytes::new(); run.size()];
    came[run.rank()] = std::mem::take(&mut parts[run.rank()]);
    for exchange in pairwise(run.rank(), run.size()) {
        let Exchange { to, from, .. } = exchange;
        let part = std::mem::take(&mut parts[to]);
        came[from] = run.exchange(exchange, &part).await?;
    }
    Ok(came)
}

/// Unpacks a message of `count` blocks. A message that is malformed is a failure of its sender.
fn blocks_of(run: &Run, from: usize, message: Bytes, count: usize) -> Result<Vec<Bytes>, Failure> {
    let malformed = || run.failure_of(from, Cause::Malformed);
    unpack(message, count).ok_or_else(malformed)
}
