//! Broadcasts along a binomial tree, in pieces if they are long.

use std::collections::VecDeque;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use futures_util::future::try_join_all;

use crate::communicator::{Fault, Rounds};
use crate::schedule::Tree;

/// The length of the pieces of a long broadcast, which members hand on as they come.
const PIECE: usize = 64 << 10;
/// How many pieces a member hands on at a time.
const UNDER_WAY: usize = 4;

/// The round of a message that is the whole broadcast.
const WHOLE: u32 = 0;
/// The round of a message with the length of a broadcast that comes in pieces.
const LENGTH: u32 = 1;
/// The round of the pieces.
const PIECES: u32 = 2;

/// Gives all members the bytes of the root. The `bytes` of the others are ignored.
///
/// Bytes that members hand on go in pieces if they are long, so that all members of a path send at
/// the same time.
pub async fn broadcast<R: Rounds>(
    rounds: &R,
    root: usize,
    bytes: Bytes,
) -> Result<Bytes, R::Failure> {
    let tree = Tree::new(rounds.rank(), root, rounds.size());
    let Some(parent) = tree.parent() else {
        match R::DIVIDES && bytes.len() > PIECE && rounds.size() > 2 {
            true => Box::pin(in_pieces(rounds, &tree, &bytes)).await?,
            false => to_children(rounds, &tree, WHOLE, &bytes).await?,
        }
        return Ok(bytes);
    };
    let (round, bytes) = match R::DIVIDES {
        true => rounds.receive_next(parent).await?,
        false => (WHOLE, rounds.receive(parent, WHOLE).await?),
    };
    match round {
        WHOLE => {
            to_children(rounds, &tree, WHOLE, &bytes).await?;
            Ok(bytes)
        }
        LENGTH => Box::pin(hand_on(rounds, &tree, parent, bytes)).await,
        _ => Err(rounds.failure(parent, Fault::Malformed)),
    }
}

async fn to_children<R: Rounds>(
    rounds: &R,
    tree: &Tree,
    round: u32,
    bytes: &Bytes,
) -> Result<(), R::Failure> {
    rounds.send_all(tree.children().rev().map(|child| (child.rank, bytes.clone())), round).await
}

/// Sends the root's bytes in pieces.
async fn in_pieces<R: Rounds>(rounds: &R, tree: &Tree, bytes: &Bytes) -> Result<(), R::Failure> {
    let len = Bytes::copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    to_children(rounds, tree, LENGTH, &len).await?;
    let mut sends = Sends::default();
    for at in (0..bytes.len()).step_by(PIECE) {
        let piece = bytes.slice(at..bytes.len().min(at + PIECE));
        sends.push(to_children_owned(rounds, tree, piece)).await?;
    }
    sends.finish().await
}

/// Receives a broadcast in pieces, and hands them on as they come.
async fn hand_on<R: Rounds>(
    rounds: &R,
    tree: &Tree,
    parent: usize,
    len: Bytes,
) -> Result<Bytes, R::Failure> {
    to_children(rounds, tree, LENGTH, &len).await?;
    let len = <[u8; 8]>::try_from(&len[..]).ok().map(u64::from_le_bytes);
    let malformed = || rounds.failure(parent, Fault::Malformed);
    let len = len.and_then(|len| usize::try_from(len).ok()).ok_or_else(malformed)?;
    let (mut bytes, mut sends) = (BytesMut::new(), Sends::default());
    while bytes.len() < len {
        let piece = rounds.receive(parent, PIECES).await?;
        if piece.is_empty() || piece.len() > len - bytes.len() {
            return Err(malformed());
        }
        bytes.extend_from_slice(&piece);
        sends.push(to_children_owned(rounds, tree, piece)).await?;
    }
    sends.finish().await?;
    Ok(bytes.freeze())
}

async fn to_children_owned<R: Rounds>(
    rounds: &R,
    tree: &Tree,
    piece: Bytes,
) -> Result<(), R::Failure> {
    to_children(rounds, tree, PIECES, &piece).await
}

/// Sends that are under way, in the order in which they were begun.
struct Sends<F>(VecDeque<Pin<Box<F>>>);

impl<F> Default for Sends<F> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<E, F: Future<Output = Result<(), E>>> Sends<F> {
    /// Begins a send behind those under way. Waits for the first of them if there are too many.
    async fn push(&mut self, send: F) -> Result<(), E> {
        let mut send = Box::pin(send);
        let is_done = std::future::poll_fn(|context| {
            std::task::Poll::Ready(match send.as_mut().poll(context) {
                std::task::Poll::Ready(sent) => sent.map(|()| true),
                std::task::Poll::Pending => Ok(false),
            })
        });
        if !is_done.await? {
            self.0.push_back(send);
        }
        while self.0.len() >= UNDER_WAY {
            self.first().await?;
        }
        Ok(())
    }

    async fn first(&mut self) -> Result<(), E> {
        match self.0.pop_front() {
            Some(send) => send.await,
            None => Ok(()),
        }
    }

    async fn finish(mut self) -> Result<(), E> {
        try_join_all(self.0.drain(..)).await?;
        Ok(())
    }
}
