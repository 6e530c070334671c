//! The reading end of a stream.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;

use super::{OVERHEAD, WINDOW};
use crate::status::Status;
use crate::wire::piece;

/// What has come of a stream, and was not taken yet.
#[derive(Debug)]
pub struct Incoming {
    state: Mutex<State>,
    longest: usize,
}

#[derive(Debug)]
struct State {
    /// Whole pieces, and what each gives back to the window.
    pieces: VecDeque<(Bytes, usize)>,
    /// The fragments of a piece that is not whole yet.
    partial: BytesMut,
    /// What the sender may still send.
    left: usize,
    /// What fragments of a piece that is not whole yet have cost while the reader had not taken the
    /// pieces before: granted with those, so that no long piece comes in behind another that is not
    /// read.
    withheld: usize,
    /// What the sender is owed for pieces that were taken and for fragments that came: less than
    /// half a window, since that much is granted. So there is always room for a fragment more once
    /// the reader has taken all pieces.
    owed: usize,
    ended: Option<Result<(), Status>>,
    waker: Option<Waker>,
}

/// What follows from a fragment that came.
#[derive(Debug)]
pub struct Came {
    /// What the sender may be granted at once.
    pub grant: usize,
    /// Whether a task was woken.
    pub woke: bool,
}

impl Incoming {
    /// A stream of which nothing has come, and whose pieces are no longer than that.
    pub fn new(longest: usize) -> Self {
        let state = State {
            pieces: VecDeque::new(),
            partial: BytesMut::new(),
            left: WINDOW,
            withheld: 0,
            owed: 0,
            ended: None,
            waker: None,
        };
        Self { state: Mutex::new(state), longest }
    }

    /// Takes a fragment in, behind which others of the same piece follow.
    ///
    /// # Errors
    /// When the sender has sent more than it may. The stream has ended with that error, too.
    pub fn put_fragment(&self, fragment: &[u8]) -> Result<Came, Status> {
        self.put(|state| {
            let cost = state.admits(fragment.len(), self.longest)?;
            state.partial.extend_from_slice(fragment);
            if state.pieces.is_empty() {
                return Ok(state.owes(cost));
            }
            state.left -= cost;
            state.withheld += cost;
            Ok(0)
        })
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
                return Ok((None, 0));
            }
            let grant = put(state)?;
            let waker = if state.pieces.is_empty() { None } else { state.waker.take() };
            Ok((waker, grant))
        });
        match outcome {
            Ok((waker, grant)) => {
                let woke = waker.is_some();
                waker.into_iter().for_each(Waker::wake);
                Ok(Came { grant, woke })
            }
            Err(status) => {
                self.end(Err(Status::clone(&status)));
                Err(status)
            }
        }
    }

    /// Ends the stream behind what has come. Returns whether a task was woken. The first end
    /// counts.
    pub fn end(&self, how: Result<(), Status>) -> bool {
        let waker = self.change(|state| {
            if state.ended.is_none() {
                state.ended = Some(how);
            }
            state.waker.take()
        });
        let woke = waker.is_some();
        waker.into_iter().for_each(Waker::wake);
        woke
    }

    /// Whether the stream has ended, for whoever stops reading.
    pub fn has_ended(&self) -> bool {
        self.change(|state| state.ended.is_some())
    }

    /// The next piece, and what the sender is to be granted.
    fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Result<(Bytes, usize), Status>>> {
        self.change(|state| {
            if let Some((piece, cost)) = state.pieces.pop_front() {
                let withheld = match state.pieces.is_empty() {
                    true => std::mem::take(&mut state.withheld),
                    false => 0,
                };
                let part = cost + withheld;
                state.left += part;
                return Poll::Ready(Some(Ok((piece, state.owes(part)))));
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
    /// Checks that the sender may send as many bytes, and returns what they take of the window.
    fn admits(&self, len: usize, longest: usize) -> Result<usize, Status> {
        let cost = len + OVERHEAD;
        if self.left < cost {
            return Err(Status::resource_exhausted(
                "the sender of a stream has sent more than the reader's window",
            ));
        }
        if self.partial.len() + len > longest {
            return Err(Status::resource_exhausted(format!(
                "a message of a stream is longer than the {longest} bytes that this side takes"
            )));
        }
        Ok(cost)
    }

    /// Puts a piece behind the others, or the last fragment of one behind its others.
    fn put_piece(&mut self, piece: Bytes, longest: usize) -> Result<(), Status> {
        let cost = self.admits(piece.len(), longest)?;
        self.left -= cost;
        let piece = match self.partial.is_empty() {
            true => piece,
            false => {
                self.partial.extend_from_slice(&piece);
                std::mem::take(&mut self.partial).freeze()
            }
        };
        self.pieces.push_back((piece, cost + std::mem::take(&mut self.withheld)));
        Ok(())
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
        self.incoming.poll(context).map_ok(|(piece, grant)| {
            if grant > 0 {
                self.tell.grant(grant);
            }
            piece
        })
    }
}

impl<T: Tell> Drop for Reader<T> {
    fn drop(&mut self) {
        self.tell.leave(self.incoming.has_ended());
    }
}

#[cfg(test)]
mod tests {
    use futures_util::task::noop_waker_ref;
    use futures_util::{FutureExt, StreamExt};

    use super::*;

    struct Nobody;

    impl Tell for Nobody {
        fn grant(&self, _: usize) {}
        fn leave(&self, _: bool) {}
    }

    #[test]
    fn a_sender_that_exceeds_the_window_ends_the_stream_with_an_error() {
        let incoming = Arc::new(Incoming::new(1 << 20));
        let piece = Bytes::from_static(&[7; 1000]);
        let fit = WINDOW / (1000 + OVERHEAD);
        for _ in 0..fit {
            incoming.put_piece(piece.clone()).expect("the window has room");
        }
        let refused = incoming.put_piece(piece).expect_err("the window is used up");
        assert_eq!(refused.code(), crate::Code::ResourceExhausted);
        let mut reader = Reader::new(incoming, Nobody);
        let mut context = Context::from_waker(noop_waker_ref());
        for _ in 0..fit {
            assert!(matches!(reader.poll_next_unpin(&mut context), Poll::Ready(Some(Ok(_)))));
        }
        assert!(matches!(reader.poll_next_unpin(&mut context), Poll::Ready(Some(Err(_)))));
        assert!(matches!(reader.poll_next_unpin(&mut context), Poll::Ready(None)));
    }

    #[test]
    fn fragments_become_one_piece_and_are_granted_whenever_half_a_window_came() {
        let fragments = 2 * WINDOW / 1000;
        let incoming = Arc::new(Incoming::new(1000 * (fragments + 1)));
        let mut window = WINDOW;
        for _ in 0..fragments {
            window -= 1000 + OVERHEAD;
            window += incoming.put_fragment(&[1; 1000]).expect("there is room").grant;
            assert!(window > WINDOW / 2 - 1000 - OVERHEAD && window <= WINDOW, "{window}");
        }
        let last = incoming.put_piece(Bytes::from_static(&[2; 1000])).expect("there is room");
        assert!(last.grant == 0 && !last.woke);
        let mut reader = Reader::new(incoming, Nobody);
        let mut context = Context::from_waker(noop_waker_ref());
        match reader.poll_next_unpin(&mut context) {
            Poll::Ready(Some(Ok(piece))) => {
                assert_eq!((piece.len(), piece.last()), (1000 * (fragments + 1), Some(&2)));
            }
            other => panic!("{other:?}"),
        }
    }

    // Fragments were granted anew as they came, and a stream of long pieces that nobody read took
    // as many of them as have last fragments in a window.
    #[test]
    fn a_long_piece_behind_another_that_is_not_read_takes_no_more_than_the_window() {
        let incoming = Arc::new(Incoming::new(16 * WINDOW));
        let (fragment, cost) = ([1; 1000], 1000 + OVERHEAD);
        let mut window = WINDOW;
        let put = |incoming: &Incoming, window: &mut usize| {
            let came = incoming.put_fragment(&fragment).expect("there is room");
            *window = *window - cost + came.grant;
        };
        for _ in 0..4 * WINDOW / cost {
            put(&incoming, &mut window);
        }
        incoming.put_piece(Bytes::from_static(b"whole")).expect("there is room");
        window -= 5 + OVERHEAD;
        let mut behind = 0;
        while window >= cost {
            put(&incoming, &mut window);
            behind += 1;
        }
        assert!(behind * cost <= WINDOW, "{behind} fragments");
        let mut reader = Reader::new(incoming.clone(), Nobody);
        let mut context = Context::from_waker(noop_waker_ref());
        assert!(matches!(reader.poll_next_unpin(&mut context), Poll::Ready(Some(Ok(_)))));
        assert!(reader.poll_next_unpin(&mut context).is_pending());
        // The reader has taken everything, and the rest of the piece behind may come.
        window = WINDOW;
        for _ in 0..4 * WINDOW / cost {
            put(&incoming, &mut window);
        }
    }

    #[test]
    fn several_pieces_are_read_one_by_one_and_bytes_that_are_none_end_the_stream() {
        let incoming = Arc::new(Incoming::new(100));
        let mut several = Vec::new();
        assert!(piece::put(b"a", 100, &mut several) && piece::put(b"", 100, &mut several));
        incoming.put_several(several.clone().into()).expect("two pieces");
        several.push(0);
        assert!(incoming.put_several(several.into()).is_err());
        let reader = Reader::new(incoming, Nobody);
        let read: Vec<_> = reader.map(Result::ok).collect().now_or_never().expect("it is there");
        let [a, none] = [Bytes::from_static(b"a"), Bytes::new()].map(Some);
        assert_eq!(read, [a.clone(), none.clone(), a, none, None]);
    }

    #[test]
    fn a_piece_longer_than_the_longest_ends_the_stream() {
        let incoming = Incoming::new(1500);
        incoming.put_fragment(&[1; 1000]).expect("there is room");
        assert!(incoming.put_fragment(&[1; 1000]).is_err());
        assert!(incoming.has_ended());
    }
}
