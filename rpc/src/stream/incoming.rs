//! The reading end of a stream.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;

use super::{OVERHEAD, WINDOW};
use crate::status::Status;

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
            ended: None,
            waker: None,
        };
        Self { state: Mutex::new(state), longest }
    }

    /// Takes a fragment in; `more` of the same piece follow, or none.
    ///
    /// # Errors
    /// When the sender has sent more than it may. The stream has ended with that error, too.
    pub fn put(&self, fragment: &[u8], more: bool) -> Result<Came, Status> {
        let cost = fragment.len() + OVERHEAD;
        let outcome = self.change(|state| {
            if state.ended.is_some() {
                return Ok((None, 0));
            }
            let len = state.partial.len() + fragment.len();
            if state.left < cost {
                return Err(Status::resource_exhausted(
                    "the sender of a stream has sent more than the reader's window",
                ));
            }
            if len > self.longest {
                return Err(Status::resource_exhausted(format!(
                    "a message of a stream is longer than the {} bytes that this side takes",
                    self.longest
                )));
            }
            if more {
                state.partial.extend_from_slice(fragment);
                return Ok((None, cost));
            }
            state.left -= cost;
            let piece = match state.partial.is_empty() {
                true => Bytes::copy_from_slice(fragment),
                false => {
                    state.partial.extend_from_slice(fragment);
                    std::mem::take(&mut state.partial).freeze()
                }
            };
            state.pieces.push_back((piece, cost));
            Ok((state.waker.take(), 0))
        });
        match outcome {
            Ok((waker, grant)) => {
                let woke = waker.is_some();
                waker.into_iter().for_each(Waker::wake);
                Ok(Came { grant, woke })
            }
            Err(status) => {
                self.end(Err(status.clone()));
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

    /// The next piece, with what it gives back to the window.
    fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Result<(Bytes, usize), Status>>> {
        self.change(|state| {
            if let Some((piece, cost)) = state.pieces.pop_front() {
                state.left += cost;
                return Poll::Ready(Some(Ok((piece, cost))));
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

/// Reads a stream, and tells its sender what was taken. When it is dropped before the end, the
/// sender is told to stop.
pub struct Reader<T: Tell> {
    incoming: Arc<Incoming>,
    /// What was taken and not granted yet.
    taken: usize,
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
        Self { incoming, taken: 0, tell }
    }
}

impl<T: Tell> Stream for Reader<T> {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.incoming.clone().poll(context).map(|next| {
            next.map(|piece| {
                piece.map(|(bytes, cost)| {
                    self.taken += cost;
                    if self.taken >= WINDOW / 2 {
                        let taken = std::mem::take(&mut self.taken);
                        self.tell.grant(taken);
                    }
                    bytes
                })
            })
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
    use futures_util::StreamExt;
    use futures_util::task::noop_waker_ref;

    use super::*;

    struct Nobody;

    impl Tell for Nobody {
        fn grant(&self, _: usize) {}
        fn leave(&self, _: bool) {}
    }

    #[test]
    fn a_sender_that_exceeds_the_window_ends_the_stream_with_an_error() {
        let incoming = Arc::new(Incoming::new(1 << 20));
        let fragment = [7; 1000];
        let fit = WINDOW / (1000 + OVERHEAD);
        for _ in 0..fit {
            incoming.put(&fragment, false).expect("the window has room");
        }
        let refused = incoming.put(&fragment, false).expect_err("the window is used up");
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
    fn fragments_become_one_piece_and_are_granted_as_they_come() {
        let incoming = Arc::new(Incoming::new(10_000));
        let mut granted = 0;
        for _ in 0..9 {
            granted += incoming.put(&[1; 1000], true).expect("there is room").grant;
        }
        assert_eq!(granted, 9 * (1000 + OVERHEAD));
        assert_eq!(incoming.put(&[2; 1000], false).expect("there is room").grant, 0);
        let mut reader = Reader::new(incoming, Nobody);
        let mut context = Context::from_waker(noop_waker_ref());
        match reader.poll_next_unpin(&mut context) {
            Poll::Ready(Some(Ok(piece))) => assert_eq!((piece.len(), piece[9999]), (10_000, 2)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_piece_longer_than_the_longest_ends_the_stream() {
        let incoming = Incoming::new(1500);
        incoming.put(&[1; 1000], true).expect("there is room");
        assert!(incoming.put(&[1; 1000], true).is_err());
        assert!(incoming.has_ended());
    }
}
