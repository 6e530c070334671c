//! The sending direction of a stream: bytes, word of what was read, and the end of the stream.

use std::io::{self, IoSlice};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Waker;

use doorbell_verbs::floor::locked;
use doorbell_verbs::{Memory, SendQueue};

use super::common::Common;
use super::inbound::wake;
use super::posting::{DATA, END, Finish, SHORT, State};
use super::slices::Slices;
use crate::error::Over;
use crate::wire::{Hello, Violation};

/// The fewest bytes for which the doorbell may be rung later, together with others.
const MUCH: usize = 16 << 10;

/// How many bytes may be posted before the doorbell must be rung for them.
const WORTH_A_RING: usize = 256 << 10;

/// The sending direction of a link.
#[derive(Default)]
pub(crate) struct Outbound {
    /// Counts changes that a writer may wait for. A writer that sees no change takes no lock.
    changes: AtomicU32,
    state: Mutex<State>,
}

/// The outcome of a write.
pub(crate) struct Written {
    /// How many bytes were taken, or why none can be; `None` if there is too little room, and the
    /// writer must wait.
    pub result: Option<io::Result<usize>>,
    /// Whether the doorbell was not rung, and the caller must see to it that
    /// [`release`](Outbound::release) is called soon.
    pub ring_later: bool,
}

impl From<Option<io::Result<usize>>> for Written {
    fn from(result: Option<io::Result<usize>>) -> Self {
        Self { result, ring_later: false }
    }
}

impl Outbound {
    /// Opens the direction when the connection is established and the peer's hello has come.
    pub fn open(&self, queue: SendQueue, segment: usize, hello: Hello) {
        let state = &mut *locked(&self.state);
        state.window = hello.window as usize;
        state.may_send = state.window;
        state.segment = segment.min(hello.segment as usize);
        state.queue = Some(queue);
        state.worth = state.places().saturating_mul(state.segment) / 4;
    }

    /// Returns the number of changes so far that a writer may wait for.
    #[inline]
    pub fn changes(&self) -> u32 {
        self.changes.load(Ordering::Acquire)
    }

    /// Has `waker` woken when the writer has something to do.
    pub fn wait(&self, waker: &Waker) {
        let writer = &mut locked(&self.state).writer;
        writer.get_or_insert_with(|| waker.clone()).clone_from(waker);
    }

    /// Has `waker` woken when [`finished`](Self::finished) may have an outcome. This is for the
    /// task that closes the endpoint, beside a writer of the program.
    pub fn wait_for_end(&self, waker: &Waker) {
        let closer = &mut locked(&self.state).closer;
        closer.get_or_insert_with(|| waker.clone()).clone_from(waker);
    }

    /// Returns whether the peer's NIC has acknowledged all bytes, whether or not it has the end of
    /// the stream. Nothing may be under way.
    pub fn has_delivered_all(&self) -> bool {
        let state = locked(&self.state);
        state.under_way == 0 && state.has_sent_all()
    }

    /// Makes a change that a writer may wait for. Returns what `change` returns, and whether a
    /// writer was woken.
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> (R, bool) {
        let mut state = locked(&self.state);
        let result = change(&mut state);
        let writer = state.woken();
        let closer = if state.is_settled() { state.closer.take() } else { None };
        self.changes.fetch_add(1, Ordering::Release);
        drop(state);
        (result, wake(writer) | wake(closer))
    }

    /// Notes that the peer's program has read so many bytes, and so has room for as many more.
    /// Returns whether a writer was woken.
    pub fn granted(&self, read: u32) -> Result<bool, Violation> {
        let (granted, woke) = self.change(|state| {
            let sent = state.window - state.may_send;
            if read as usize > sent {
                // No more than the window, which is a number of this type.
                return Err(Violation::Read { read, sent: sent as u32 });
            }
            state.may_send += read as usize;
            Ok(())
        });
        granted.map(|()| woke)
    }

    /// Handles the completion of a send, which had the number `id` and may have `succeeded`.
    /// Returns whether a writer was woken.
    pub fn sent(&self, common: &Common, id: u64, memory: Memory, succeeded: bool) -> bool {
        if let Memory::Buf(buffer) = memory {
            common.shared.buffers.give(buffer);
        }
        let ((), woke) = self.change(|state| {
            state.under_way = state.under_way.saturating_sub(1);
            if id == END && succeeded {
                state.finish = Finish::Arrived;
            }
            if id == SHORT {
                state.short -= 1;
            }
            state.failed |= !succeeded && matches!(id, DATA | SHORT);
            state.pump(common);
        });
        woke
    }

    /// Notes that nothing can be sent any more, and why, unless an earlier reason is known.
    /// Returns whether a writer was woken.
    pub fn ends(&self, over: Over) -> bool {
        let ((), woke) = self.change(|state| {
            state.over.get_or_insert(over);
        });
        woke
    }

    /// Sends what was gathered, word of what was read, and the end of the stream, if they are due
    /// and there is room.
    pub fn pump(&self, common: &Common) {
        locked(&self.state).pump(common);
    }

    /// Tells the peer what was read, however little that is. Returns false if the queue has no
    /// place now.
    pub fn tell(&self, common: &Common) -> bool {
        locked(&self.state).tell(common)
    }

    /// Takes as many bytes as there is room for, and posts them, except that short messages are
    /// gathered while enough others are under way. The doorbell is rung at once for few bytes and
    /// while nothing else is under way; otherwise by a later write, by a [flush](Self::flush), or
    /// by the caller, who is told so.
    pub fn write(&self, common: &Common, slices: &[IoSlice<'_>]) -> Written {
        let state = &mut *locked(&self.state);
        if let Some(why) = state.refusal(common.peer()) {
            return Some(Err(why)).into();
        }
        let mut slices = Slices::new(slices);
        let all = slices.len();
        if all == 0 {
            return Some(Ok(0)).into();
        }
        if state.room() < state.wants.clamp(1, all) {
            state.wants = match state.may_send {
                0 => 1,
                // Each send that completes would make a place.
                may_send => state.worth.min(all).min(may_send),
            };
            return None.into();
        }
        state.wants = 0;
        let alone = state.under_way == 0;
        let posted = state.take(common, &mut slices);
        common.note_sent();
        let mut ring_later = false;
        if posted >= MUCH && !alone && state.unrung < WORTH_A_RING {
            ring_later = !std::mem::replace(&mut state.held, true);
        } else if posted > 0 {
            state.ring();
        }
        let result = match all - slices.len() {
            // The queue takes nothing although it has room: the connection has just ended.
            0 => Some(Err(common.connection_error(true))),
            taken => Some(Ok(taken)),
        };
        Written { result, ring_later }
    }

    /// Rings the doorbell at once for all bytes that were posted.
    pub fn flush(&self) {
        locked(&self.state).ring();
    }

    /// Rings the doorbell that a [write](Self::write) has left to be rung later.
    pub fn release(&self) {
        let mut state = locked(&self.state);
        state.held = false;
        state.ring();
    }

    /// Sends the end of the stream behind all bytes, as soon as there is room.
    pub fn finish(&self, common: &Common) {
        let state = &mut *locked(&self.state);
        if state.finish == Finish::Open {
            state.finish = Finish::Wanted;
            state.pump(common);
        }
    }

    /// Returns success when the peer's NIC has acknowledged all bytes and the end of the stream, an
    /// error if the connection ended before that, and `None` while neither is known.
    /// `peer_has_ended` tells whether the peer has ended its own direction.
    pub fn finished(
        &self,
        common: &Common,
        peer_has_ended: impl FnOnce() -> bool,
    ) -> Option<io::Result<()>> {
        let state = locked(&self.state);
        match &state.over {
            _ if state.finish == Finish::Arrived => Some(Ok(())),
            None => None,
            Some(over @ Over::RuntimeEnded) => Some(Err(over.error(common.peer(), true))),
            // Sends under way may still complete, and messages that the peer sent before it left
            // may still be handled. Both tell whether anything was lost.
            Some(_) if state.under_way > 0 || !common.is_drained() => None,
            // A peer that has all bytes and has ended its own direction does not need this end.
            Some(Over::PeerLeft) if state.has_sent_all() && peer_has_ended() => Some(Ok(())),
            Some(over) => Some(Err(over.error(common.peer(), true))),
        }
    }

    /// Takes the send queue out, after which nothing can be posted.
    pub fn take_queue(&self) -> Option<SendQueue> {
        locked(&self.state).queue.take()
    }
}
