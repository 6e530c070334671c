//! The sending direction of a stream: bytes, credits for the peer, and the end of the stream.

use std::io::{self, IoSlice};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Waker;

use doorbell_verbs::work::Send;
use doorbell_verbs::{Buf, Data, Inline, Memory, SendQueue, WorkRequest};

use super::common::Common;
use super::inbound::wake;
use super::slices::Slices;
use crate::error::{Over, shut_down};
use crate::shared::locked;
use crate::wire::{Hello, Signal, Violation};

/// The number that marks sends of bytes among all completions.
const DATA: u64 = 0;
/// The number that marks sends of credits alone.
const SIGNAL: u64 = 1;
/// The number that marks the send of the end of the stream.
const END: u64 = 2;

/// How many places of the send queue are kept free of bytes, for credits and the end of the stream.
pub(crate) const RESERVE: usize = 2;

/// The longest message that takes returned credits along, in an immediate. An immediate makes the
/// last packet of a message longer, and a frame holds several packets only if they have one length.
const MOST_WITH_CREDITS: usize = 1024;

/// The longest message for which a buffer of its own length is allocated, rather than one of a
/// segment taken.
const MOST_APART: usize = 4096;

/// The shortest write that may wait for others before the doorbell is rung.
const MUCH: usize = 16 << 10;

/// How many bytes may be posted before the doorbell must be rung for them.
const WORTH_A_RING: usize = 256 << 10;

/// The most bytes that are posted inline, as part of the request.
const MOST_INLINE: usize = 64;

/// The sending direction of a link.
#[derive(Default)]
pub(crate) struct Outbound {
    /// Counts changes that a writer may wait for. A writer that sees no change takes no lock.
    changes: AtomicU32,
    state: Mutex<State>,
}

/// The outcome of a write.
pub(crate) struct Written {
    /// How many bytes were posted, or why none can be; `None` if there is too little room, and the
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

#[derive(Default)]
struct State {
    /// The send queue, from the opening of the link until its queue pair is dropped.
    queue: Option<SendQueue>,
    /// How many messages with bytes may be sent now.
    credits: u32,
    /// How many messages the peer takes when it has read everything.
    most: u32,
    /// The most bytes of a message: the shorter of both ends' segments.
    segment: usize,
    /// How many messages there must be room for before a long write goes on.
    worth: u32,
    /// How many sends are under way.
    under_way: u32,
    /// Whether a send of bytes has failed.
    failed: bool,
    /// How many bytes were posted without ringing the doorbell.
    unrung: usize,
    /// Whether somebody has been asked to ring the doorbell later.
    held: bool,
    finish: Finish,
    over: Option<Over>,
    writer: Option<Waker>,
    /// For how many messages the writer waits to have room.
    wants: u32,
}

/// How far the sending of the stream's end has come.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Finish {
    /// The stream has not ended, and more bytes may be written.
    #[default]
    Open,
    /// The end is to be sent as soon as there is room.
    Wanted,
    /// The end was posted, and is not acknowledged yet.
    Sent,
    /// The peer's NIC has acknowledged the end, and with it all bytes before.
    Arrived,
}

impl State {
    /// Returns how many messages with bytes can be sent now.
    fn room(&self) -> u32 {
        let places = self.queue.as_ref().map_or(0, SendQueue::room).saturating_sub(RESERVE);
        self.credits.min(u32::try_from(places).unwrap_or(u32::MAX))
    }

    /// Takes the waker of the writer if the writer has something to do.
    fn woken(&mut self) -> Option<Waker> {
        let settled = self.over.is_some() || self.finish == Finish::Arrived;
        if settled || (self.wants > 0 && self.room() >= self.wants) {
            return self.writer.take();
        }
        None
    }

    /// Returns the error of a write, if nothing can be written any more.
    fn refusal(&self, peer: &str) -> Option<io::Error> {
        match &self.over {
            _ if self.finish != Finish::Open => Some(shut_down(peer)),
            Some(over) => Some(over.error(peer, true)),
            None => None,
        }
    }
}

impl Outbound {
    /// Opens the direction when the connection is established and the peer's hello has come.
    pub fn open(&self, queue: SendQueue, segment: usize, hello: Hello) {
        let state = &mut *locked(&self.state);
        (state.credits, state.most) = (hello.credits.into(), hello.credits.into());
        state.segment = segment.min(hello.segment as usize);
        let places = u32::try_from(queue.room().saturating_sub(RESERVE)).unwrap_or(u32::MAX);
        state.worth = (state.most.min(places) / 4).max(1);
        state.queue = Some(queue);
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

    /// Makes a change that a writer may wait for. Returns what `change` returns, and whether a
    /// writer was woken.
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> (R, bool) {
        let mut state = locked(&self.state);
        let result = change(&mut state);
        let writer = state.woken();
        self.changes.fetch_add(1, Ordering::Release);
        drop(state);
        (result, wake(writer))
    }

    /// Adds credits that the peer has given back. Returns whether a writer was woken.
    pub fn granted(&self, credits: u16) -> Result<bool, Violation> {
        let (granted, woke) = self.change(|state| {
            let most = state.most;
            let now = state.credits + u32::from(credits);
            if now > most {
                let most = u16::try_from(most).unwrap_or(u16::MAX);
                return Err(Violation::Credits { given: credits, most });
            }
            state.credits = now;
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
            state.failed |= !succeeded && id == DATA;
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

    /// Sends owed credits and the end of the stream, if they are due and there is room.
    pub fn pump(&self, common: &Common) {
        locked(&self.state).pump(common);
    }

    /// Posts as many bytes as there is room for. The doorbell is rung at once for short writes and
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
        let (room, messages) = (state.room(), all.div_ceil(state.segment.max(1)));
        let wants = state.worth.min(u32::try_from(messages).unwrap_or(u32::MAX));
        if room < wants {
            state.wants = wants;
            return None.into();
        }
        state.wants = 0;
        let alone = state.under_way == 0;
        for _ in 0..room {
            if slices.len() == 0 || !state.put(common, &mut slices) {
                break;
            }
        }
        let sent = all - slices.len();
        common.note_sent();
        state.unrung += sent;
        let mut ring_later = false;
        if alone || sent < MUCH || state.unrung >= WORTH_A_RING {
            state.ring();
        } else {
            ring_later = !std::mem::replace(&mut state.held, true);
        }
        let result = match sent {
            // The queue takes nothing although it has room: the connection has just ended.
            0 => Some(Err(common.connection_error(true))),
            sent => Some(Ok(sent)),
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
            Some(Over::PeerLeft) if !state.failed && peer_has_ended() => Some(Ok(())),
            Some(over) => Some(Err(over.error(common.peer(), true))),
        }
    }

    /// Takes the send queue out, after which nothing can be posted.
    pub fn take_queue(&self) -> Option<SendQueue> {
        locked(&self.state).queue.take()
    }
}

/// Posting to the send queue.
impl State {
    /// Rings the doorbell, if bytes were posted since it was rung last.
    fn ring(&mut self) {
        if std::mem::take(&mut self.unrung) > 0
            && let Some(queue) = &mut self.queue
        {
            queue.ring();
        }
    }

    /// Posts a message of the next bytes, for which there must be a credit and room. Returns
    /// whether the queue took the message, which it refuses only when the connection is over.
    fn put(&mut self, common: &Common, slices: &mut Slices<'_, '_>) -> bool {
        let len = slices.len().min(self.segment);
        let mut send = Send::new(message(common, slices, len)).id(DATA);
        if len <= MOST_WITH_CREDITS {
            let credits = common.credits.give_back(1);
            if credits > 0 {
                send = send.imm(Signal { credits, end: false }.to_imm());
            }
        }
        let Some(queue) = &mut self.queue else { return false };
        if queue.put(send).is_err() {
            return false;
        }
        slices.advance(len);
        self.credits -= 1;
        self.under_way += 1;
        true
    }

    /// Posts the credits that are owed, if they are many, and the end of the stream, if wanted.
    fn pump(&mut self, common: &Common) {
        let end = self.finish == Finish::Wanted;
        let Some(queue) = self.queue.as_mut().filter(|_| self.over.is_none()) else { return };
        if queue.room() == 0 {
            // The completion of a send under way makes room, and then `pump` is called again.
            return;
        }
        let least = if end { 1 } else { common.credits.worth_a_message() };
        let credits = common.credits.give_back(least);
        if credits == 0 && !end {
            return;
        }
        let imm = Signal { credits, end }.to_imm();
        let nothing = Inline::new(&[]).expect("nothing has room in a request");
        let send = Send::new(nothing).imm(imm).id(if end { END } else { SIGNAL });
        // The program usually waits for the end to be acknowledged.
        let send: WorkRequest = if end { send.awaited().into() } else { send.into() };
        if queue.post(send).is_ok() {
            self.under_way += 1;
            if end {
                self.finish = Finish::Sent;
            }
        }
    }
}

/// Copies the next `len` bytes into the request itself if they are few, or into a buffer.
fn message(common: &Common, slices: &Slices<'_, '_>, len: usize) -> Data {
    if len <= MOST_INLINE {
        let mut few = [0; MOST_INLINE];
        slices.copy_to(&mut few[..len]);
        return Inline::new(&few[..len]).expect("so many have room").into();
    }
    if len <= MOST_APART {
        let mut bytes = vec![0; len];
        slices.copy_to(&mut bytes);
        return Buf::from(bytes).into();
    }
    let mut buffer = common.shared.buffers.take();
    buffer.set_len(len).expect("a buffer has room for a segment");
    slices.copy_to(&mut buffer);
    buffer.into()
}
