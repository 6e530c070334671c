//! The reading end of a stream: what has arrived, and what the sender may still send.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use doorbell_verbs::floor::locked;
use futures_core::Stream;
use tokio::sync::oneshot::{self, error::TryRecvError};

use super::partial::{MemoryRequest, Partial, too_long};
use super::{OVERHEAD, WINDOW};
use crate::bulk::{NoRoom, Reserved, Share, time_for};
use crate::status::Status;
use crate::wire::piece;

/// The pieces of a stream that have arrived and that the reader has not taken yet.
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
    /// The piece of which some fragments have arrived.
    partial: Option<Partial>,
    /// How many more bytes the sender may send, as the reader counts.
    left: usize,
    /// The part of the window that goes back to the sender with the next grant: for pieces that
    /// were taken, and for fragments of a piece that has reserved memory. Less than half a window,
    /// since that much is granted at once. So the sender always has room for another fragment when
    /// the reader has taken all pieces.
    owed: usize,
    ended: Option<Result<(), Status>>,
    /// Whether the stream has ended because its sender broke the rules or stopped. The sender goes
    /// on until it is told to stop.
    ended_here: bool,
    waker: Option<Waker>,
}

/// A piece of which all bytes have arrived.
#[derive(Debug)]
struct Whole {
    bytes: Bytes,
    /// How much of the window the piece gives back when it is taken.
    cost: usize,
    /// The memory that was reserved for a long piece, until the piece is taken.
    _reserved: Option<Reserved>,
}

/// The duties of the caller that has put something into a stream.
#[derive(Debug, Default)]
pub struct Effects {
    /// How much more the sender is to be granted at once; zero for nothing.
    pub grant: usize,
    /// The memory to [reserve](Incoming::reserve) before more of a piece may arrive.
    pub wanted: Option<MemoryRequest>,
    /// Whether a task was woken.
    pub woke: bool,
}

/// A piece that the reader takes, and what must be done because of that.
struct Taken {
    piece: Bytes,
    grant: usize,
    wanted: Option<MemoryRequest>,
}

impl Incoming {
    /// Makes a stream of which nothing has arrived. Its pieces have at most `longest` bytes; a
    /// piece that is too long for the window takes memory from `share`.
    pub fn new(longest: usize, share: Share) -> Self {
        let state = State {
            pieces: VecDeque::new(),
            partial: None,
            left: WINDOW,
            owed: 0,
            ended: None,
            ended_here: false,
            waker: None,
        };
        Self { state: Mutex::new(state), longest, share }
    }

    /// Takes in a fragment of a piece of `len` bytes, which is not the piece's last.
    ///
    /// # Errors
    /// When the sender has sent more than it may. The stream then ends with the same error.
    pub fn put_fragment(&self, fragment: &[u8], len: usize) -> Result<Effects, Status> {
        self.put(|state| state.put_fragment(fragment, len, self.longest))
    }

    /// Takes in a whole piece, or the last fragment of one.
    ///
    /// # Errors
    /// The errors of [`put_fragment`](Self::put_fragment).
    pub fn put_piece(&self, piece: Bytes) -> Result<Effects, Status> {
        self.put(|state| state.put_piece(piece, self.longest).map(|()| 0))
    }

    /// Takes in several whole pieces from the payload of one message.
    ///
    /// # Errors
    /// The errors of [`put_fragment`](Self::put_fragment), and when the payload does not consist of
    /// whole pieces.
    pub fn put_several(&self, mut pieces: Bytes) -> Result<Effects, Status> {
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

    /// Takes something in by `put`, unless the stream has ended. `put` returns how much is to be
    /// granted.
    fn put(
        &self,
        put: impl FnOnce(&mut State) -> Result<usize, Status>,
    ) -> Result<Effects, Status> {
        let outcome = self.change(|state| {
            if state.ended.is_some() {
                return Ok((None, Effects::default()));
            }
            let grant = put(state)?;
            let waker = if state.pieces.is_empty() { None } else { state.waker.take() };
            let woke = waker.is_some();
            Ok((waker, Effects { grant, wanted: state.wants(), woke }))
        });
        match outcome {
            Ok((waker, came)) => {
                waker.into_iter().for_each(Waker::wake);
                Ok(came)
            }
            Err(status) => {
                self.end_here(Status::clone(&status));
                Err(status)
            }
        }
    }

    /// Reserves the memory that a piece needs, and then grants the sender the rest of the piece.
    /// Ends the stream if there is no memory while the reader waits for the piece, or the sender
    /// does not send the rest [in time](time_for).
    pub async fn reserve(&self, wanted: MemoryRequest, tell: &impl Feedback) {
        let MemoryRequest { len, mut over } = wanted;
        let reserved = tokio::select! {
            biased;
            _ = &mut over => return,
            reserved = self.room_for(len) => match reserved {
                Ok(reserved) => reserved,
                Err(why) => return self.end_here(why.status("a message of a stream")),
            },
        };
        let grant = self.reserved(reserved, &mut over);
        if grant > 0 {
            tell.grant(grant);
        }
        let time = time_for(len);
        if tokio::time::timeout(time, over).await.is_err() {
            self.end_here(Status::unavailable(format!(
                "the sender of a stream has not sent a message of {len} bytes within the {time:?} for \
                 which memory is reserved for it"
            )));
        }
    }

    /// Reserves memory for a piece. A piece that the reader does not ask for waits for as long as it
    /// takes.
    ///
    /// # Errors
    /// When there is no memory while the reader waits for the piece.
    async fn room_for(&self, len: usize) -> Result<Reserved, NoRoom> {
        loop {
            match self.share.reserve(len).await {
                Err(why) if self.change(|state| state.waker.is_some()) => return Err(why),
                Err(_) => {}
                Ok(reserved) => return Ok(reserved),
            }
        }
    }

    /// Gives reserved memory to the piece that has asked for it, unless that piece is `over`.
    /// Returns how much the sender is to be granted.
    fn reserved(&self, reserved: Reserved, over: &mut oneshot::Receiver<()>) -> usize {
        self.change(|state| {
            // The piece may have been completed meanwhile, and another have begun.
            let is_over = over.try_recv() != Err(TryRecvError::Empty);
            let Some(partial) = state.partial.as_mut().filter(|_| !is_over) else { return 0 };
            partial.has(reserved);
            let part = std::mem::take(&mut partial.cost);
            state.left += part;
            state.owes(part)
        })
    }

    /// Ends the stream behind the pieces that have arrived, unless it has ended before. A stream
    /// that ends well in the midst of a piece ends with an error. Returns whether a task was woken.
    pub fn end(&self, how: Result<(), Status>) -> bool {
        self.end_by(how, false)
    }

    /// Ends the stream with an error that its sender does not know of.
    fn end_here(&self, status: Status) {
        self.end_by(Err(status), true);
    }

    fn end_by(&self, how: Result<(), Status>, here: bool) -> bool {
        let waker = self.change(|state| {
            let partial = state.partial.take();
            if state.ended.is_none() {
                state.ended_here = here;
                state.ended = Some(match how {
                    Ok(()) if partial.is_some() => Err(Status::internal(
                        "the sender has ended a stream in the midst of a message",
                    )),
                    how => how,
                });
            }
            state.waker.take()
        });
        let woke = waker.is_some();
        waker.into_iter().for_each(Waker::wake);
        woke
    }

    /// Drops all pieces and takes no more, because the reader was dropped. Returns whether the
    /// stream had ended before, as its sender knows.
    fn leave(&self) -> bool {
        let (pieces, had_ended) = self.change(|state| {
            state.partial = None;
            let had_ended = state.ended.replace(Ok(())).is_some() && !state.ended_here;
            (std::mem::take(&mut state.pieces), had_ended)
        });
        drop(pieces);
        had_ended
    }

    /// Takes the next piece, or waits for it.
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
        change(&mut locked(&self.state))
    }
}

impl State {
    /// Takes the cost of a piece or fragment of `len` bytes off what the sender may send. Returns
    /// the cost.
    ///
    /// # Errors
    /// When the sender was not allowed to send as many bytes.
    fn admits(&mut self, len: usize) -> Result<usize, Status> {
        let cost = len + OVERHEAD;
        self.left = self.left.checked_sub(cost).ok_or_else(|| {
            Status::resource_exhausted(
                "the sender of a stream has sent more than the reader's window",
            )
        })?;
        Ok(cost)
    }

    /// Appends a fragment to those of the same piece. Returns how much is to be granted.
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

    /// Appends a whole piece to the others, or completes the piece whose last fragment this is.
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

    /// The memory that the incomplete piece needs, unless it was asked for already. A piece asks
    /// only when the reader has taken all pieces before it, so that a stream has at most one long
    /// piece in memory.
    fn wants(&mut self) -> Option<MemoryRequest> {
        self.partial.as_mut().filter(|_| self.pieces.is_empty())?.wants()
    }

    /// Counts a part of the window as owed to the sender. Returns how much is to be granted now;
    /// zero until half a window is owed.
    fn owes(&mut self, part: usize) -> usize {
        self.owed += part;
        if self.owed >= WINDOW / 2 { std::mem::take(&mut self.owed) } else { 0 }
    }
}

/// The stream of pieces that a program reads. Tells the sender what was taken, and tells it to stop
/// if the reader is dropped before the stream's end.
pub struct Reader<T: Feedback> {
    incoming: Arc<Incoming>,
    tell: T,
}

/// How a reader tells the sender of its stream what to do.
pub trait Feedback: Send + Unpin {
    /// Grants the sender `part` more bytes.
    fn grant(&self, part: usize);
    /// Starts to [reserve](Incoming::reserve) memory for a piece.
    fn wants(&self, incoming: &Arc<Incoming>, wanted: MemoryRequest);
    /// Forgets the stream, because its reader is dropped. Tells the sender to stop, unless the
    /// sender knows that the stream has `ended`.
    fn leave(&self, ended: bool);
}

impl<T: Feedback> Reader<T> {
    pub fn new(incoming: Arc<Incoming>, tell: T) -> Self {
        Self { incoming, tell }
    }
}

impl<T: Feedback> Stream for Reader<T> {
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

impl<T: Feedback> Drop for Reader<T> {
    fn drop(&mut self) {
        self.tell.leave(self.incoming.leave());
    }
}

#[cfg(test)]
mod tests;
