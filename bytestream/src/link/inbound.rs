//! What has come of a stream and is not read.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use doorbell_verbs::Buf;

use crate::buffers::locked;
use crate::error::Over;
use crate::wire::Violation;

/// What a reader finds next.
#[derive(Debug)]
pub(crate) enum Next {
    /// A message, of at least one byte.
    Bytes(Buf),
    /// The peer has ended the stream.
    End,
    /// The stream was broken off.
    Over(Over),
}

/// Messages that were received and are not read: no more than the peer had credits for.
#[derive(Default)]
pub(crate) struct Inbound {
    /// Whether a reader finds something: so a look that finds nothing is a load.
    ready: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    unread: VecDeque<Buf>,
    end: bool,
    over: Option<Over>,
    /// Whether nobody reads any more.
    closed: bool,
    reader: Option<Waker>,
}

impl Inbound {
    /// Puts a message behind the others. Whether somebody was woken; or the message, if nobody
    /// reads any more.
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

    /// The peer sends no more.
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

    /// The stream is broken off, unless the peer has ended it before. What has come is still to be
    /// read.
    pub fn is_over(&self, why: Over) -> bool {
        let mut state = locked(&self.state);
        state.over.get_or_insert(why);
        let reader = state.reader.take();
        self.ready.store(true, Ordering::Release);
        drop(state);
        wake(reader)
    }

    /// What is to be read next, if there is anything. An end stays where it is.
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

    /// Whether there is something to be read, or an end.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Has a waker woken when there is.
    pub fn wait(&self, waker: &Waker) {
        let reader = &mut locked(&self.state).reader;
        reader.get_or_insert_with(|| waker.clone()).clone_from(waker);
    }

    /// Whether the peer has ended the stream.
    pub fn has_ended(&self) -> bool {
        locked(&self.state).end
    }

    /// Nobody reads any more: what is unread is handed back, and what still comes is, too.
    pub fn close(&self) -> VecDeque<Buf> {
        let mut state = locked(&self.state);
        state.closed = true;
        state.reader = None;
        std::mem::take(&mut state.unread)
    }

    pub fn is_closed(&self) -> bool {
        locked(&self.state).closed
    }
}

/// Wakes whoever waits. Whether somebody did.
pub(super) fn wake(waiting: Option<Waker>) -> bool {
    let woke = waiting.is_some();
    waiting.into_iter().for_each(Waker::wake);
    woke
}
