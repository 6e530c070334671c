//! Collectives that move the members' data as it is.

use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::blocks::{APART, Block, pack, unpack};
use crate::communicator::{Fault, Rounds};
use crate::schedule::{Exchange, Gathering, Tree, bruck, pairwise};

/// The round of messages along a tree.
const TREE: u32 = 0;
/// The round of blocks that go by themselves, behind all rounds of the schedules before.
const DIRECT: u32 = 512;

/// Gives the root what all members have, in the order of their ranks. The others get `None`.
pub async fn gather<R: Rounds>(
    rounds: &R,
    root: usize,
    own: Bytes,
) -> Result<Option<Vec<Bytes>>, R::Failure> {
    let tree = Tree::new(rounds.rank(), root, rounds.size());
    let is_apart = R::DIVIDES && own.len() >= APART;
    let mut blocks = vec![match rounds.rank() == root {
        true => Block::Here(own.clone()),
        false => block_of::<R>(&own),
    }];
    for child in tree.children() {
        let message = rounds.receive(child.rank, TREE).await?;
        blocks.extend(blocks_of(rounds, child.rank, message, child.members)?);
    }
    if let Some(parent) = tree.parent() {
        rounds.send(parent, TREE, pack(&blocks, R::DIVIDES)).await?;
        if is_apart {
            rounds.send(root, DIRECT, own).await?;
        }
        return Ok(None);
    }
    drop(own);
    blocks.rotate_right(root);
    all_whole(rounds, blocks).await.map(Some)
}

/// Gives each member its part of what the root has: `parts` has one for each member, in the order
/// of ranks, and is ignored at the others.
pub async fn scatter<R: Rounds>(
    rounds: &R,
    root: usize,
    mut parts: Vec<Bytes>,
) -> Result<Bytes, R::Failure> {
    let tree = Tree::new(rounds.rank(), root, rounds.size());
    let mut blocks = match tree.parent() {
        Some(parent) => {
            let message = rounds.receive(parent, TREE).await?;
            blocks_of(rounds, parent, message, tree.members())?
        }
        None => {
            let mut blocks: Vec<_> = parts.iter().map(block_of::<R>).collect();
            blocks.rotate_left(root);
            blocks
        }
    };
    let below = tree.children().rev().map(|child| {
        let below = &blocks[child.offset..child.offset + child.members];
        (child.rank, pack(below, R::DIVIDES))
    });
    rounds.send_all(below, TREE).await?;
    if rounds.rank() != root {
        return whole(rounds, root, DIRECT, blocks.swap_remove(0)).await;
    }
    let own = std::mem::take(&mut parts[root]);
    if R::DIVIDES {
        let long = parts.into_iter().enumerate().filter(|(_, part)| part.len() >= APART);
        rounds.send_all(long, DIRECT).await?;
    }
    Ok(own)
}

/// Gives every member what all members have, in the order of ranks.
///
/// Long blocks go from each member to each other in the rounds of a pairwise exchange, after the
/// members have learned of them.
pub async fn all_gather<R: Rounds>(rounds: &R, own: Bytes) -> Result<Vec<Bytes>, R::Failure> {
    let (rank, size) = (rounds.rank(), rounds.size());
    let mut blocks = vec![block_of::<R>(&own)];
    for Gathering { exchange, blocks: count } in bruck(rank, size) {
        let came = rounds.exchange(exchange, pack(&blocks[..count], R::DIVIDES)).await?;
        blocks.extend(blocks_of(rounds, exchange.from, came, count)?);
    }
    blocks.rotate_right(rank);
    if !R::DIVIDES {
        return all_whole(rounds, blocks).await;
    }
    blocks[rank] = Block::Here(own.clone());
    let mut bodies = vec![Bytes::new(); size];
    for Exchange { round, to, from } in pairwise(rank, size) {
        let block = std::mem::replace(&mut blocks[from], Block::Apart(0));
        let comes = whole(rounds, from, DIRECT + round, block);
        bodies[from] = match own.len() >= APART {
            true => tokio::try_join!(rounds.send(to, DIRECT + round, own.clone()), comes)?.1,
            false => comes.await?,
        };
    }
    bodies[rank] = own;
    Ok(bodies)
}

/// Exchanges a part between each two members. The parts that a member passes, one for each member,
/// and the parts that it gets, one from each member, are in the order of ranks.
pub async fn all_to_all<R: Rounds>(
    rounds: &R,
    mut parts: Vec<Bytes>,
) -> Result<Vec<Bytes>, R::Failure> {
    let mut came = vec![Bytes::new(); rounds.size()];
    came[rounds.rank()] = std::mem::take(&mut parts[rounds.rank()]);
    for exchange in pairwise(rounds.rank(), rounds.size()) {
        let part = std::mem::take(&mut parts[exchange.to]);
        came[exchange.from] = rounds.exchange(exchange, part).await?;
    }
    Ok(came)
}

/// The block of some bytes: themselves, or if they are long and data may be divided, their length.
fn block_of<R: Rounds>(bytes: &Bytes) -> Block {
    match R::DIVIDES && bytes.len() >= APART {
        true => Block::Apart(bytes.len()),
        false => Block::Here(bytes.clone()),
    }
}

/// Returns the bytes of the blocks of all members, in the order of ranks. Those that are not here
/// are received, all at the same time.
async fn all_whole<R: Rounds>(rounds: &R, blocks: Vec<Block>) -> Result<Vec<Bytes>, R::Failure> {
    if !R::DIVIDES {
        let bytes = blocks.into_iter().map(|block| match block {
            Block::Here(bytes) => bytes,
            Block::Apart(_) => Bytes::new(),
        });
        return Ok(bytes.collect());
    }
    let comes =
        blocks.into_iter().enumerate().map(|(rank, block)| whole(rounds, rank, DIRECT, block));
    try_join_all(comes).await
}

/// Returns the bytes of a block, which are received from the member if they come by themselves.
async fn whole<R: Rounds>(
    rounds: &R,
    from: usize,
    round: u32,
    block: Block,
) -> Result<Bytes, R::Failure> {
    let len = match block {
        Block::Here(bytes) => return Ok(bytes),
        Block::Apart(len) => len,
    };
    let bytes = rounds.receive(from, round).await?;
    match bytes.len() == len {
        true => Ok(bytes),
        false => {
            let fault = Fault::Lengths { found: bytes.len(), expected: len };
            Err(rounds.failure(from, fault))
        }
    }
}

/// Unpacks a message of `count` blocks.
fn blocks_of<R: Rounds>(
    rounds: &R,
    from: usize,
    message: Bytes,
    count: usize,
) -> Result<Vec<Block>, R::Failure> {
    let malformed = || rounds.failure(from, Fault::Malformed);
    unpack(message, count, R::DIVIDES).ok_or_else(malformed)
}
