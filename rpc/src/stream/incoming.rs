//! The reading end of a stream.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_core::Stream;

use super::partial::{Partial, Wanted, too_long};
use super::{OVERHEAD, WINDOW};
use crate::bulk::{Reserved, Share, time_for};
use crate::status::Status;
use crate::wire::piece;

/// What has come of a stream, and was not taken yet.
#[derive(Debug)]
pub struct Incoming {
    state: Mutex<State>,
    longest: usize,
    share: Share,
}

#[derive(Debug)]
struct State {
    /// Whole pieces that the reader has not taken.
    pieces: VecDeque<Whole>,
    /// The piece of which some fragments have come.
    partial: Option<Partial>,
    /// What the sender may still send.
    left: usize,
    /// What the sender is owed for pieces that were taken, and for fragments of a piece that memory
    /// is reserved for: less than half a window, since that much is granted. So there is always
    /// room for a fragment more once the reader has taken all pieces.
    owed: usize,
    ended: Option<Result<(), Status>>,
    waker: Option<Waker>,
}

/// A piece that is whole.
#[derive(Debug)]
struct Whole {
    bytes: Bytes,
    /// What the piece gives back to the window when it is taken.
    cost: usize,
    /// The memory that is reserved until the piece is taken, if it is long.
    _reserved: Option<Reserved>,
}

/// What follows from something that came.
#[derive(Debug, Default)]
pub struct Came {
    /// What the sender may be granted at once.
    pub grant: usize,
    /// The memory that has to be [reserved](Incoming::reserved) before more of a piece may come.
    pub wanted: Option<Wanted>,
    /// Whether a task was woken.
    pub woke: bool,
}

/// A piece that its reader takes, and what follows.
struct Taken {
    piece: Bytes,
    grant: usize,
    wanted: Option<Wanted>,
}

impl Incoming {
    /// A stream of which nothing has come, whose pieces are no longer than `longest`, and take what
    /// the window has no room for from a share.
    pub fn new(longest: usize, share: Share) -> Self {
        let state = State {
            pieces: VecDeque::new(),
            partial: None,
            left: WINDOW,
            owed: 0,
            ended: None,
            waker: None,
        };
        Self { state: Mutex::new(state), longest, share }
    }

    /// Takes in a fragment of a piece of `len` bytes, behind which others of the same piece follow.
    ///
    /// # Errors
    /// When the sender has sent more than it may. The stream has ended with that error, too.
    pub fn put_fragment(&self, fragment: &[u8], len: usize) -> Result<Came, Status> {
        self.put(|state| state.put_fragment(fragment, len, self.longest))
    }

    /// Takes a piece in, or the last fragment of one.
    ///
    /// # Errors
    /// As [`put_fragment`](Self::put_fragment).
    pub fn put_piece(&self, piece: Bytes) -> Result<Came, Status> {
        self.put(|state| state.put_piece(piece, self.longest).map(|()| 0))
    }

    /// Takes several pieces in, which lie one behind the other.
    ///
    /// # Errors
    /// As [`put_fragment`](Self::put_fragment), and when the bytes are no pieces.
    pub fn put_several(&self, mut pieces: Bytes) -> Result<Came, Status> {
        self.put(|state| {
            while !pieces.is_empty() {
                let piece = piece::take(&mut pieces).ok_or_else(|| {
                    Status::internal("the messages of a stream can't be told from each other")
                })?;
                state.put_piece(piece, self.longest)?;
            }
            Ok(0)
        })
    }

    /// Takes something in, unless the stream has ended. `put` returns what is to be granted.
    fn put(&self, put: impl FnOnce(&mut State) -> Result<usize, Status>) -> Result<Came, Status> {
        let outcome = self.change(|state| {
            if state.ended.is_some() {
                return Ok((None, Came::default()));
            }
            let grant = put(state)?;
            let waker = if state.pieces.is_empty() { None } else { state.waker.take() };
            let woke = waker.is_some();
            Ok((waker, Came { grant, wanted: state.wants(), woke }))
        });
        match outcome {
            Ok((waker, came)) => {
                waker.into_iter().for_each(Waker::wake);
                Ok(came)
            }
            Err(status) => {
                self.end(Err(Status::clone(&status)));
                Err(status)
            }
        }
    }

    /// Reserves the memory that a piece wants, and tells the sender what it may send of the piece
    /// now. Ends the stream if the sender does not send all of the piece [in time](time_for).
    pub async fn reserve(&self, wanted: Wanted, tell: &impl Tell) {
        let Wanted { len, mut over } = wanted;
        let reserved = tokio::select! {
            reserved = self.share.reserve(len) => reserved,
            _ = &mut over => return,
        };
        let grant = self.reserved(reserved);
        if grant > 0 {
            tell.grant(grant);
        }
        let time = time_for(len);
        if tokio::time::timeout(time, over).await.is_err() {
            self.end(Err(Status::unavailable(format!(
                "the sender of a stream has not sent a message of {len} bytes within the {time:?} for \
                 which memory is reserved for it"
            ))));
        }
    }

    /// Takes the memory that the piece needs of which some fragments have come. Returns what the
    /// sender is to be granted.
    fn reserved(&self, reserved: Reserved) -> usize {
        self.change(|state| {
            let Some(partial) = &mut state.partial else { return 0 };
            partial.has(reserved);
            let part = std::mem::take(&mut partial.cost);
            state.left += part;
            state.owes(part)
        })
    }

    /// Ends the stream behind what has come. Returns whether a task was woken. The first end
    /// counts.
    pub fn end(&self, how: Result<(), Status>) -> bool {
        let waker = self.change(|state| {
            if state.ended.is_none() {
                state.ended = Some(how);
            }
            state.partial = None;
            state.waker.take()
        });
        let woke = waker.is_some();
        waker.into_iter().for_each(Waker::wake);
        woke
    }

    /// Drops what has come, and takes nothing any more, because nobody reads. Returns whether the
    /// stream had ended before.
    fn leave(&self) -> bool {
        let (pieces, had_ended) = self.change(|state| {
            state.partial = None;
            (std::mem::take(&mut state.pieces), state.ended.replace(Ok(())).is_some())
        });
        drop(pieces);
        had_ended
    }

    /// The next piece, and what follows for the sender.
    fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Result<Taken, Status>>> {
        self.change(|state| {
            if let Some(Whole { bytes, cost, .. }) = state.pieces.pop_front() {
                state.left += cost;
                let grant = state.owes(cost);
                return Poll::Ready(Some(Ok(Taken { piece: bytes, grant, wanted: state.wants() })));
            }
            match &mut state.ended {
                Some(Ok(())) => Poll::Ready(None),
                Some(how) => {
                    let status = std::mem::replace(how, Ok(())).expect_err("it is an error");
                    Poll::Ready(Some(Err(status)))
                }
                None => {
                    state.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    /// Takes as much of the window as something of a length costs.
    ///
    /// # Errors
    /// When the sender may not send as many bytes.
    fn admits(&mut self, len: usize) -> Result<usize, Status> {
        let cost = len + OVERHEAD;
        self.left = self.left.checked_sub(cost).ok_or_else(|| {
            Status::resource_exhausted(
                "the sender of a stream has sent more than the reader's window",
            )
        })?;
        Ok(cost)
    }

    /// Puts a fragment behind those of the same piece. Returns what is to be granted.
    fn put_fragment(
        &mut self,
        fragment: &[u8],
        len: usize,
        longest: usize,
    ) -> Result<usize, Status> {
        let cost = self.admits(fragment.len())?;
        let partial = match &mut self.partial {
            Some(partial) => partial,
            none => none.insert(Partial::new(len, longest)?),
        };
        partial.check(len)?;
        partial.put(fragment)?;
        if !partial.is_reserved() {
            partial.cost += cost;
            return Ok(0);
        }
        self.left += cost;
        Ok(self.owes(cost))
    }

    /// Puts a piece behind the others, or the last fragment of one behind its others.
    fn put_piece(&mut self, piece: Bytes, longest: usize) -> Result<(), Status> {
        let cost = self.admits(piece.len())?;
        let whole = match self.partial.take() {
            None if piece.len() > longest => return Err(too_long(piece.len(), longest)),
            None => Whole { bytes: piece, cost, _reserved: None },
            Some(mut partial) => {
                partial.put(&piece)?;
                let cost = cost + partial.cost;
                let (bytes, _reserved) = partial.whole()?;
                Whole { bytes, cost, _reserved }
            }
        };
        self.pieces.push_back(whole);
        Ok(())
    }

    /// The memory that the piece wants of which some fragments have come. A piece waits with that
    /// until the reader has taken all before it, so that a stream has no more than one long piece.
    fn wants(&mut self) -> Option<Wanted> {
        self.partial.as_mut().filter(|_| self.pieces.is_empty())?.wants()
    }

    /// Owes the sender a part of the window, and returns what is to be granted now.
    fn owes(&mut self, part: usize) -> usize {
        self.owed += part;
        if self.owed >= WINDOW / 2 { std::mem::take(&mut self.owed) } else { 0 }
    }
}

/// Reads a stream, and tells its sender what was taken. When it is dropped before the end, the
/// sender is told to stop.
pub struct Reader<T: Tell> {
    incoming: Arc<Incoming>,
    tell: T,
}

/// How a reader speaks to the sender of its stream.
pub trait Tell: Send + Unpin {
    /// Grants the sender more.
    fn grant(&self, part: usize);
    /// Has memory [reserved](Incoming::reserve) for a piece.
    fn wants(&self, incoming: &Arc<Incoming>, wanted: Wanted);
    /// Forgets the stream; the sender is told to stop if it has not ended the stream.
    fn leave(&self, ended: bool);
}

impl<T: Tell> Reader<T> {
    pub fn new(incoming: Arc<Incoming>, tell: T) -> Self {
        Self { incoming, tell }
    }
}

impl<T: Tell> Stream for Reader<T> {
    type Item = Result<Bytes, Status>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.incoming.poll(context).map_ok(|Taken { piece, grant, wanted }| {
            if grant > 0 {
                self.tell.grant(grant);
            }
            if let Some(wanted) = wanted {
                self.tell.wants(&self.incoming, wanted);
            }
            piece
        })
    }
}

impl<T: Tell> Drop for Reader<T> {
    fn drop(&mut self) {
        self.tell.leave(self.incoming.leave());
    }
}

#[cfg(test)]
mod tests;
