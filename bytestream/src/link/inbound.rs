//! The receiving direction of a stream: messages that have come and were not read.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use doorbell_verbs::Buf;

use crate::error::Over;
use crate::shared::locked;
use crate::wire::Violation;

/// What comes next in a stream.
#[derive(Debug)]
pub(crate) enum Next {
    /// A message, of at least one byte.
    Bytes(Buf),
    /// The peer has ended the stream.
    End,
    /// The stream was broken off.
    Over(Over),
}

/// Messages that were received and not read: no more than the peer had credits for.
#[derive(Default)]
pub(crate) struct Inbound {
    /// Whether there is a message or an end. A reader that finds neither takes no lock.
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
    /// Puts a message behind the others. Returns whether a reader was woken, or the message if the
    /// program has dropped the stream.
    pub fn put(&self, message: Buf) -> Result<Result<bool, Buf>, Violation> {
        let mut state = locked(&self.state);
        if state.end {
            return Err(Violation::BehindEnd);
        }
        if state.closed {
            return Ok(Err(message));
        }
        state.unread.push_back(message);
        let reader = state.reader.take();
        self.ready.store(true, Ordering::Release);
        drop(state);
        Ok(Ok(wake(reader)))
    }

    /// Takes note that the peer has ended the stream. Returns whether a reader was woken.
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

    /// Takes note that the stream is broken off. Readers read what has come, and then get the
    /// error, unless the peer has ended the stream before. Returns whether a reader was woken.
    pub fn is_over(&self, why: Over) -> bool {
        let mut state = locked(&self.state);
        state.over.get_or_insert(why);
        let reader = state.reader.take();
        self.ready.store(true, Ordering::Release);
        drop(state);
        wake(reader)
    }

    /// Takes the next message. Behind the last one, returns the end again and again.
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

    /// Returns whether [`next`](Self::next) returns something.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Has `waker` woken when [`next`](Self::next) returns something.
    pub fn wait(&self, waker: &Waker) {
        let reader = &mut locked(&self.state).reader;
        reader.get_or_insert_with(|| waker.clone()).clone_from(waker);
    }

    /// Returns whether the peer has ended the stream.
    pub fn has_ended(&self) -> bool {
        locked(&self.state).end
    }

    /// Takes note that the program has dropped the stream. Returns the unread messages.
    pub fn close(&self) -> VecDeque<Buf> {
        let mut state = locked(&self.state);
        state.closed = true;
        state.reader = None;
        std::mem::take(&mut state.unread)
    }

    /// Returns whether the program has dropped the stream.
    pub fn is_closed(&self) -> bool {
        locked(&self.state).closed
    }
}

/// Wakes a task, if one waits. Returns whether one did.
pub(super) fn wake(waiting: Option<Waker>) -> bool {
    let woke = waiting.is_some();
    waiting.into_iter().for_each(Waker::wake);
    woke
}
