//! Collectives that move the members' data as it is.

use bytes::Bytes;
use doorbell_am::schedule::{Exchange, Gathering, Tree, bruck, dissemination, pairwise};
use futures_util::future::try_join_all;

use super::blocks::{APART, Block, pack, unpack};
use super::error::GroupError;
use super::links::Links;
use super::run::Run;

/// The round of messages along a tree.
const TREE: u32 = 0;
/// The round of blocks that go by themselves, behind all rounds of the schedules before.
const DIRECT: u32 = 512;

/// Waits until all members have begun the barrier.
pub async fn barrier<L: Links>(run: &Run<L>) -> Result<(), GroupError> {
    for exchange in dissemination(run.rank(), run.size()) {
        run.exchange(exchange, Bytes::new()).await?;
    }
    Ok(())
}

/// Gives the root what all members have, in the order of their ranks. The others get `None`.
pub async fn gather<L: Links>(
    run: &Run<L>,
    root: usize,
    own: Bytes,
) -> Result<Option<Vec<Bytes>>, GroupError> {
    let tree = Tree::new(run.rank(), root, run.size());
    let block = if run.rank() == root { Block::Here(own.clone()) } else { Block::of(&own) };
    let mut blocks = vec![block];
    for child in tree.children() {
        let message = run.receive(child.rank, TREE).await?;
        blocks.extend(blocks_of(run, child.rank, message, child.members)?);
    }
    if let Some(parent) = tree.parent() {
        run.send(parent, TREE, pack(&blocks)).await?;
        if own.len() >= APART {
            run.send(root, DIRECT, own).await?;
        }
        return Ok(None);
    }
    blocks.rotate_right(root);
    let comes = blocks.into_iter().enumerate().map(|(rank, block)| whole(run, rank, DIRECT, block));
    try_join_all(comes).await.map(Some)
}

/// Gives each member its part of what the root has: `parts` has one for each member, in the order
/// of ranks, and is ignored at the others.
pub async fn scatter<L: Links>(
    run: &Run<L>,
    root: usize,
    mut parts: Vec<Bytes>,
) -> Result<Bytes, GroupError> {
    let tree = Tree::new(run.rank(), root, run.size());
    let mut blocks = match tree.parent() {
        Some(parent) => {
            let message = run.receive(parent, TREE).await?;
            blocks_of(run, parent, message, tree.members())?
        }
        None => {
            let mut blocks: Vec<_> = parts.iter().map(Block::of).collect();
            blocks.rotate_left(root);
            blocks
        }
    };
    let below = tree.children().rev().map(|child| {
        let below = &blocks[child.offset..child.offset + child.members];
        run.send(child.rank, TREE, pack(below))
    });
    try_join_all(below).await?;
    if run.rank() != root {
        return whole(run, root, DIRECT, blocks.swap_remove(0)).await;
    }
    let own = std::mem::take(&mut parts[root]);
    let long = parts.into_iter().enumerate().filter(|(_, part)| part.len() >= APART);
    try_join_all(long.map(|(rank, part)| run.send(rank, DIRECT, part))).await?;
    Ok(own)
}

/// Gives every member what all members have, in the order of ranks.
///
/// Long blocks go from each member to each other in the rounds of a pairwise exchange, after the
/// members have learned of them.
pub async fn all_gather<L: Links>(run: &Run<L>, own: Bytes) -> Result<Vec<Bytes>, GroupError> {
    let (rank, size) = (run.rank(), run.size());
    let mut blocks = vec![Block::of(&own)];
    for Gathering { exchange, blocks: count } in bruck(rank, size) {
        let came = run.exchange(exchange, pack(&blocks[..count])).await?;
        blocks.extend(blocks_of(run, exchange.from, came, count)?);
    }
    blocks.rotate_right(rank);
    blocks[rank] = Block::Here(own.clone());
    let mut bodies = vec![Bytes::new(); size];
    for Exchange { round, to, from } in pairwise(rank, size) {
        let block = std::mem::replace(&mut blocks[from], Block::Apart(0));
        let comes = whole(run, from, DIRECT + round, block);
        bodies[from] = match own.len() >= APART {
            true => tokio::try_join!(run.send(to, DIRECT + round, own.clone()), comes)?.1,
            false => comes.await?,
        };
    }
    bodies[rank] = own;
    Ok(bodies)
}

/// Exchanges a part between each two members. The parts that a member passes, one for each member,
/// and the parts that it gets, one from each member, are in the order of ranks.
pub async fn all_to_all<L: Links>(
    run: &Run<L>,
    mut parts: Vec<Bytes>,
) -> Result<Vec<Bytes>, GroupError> {
    let mut came = vec![Bytes::new(); run.size()];
    came[run.rank()] = std::mem::take(&mut parts[run.rank()]);
    for exchange in pairwise(run.rank(), run.size()) {
        let part = std::mem::take(&mut parts[exchange.to]);
        came[exchange.from] = run.exchange(exchange, part).await?;
    }
    Ok(came)
}

/// Returns the bytes of a block, which are received from the member if they come by themselves.
async fn whole<L: Links>(
    run: &Run<L>,
    from: usize,
    round: u32,
    block: Block,
) -> Result<Bytes, GroupError> {
    let len = match block {
        Block::Here(bytes) => return Ok(bytes),
        Block::Apart(len) => len,
    };
    let bytes = run.receive(from, round).await?;
    match bytes.len() == len {
        true => Ok(bytes),
        false => Err(run.lengths(from, bytes.len(), len)),
    }
}

/// Unpacks a message of `count` blocks.
fn blocks_of<L: Links>(
    run: &Run<L>,
    from: usize,
    message: Bytes,
    count: usize,
) -> Result<Vec<Block>, GroupError> {
    unpack(message, count).ok_or_else(|| run.malformed(from))
}
