//! The sending direction of a stream: bytes, credits for the peer, and the end of the stream.

use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use doorbell_verbs::work::Send;
use doorbell_verbs::{Buf, Data, Inline, Memory, SendQueue, WorkRequest};

use super::Link;
use super::inbound::wake;
use crate::buffers::locked;
use crate::error::{Over, shut_down};
use crate::slices::Slices;
use crate::wire::{Hello, Signal, Violation};

/// The numbers by which completions of sends are told apart: those of bytes, of credits alone, and
/// of the end of the stream.
pub(crate) const DATA: u64 = 0;
pub(crate) const SIGNAL: u64 = 1;
pub(crate) const END: u64 = 2;

/// Places of the send queue that bytes leave free, for credits and the end of the stream.
pub(crate) const RESERVE: usize = 2;

/// The longest message that takes credits along, in an immediate. The last packet of a message is
/// longer with an immediate, and frames hold rows of packets of one length.
const MOST_WITH_CREDITS: usize = 1024;

/// The longest message that gets a buffer of its own length, not one of a segment.
const MOST_APART: usize = 4096;

/// The shortest write that may wait for others before the doorbell is rung.
const MUCH: usize = 16 << 10;

/// How many bytes may be posted before the doorbell is rung for them.
const WORTH_A_RING: usize = 256 << 10;

/// The most bytes that travel in a request.
const MOST_INLINE: usize = 64;

/// The sending direction of a link.
#[derive(Default)]
pub(crate) struct Outbound {
    /// Counts changes that a writer may wait for. A writer that sees no change takes no lock.
    changes: AtomicU32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The send queue, from the opening of the link until its queue pair is dropped.
    queue: Option<SendQueue>,
    /// How many messages with bytes may be sent now.
    credits: u32,
    /// How many messages the peer takes at the most.
    most: u32,
    /// The most bytes of a message, by what both ends have said.
    segment: usize,
    /// How many messages there must be room for before a long write goes on.
    worth: u32,
    /// How many sends are under way.
    under_way: u32,
    /// Whether a send of bytes has failed.
    failed: bool,
    /// How many bytes were posted without ringing the doorbell.
    unrung: usize,
    /// Whether the hub will ring the doorbell.
    held: bool,
    finish: Finish,
    over: Option<Over>,
    writer: Option<Waker>,
    /// How many messages the writer waits for.
    wants: u32,
}

/// How far the end of the stream has come.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Finish {
    #[default]
    Open,
    /// The end is to be sent.
    Wanted,
    /// The end is under way.
    Sent,
    /// The peer's NIC has acknowledged the end, and so all bytes before.
    Arrived,
}

impl State {
    /// Returns how many messages with bytes can be sent now.
    fn room(&self) -> u32 {
        let places = self.queue.as_ref().map_or(0, SendQueue::room).saturating_sub(RESERVE);
        self.credits.min(u32::try_from(places).unwrap_or(u32::MAX))
    }

    /// Takes the waker of the writer if what the writer waits for has come.
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
    /// Opens the direction when the connection stands and the peer has said what it takes.
    pub fn open(&self, queue: SendQueue, segment: usize, hello: Hello) {
        let state = &mut *locked(&self.state);
        (state.credits, state.most) = (hello.credits.into(), hello.credits.into());
        state.segment = segment.min(hello.segment as usize);
        let places = u32::try_from(queue.room().saturating_sub(RESERVE)).unwrap_or(u32::MAX);
        state.worth = (state.most.min(places) / 4).max(1);
        state.queue = Some(queue);
    }

    /// Returns how many changes there were that a writer may wait for.
    #[inline]
    pub fn changes(&self) -> u32 {
        self.changes.load(Ordering::Acquire)
    }

    /// Has `waker` woken when what the writer waits for has come.
    pub fn wait(&self, waker: &Waker) {
        let writer = &mut locked(&self.state).writer;
        writer.get_or_insert_with(|| waker.clone()).clone_from(waker);
    }

    /// Makes a change that a writer may wait for. Returns the result, and whether a writer was
    /// woken.
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> (R, bool) {
        let mut state = locked(&self.state);
        let result = change(&mut state);
        let writer = state.woken();
        self.changes.fetch_add(1, Ordering::Release);
        drop(state);
        (result, wake(writer))
    }

    /// Takes credits from the peer. Returns whether a writer was woken.
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

    /// Takes the completion of a send. Returns whether a writer was woken.
    pub fn sent(&self, link: &Link, id: u64, memory: Memory, well: bool) -> bool {
        if let Memory::Buf(buffer) = memory {
            link.hub.buffers.give(buffer);
        }
        let ((), woke) = self.change(|state| {
            state.under_way = state.under_way.saturating_sub(1);
            if id == END && well {
                state.finish = Finish::Arrived;
            }
            state.failed |= !well && id == DATA;
            state.pump(link);
        });
        woke
    }

    /// Takes note that nothing can be sent any more, and why, unless an earlier reason is known.
    /// Returns whether a writer was woken.
    pub fn ends(&self, over: Over) -> bool {
        let ((), woke) = self.change(|state| {
            state.over.get_or_insert(over);
        });
        woke
    }

    /// Sends credits and the end of the stream, if they are due and there is room.
    pub fn pump(&self, link: &Link) {
        locked(&self.state).pump(link);
    }

    /// Posts as many bytes as there is room for, and returns how many, or `None` if there is too
    /// little room and the writer must wait. The doorbell is rung at once for short writes and
    /// while nothing else is under way; otherwise by a later write, by a [flush](Self::flush), or
    /// by the hub.
    pub fn write(&self, link: &Arc<Link>, slices: &[IoSlice<'_>]) -> Option<io::Result<usize>> {
        let state = &mut *locked(&self.state);
        if let Some(why) = state.refusal(link.peer()) {
            return Some(Err(why));
        }
        let mut slices = Slices::new(slices);
        let all = slices.len();
        if all == 0 {
            return Some(Ok(0));
        }
        let (room, messages) = (state.room(), all.div_ceil(state.segment.max(1)));
        let wants = state.worth.min(u32::try_from(messages).unwrap_or(u32::MAX));
        if room < wants {
            state.wants = wants;
            return None;
        }
        state.wants = 0;
        let alone = state.under_way == 0;
        for _ in 0..room {
            if slices.len() == 0 || !state.put(link, &mut slices) {
                break;
            }
        }
        let sent = all - slices.len();
        link.asks();
        state.unrung += sent;
        if alone || sent < MUCH || state.unrung >= WORTH_A_RING {
            state.ring();
        } else if !std::mem::replace(&mut state.held, true) {
            link.hub.holds(link.clone());
        }
        match sent {
            // The queue takes nothing although it has room: the connection has just ended.
            0 => Some(Err(link.connection_error(true))),
            sent => Some(Ok(sent)),
        }
    }

    /// Rings the doorbell for all bytes that were posted.
    pub fn flush(&self) {
        locked(&self.state).ring();
    }

    /// Rings the doorbell for all bytes that were posted, as the hub that was asked to.
    pub fn release(&self) {
        let mut state = locked(&self.state);
        state.held = false;
        state.ring();
    }

    /// Sends the end of the stream behind all bytes, as soon as there is room.
    pub fn finish(&self, link: &Link) {
        let state = &mut *locked(&self.state);
        if state.finish == Finish::Open {
            state.finish = Finish::Wanted;
            state.pump(link);
        }
    }

    /// Returns success when the peer's NIC has acknowledged all bytes and the end of the stream,
    /// the error if the connection ended before, and `None` while neither is known.
    pub fn finished(&self, link: &Link) -> Option<io::Result<()>> {
        let state = locked(&self.state);
        match &state.over {
            _ if state.finish == Finish::Arrived => Some(Ok(())),
            None => None,
            Some(over @ Over::RuntimeEnded) => Some(Err(over.error(link.peer(), true))),
            // What was under way may still complete, and tells whether anything is lost; and so
            // does what the peer has sent before it left.
            Some(_) if state.under_way > 0 || !link.is_drained() => None,
            // A peer that has all bytes, has sent its own, and left, does not miss the end.
            Some(Over::PeerLeft) if !state.failed && link.inbound.has_ended() => Some(Ok(())),
            Some(over) => Some(Err(over.error(link.peer(), true))),
        }
    }

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
    fn put(&mut self, link: &Link, slices: &mut Slices<'_, '_>) -> bool {
        let len = slices.len().min(self.segment);
        let mut send = Send::new(message(link, slices, len)).id(DATA);
        if len <= MOST_WITH_CREDITS {
            let credits = link.credits_to_give(1);
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
    fn pump(&mut self, link: &Link) {
        let end = self.finish == Finish::Wanted;
        let Some(queue) = self.queue.as_mut().filter(|_| self.over.is_none()) else { return };
        if queue.room() == 0 {
            // What is under way leaves room when it is complete, and then this is tried again.
            return;
        }
        let credits = link.credits_to_give(if end { 1 } else { link.much() });
        if credits == 0 && !end {
            return;
        }
        let imm = Signal { credits, end }.to_imm();
        let nothing = Inline::new(&[]).expect("nothing has room in a request");
        let send = Send::new(nothing).imm(imm).id(if end { END } else { SIGNAL });
        // The end is waited for, as a rule.
        let send: WorkRequest = if end { send.awaited().into() } else { send.into() };
        if queue.post(send).is_ok() {
            self.under_way += 1;
            if end {
                self.finish = Finish::Sent;
            }
        }
    }
}

/// Copies the next bytes into what a request sends: the request itself, or a buffer.
fn message(link: &Link, slices: &Slices<'_, '_>, len: usize) -> Data {
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
    let mut buffer = link.hub.buffers.take();
    buffer.set_len(len).expect("a buffer has room for a segment");
    slices.copy_to(&mut buffer);
    buffer.into()
}
