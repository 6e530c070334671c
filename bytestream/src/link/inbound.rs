//! The receiving direction of a stream: bytes that have arrived and that the program has not read.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use doorbell_verbs::Buf;
use doorbell_verbs::floor::locked;

use crate::error::Over;
use crate::wire::Violation;

/// The next thing that a reader finds in a stream.
#[derive(Debug)]
pub(crate) enum Next {
    /// The bytes of one or more messages, of which there is at least one.
    Bytes(Buf),
    /// The end of the stream, as the peer has sent it.
    End,
    /// The reason why the stream was broken off.
    Over(Over),
}

/// The bytes that were received and not read. There are no more than the window has.
///
/// A message stays in the buffer in which it was received, unless it fits behind the bytes of the
/// buffer before: then it is copied there. So any two neighbours together hold more than a segment,
/// and short messages don't keep a buffer each.
#[derive(Default)]
pub(crate) struct Inbound {
    /// Whether bytes or an end are there to be read. A reader that finds neither takes no lock.
    ready: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    unread: VecDeque<Buf>,
    end: bool,
    over: Option<Over>,
    /// Whether the program has dropped the stream.
    closed: bool,
    reader: Option<Waker>,
}

impl Inbound {
    /// Appends a message to the unread bytes. Returns whether a reader was woken, and the buffer
    /// of the message if it is not needed any more: its bytes were copied, or the program has
    /// dropped the stream.
    pub fn put(&self, message: Buf) -> Result<(bool, Option<Buf>), Violation> {
        let mut state = locked(&self.state);
        if state.end {
            return Err(Violation::BehindEnd);
        }
        if state.closed {
            return Ok((false, Some(message)));
        }
        let last = state.unread.back_mut();
        let free = match last.is_some_and(|last| last.extend_from_slice(&message).is_ok()) {
            true => Some(message),
            false => {
                state.unread.push_back(message);
                None
            }
        };
        let reader = state.reader.take();
        self.ready.store(true, Ordering::Release);
        drop(state);
        Ok((wake(reader), free))
    }

    /// Notes that the peer has ended the stream. Returns whether a reader was woken.
    pub fn ends(&self) -> Result<bool, Violation> {
        let mut state = locked(&self.state);
        if std::mem::replace(&mut state.end, true) {
            return Err(Violation::BehindEnd);
        }
        let reader = state.reader.take();
        self.ready.store(true, Ordering::Release);
        drop(state);
        Ok(wake(reader))
    }

    /// Notes that the stream is broken off. The reader gets what has arrived, and then the error,
    /// unless the peer has ended the stream before. Returns whether a reader was woken.
    pub fn is_over(&self, why: Over) -> bool {
        let mut state = locked(&self.state);
        state.over.get_or_insert(why);
        let reader = state.reader.take();
        self.ready.store(true, Ordering::Release);
        drop(state);
        wake(reader)
    }

    /// Takes the next bytes. After the last bytes, returns the end every time.
    #[inline]
    pub fn next(&self) -> Option<Next> {
        if !self.is_ready() {
            return None;
        }
        let mut state = locked(&self.state);
        let State { unread, end, over, .. } = &mut *state;
        let message = unread.pop_front();
        if unread.is_empty() && !*end && over.is_none() {
            self.ready.store(false, Ordering::Relaxed);
        }
        match (message, &over) {
            (Some(message), _) => Some(Next::Bytes(message)),
            _ if *end => Some(Next::End),
            (None, Some(over)) => Some(Next::Over(over.clone())),
            (None, None) => None,
        }
    }

    /// Returns whether [`next`](Self::next) would return something.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Has `waker` woken as soon as [`next`](Self::next) would return something.
    pub fn wait(&self, waker: &Waker) {
        let reader = &mut locked(&self.state).reader;
        reader.get_or_insert_with(|| waker.clone()).clone_from(waker);
    }

    /// Returns whether the peer has ended the stream.
    pub fn has_ended(&self) -> bool {
        locked(&self.state).end
    }

    /// Notes that the program has dropped the stream. Returns the buffers of unread bytes.
    pub fn close(&self) -> VecDeque<Buf> {
        let mut state = locked(&self.state);
        state.closed = true;
        state.reader = None;
        std::mem::take(&mut state.unread)
    }
}

/// Wakes a task, if one waits. Returns whether a task was woken.
pub(super) fn wake(waiting: Option<Waker>) -> bool {
    let woke = waiting.is_some();
    waiting.into_iter().for_each(Waker::wake);
    woke
}
