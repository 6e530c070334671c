//! One message that comes: its bytes that wait, its end, and what has become of its handler.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use doorbell_verbs::floor::locked;

use super::control::Control;
use super::hub::Counters;
use super::wire::{OVERHEAD, Packet, Reason};

/// A message that comes.
pub struct Inbox {
    pub control: Arc<Control>,
    /// The number of the message's stream.
    pub stream: u64,
    slot: usize,
    window: usize,
    state: Mutex<State>,
}

struct State {
    chunks: VecDeque<Bytes>,
    /// The room that the window has left for the sender.
    room: usize,
    /// The part of the window that was taken and that the sender was not told of.
    untold: usize,
    end: Option<End>,
    /// Whether a packet has come with which the message ends, and so no other may come.
    is_complete: bool,
    /// Whether the sender waits for the handler.
    waits: bool,
    handler: Handler,
    /// Whether the sender was told that no more is taken.
    has_failed: bool,
    waker: Option<Waker>,
}

/// How a message has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The sender has ended the message.
    Whole,
    /// The sender has given the message up.
    Abandoned,
    /// The connection has ended.
    Gone,
    /// The sender has broken the rules.
    Violation,
    /// The handler has ended.
    Over,
}

/// The state of the handler of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Handler {
    /// No packet was handed on yet.
    Waits,
    Runs,
    Over,
}

/// The outcome of a packet, or of the end of a handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The message goes on.
    GoesOn,
    /// The message has begun: its handler is to be run.
    Begins,
    /// The message is over, and the sender has to be told. The slot may be used again then.
    Done {
        /// Whether the sender waits for that.
        at_once: bool,
    },
    /// The message is over, and the sender knows.
    Over,
}

/// How a handler has ended.
pub enum Ended {
    Returned,
    Error(String),
    Panicked,
}

/// The next bytes of a message, or how it has ended.
pub type Next = Result<Bytes, End>;

impl Inbox {
    pub fn new(control: &Arc<Control>, stream: u64, slot: usize, window: usize) -> Arc<Self> {
        let state = State {
            chunks: VecDeque::new(),
            room: window,
            untold: 0,
            end: None,
            is_complete: false,
            waits: false,
            handler: Handler::Waits,
            has_failed: false,
            waker: None,
        };
        let (control, state) = (control.clone(), Mutex::new(state));
        Arc::new(Self { control, stream, slot, window, state })
    }

    pub fn slot(&self) -> usize {
        self.slot
    }

    /// Takes room in the window for a packet that has come. Returns whether the packet may be
    /// handed on; if it may not, it breaks the rules.
    pub fn admit(&self, packet: Packet, len: usize) -> bool {
        let mut state = locked(&self.state);
        let cost = if packet.abandons { 0 } else { len + OVERHEAD };
        let is_well_formed = !packet.abandons || len == 0 && !packet.ends;
        if state.is_complete || state.room < cost || !is_well_formed {
            return false;
        }
        state.room -= cost;
        state.is_complete = packet.ends || packet.abandons;
        self.held(|held| _ = held.fetch_add(cost, Ordering::Relaxed));
        true
    }

    /// Hands on a packet that was admitted.
    pub fn deliver(&self, packet: Packet, bytes: Bytes) -> Outcome {
        let mut state = locked(&self.state);
        let cost = if packet.abandons { 0 } else { bytes.len() + OVERHEAD };
        if state.handler == Handler::Over {
            self.held(|held| _ = held.fetch_sub(cost, Ordering::Relaxed));
            return self.discards(&mut state, packet, bytes.len());
        }
        if bytes.is_empty() {
            // Nobody takes it, so its cost is taken now.
            self.takes(&mut state, cost);
        } else {
            state.chunks.push_back(bytes);
        }
        if packet.ends || packet.abandons {
            state.waits = packet.waits;
            let end = if packet.ends { End::Whole } else { End::Abandoned };
            state.end.get_or_insert(end);
        }
        let waker = state.waker.take();
        let begins = state.handler == Handler::Waits;
        if begins {
            state.handler = Handler::Runs;
        }
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        if begins { Outcome::Begins } else { Outcome::GoesOn }
    }

    /// Discards a packet that comes when the handler is over.
    fn discards(&self, state: &mut State, packet: Packet, len: usize) -> Outcome {
        if len > 0 && !state.has_failed && !packet.abandons {
            state.has_failed = true;
            self.control.failed(self.slot, Reason::Returned, String::new());
        }
        match (packet.ends, packet.abandons) {
            (_, true) => Outcome::Done { at_once: true },
            (true, _) if state.has_failed => Outcome::Over,
            (true, _) => Outcome::Done { at_once: packet.waits },
            _ => Outcome::GoesOn,
        }
    }

    /// Refuses all further packets of a message: there is no handler for it, or it has broken the
    /// rules.
    pub fn refuse(&self, reason: Reason) {
        let mut state = locked(&self.state);
        if std::mem::replace(&mut state.has_failed, true) {
            return;
        }
        if state.handler == Handler::Waits {
            state.handler = Handler::Over;
        }
        self.control.failed(self.slot, reason, String::new());
        self.stop(state, End::Violation);
    }

    /// Notes that the connection has ended.
    pub fn gone(&self) {
        self.stop(locked(&self.state), End::Gone);
    }

    /// Ends a message that has not ended, and drops what the handler has not taken if it never
    /// will.
    fn stop(&self, mut state: std::sync::MutexGuard<'_, State>, end: End) {
        state.end.get_or_insert(end);
        if state.handler != Handler::Runs {
            state.handler = Handler::Over;
            self.drop_chunks(&mut state);
        }
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Returns the next bytes, at most so many, or has the task woken when there are some.
    pub fn poll_next(&self, most: usize, context: &mut Context<'_>) -> Poll<Next> {
        let mut state = locked(&self.state);
        if state.handler == Handler::Over {
            return Poll::Ready(Err(End::Over));
        }
        let Some(chunk) = state.chunks.front_mut() else {
            if let Some(end) = state.end {
                return Poll::Ready(Err(end));
            }
            match &mut state.waker {
                Some(waker) => waker.clone_from(context.waker()),
                none => *none = Some(context.waker().clone()),
            }
            return Poll::Pending;
        };
        if chunk.len() > most {
            let part = chunk.split_to(most);
            self.takes(&mut state, most);
            return Poll::Ready(Ok(part));
        }
        let chunk = state.chunks.pop_front().expect("there is a chunk in front");
        self.takes(&mut state, chunk.len() + OVERHEAD);
        Poll::Ready(Ok(chunk))
    }

    /// Notes that the handler has ended.
    pub fn finish(&self, ended: Ended) -> Outcome {
        let mut state = locked(&self.state);
        let unread = !state.chunks.is_empty();
        self.drop_chunks(&mut state);
        state.handler = Handler::Over;
        if state.end == Some(End::Gone) {
            return Outcome::Over;
        }
        if state.end == Some(End::Abandoned) {
            return Outcome::Done { at_once: true };
        }
        let failure = match ended {
            Ended::Returned if unread => Some((Reason::Returned, String::new())),
            Ended::Returned => None,
            Ended::Error(text) => Some((Reason::Error, text)),
            Ended::Panicked => Some((Reason::Panicked, String::new())),
        };
        if let Some((reason, text)) = failure
            && !std::mem::replace(&mut state.has_failed, true)
        {
            self.control.failed(self.slot, reason, text);
        }
        match (state.end == Some(End::Whole), state.has_failed) {
            (true, true) => Outcome::Over,
            (true, false) => Outcome::Done { at_once: state.waits },
            // The rest is discarded when it comes.
            (false, _) => Outcome::GoesOn,
        }
    }

    fn drop_chunks(&self, state: &mut State) {
        let cost = state.chunks.drain(..).map(|chunk| chunk.len() + OVERHEAD).sum();
        self.held(|held| _ = held.fetch_sub(cost, Ordering::Relaxed));
    }

    /// Gives room back to the sender, who is told of half a window at a time.
    fn takes(&self, state: &mut State, cost: usize) {
        self.held(|held| _ = held.fetch_sub(cost, Ordering::Relaxed));
        state.room += cost;
        state.untold += cost;
        if 2 * state.untold >= self.window && state.end.is_none() && !state.has_failed {
            self.control.taken(self.slot, std::mem::take(&mut state.untold));
        }
    }

    fn held(&self, change: impl FnOnce(&std::sync::atomic::AtomicUsize)) {
        let Counters { held, .. } = &self.control.hub.counters;
        change(held);
    }
}
