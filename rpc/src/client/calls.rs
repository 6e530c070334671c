//! The calls of a channel that wait for their answers.

use std::collections::HashMap;
use std::future::Future;
use std::hash::{BuildHasherDefault, Hasher};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use doorbell_am::{Handlers, Peer, Undeliverable};

use super::alive::Prober;
use super::lost::Lost;
use crate::bulk::{Share, Transfers};
use crate::message::Body;
use crate::status::Status;
use crate::stream::Streams;
use crate::wire::{ANSWER, CALL, Flags, RESPONSE};

/// The calls that wait, by their numbers.
pub struct Calls {
    waiting: Mutex<Table>,
    pub streams: Arc<Streams>,
    pub transfers: Arc<Transfers>,
    /// The memory for what the server sends that is long.
    pub share: Share,
    pub prober: Prober,
    /// The longest message of a stream that is taken.
    longest: usize,
    /// What all calls end with, once the channel is over.
    over: OnceLock<Status>,
}

type Table = HashMap<u64, Call, BuildHasherDefault<Spread>>;

/// What has become of a call so far.
struct Call {
    /// The server, by the connection over which the call was sent.
    peer: Peer,
    session: u64,
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

/// The end of a call.
pub type Outcome = Result<Answer, Lost>;

/// What a server has answered.
pub struct Answer {
    pub flags: Flags,
    pub payload: Bytes,
    /// The stream that follows, if one does.
    pub stream: Option<Body>,
}

impl Calls {
    /// No calls yet, whose bodies may have so many bytes each, and so many together.
    pub fn new(longest: usize, memory: usize) -> Self {
        let transfers = Transfers::new(longest, memory);
        let share = transfers.whole();
        let (waiting, streams, prober) = (Mutex::default(), Arc::default(), Prober::default());
        Self { waiting, streams, transfers, share, prober, longest, over: OnceLock::new() }
    }

    /// The Active Messages of a client: answers, streams, and requests that came back.
    pub fn handlers(self: &Arc<Self>) -> Handlers {
        let [answered, responded, returned] = [self.clone(), self.clone(), self.clone()];
        let handlers = Handlers::new()
            .reply(ANSWER, move |reply, [call, flags]| {
                if answered.answer(call, flags, reply.payload()) {
                    reply.note_woken();
                }
            })
            .request(RESPONSE, move |request, [_, call, flags]| {
                if responded.answer(call, flags, request.payload()) {
                    request.note_woken();
                }
            })
            .returned(move |message| {
                if message.handler() != Some(CALL.index()) {
                    return;
                }
                // Of requests that are lost with a connection it is not known which they were, and
                // so none comes here: `end_all_of` ends their calls. The second word of a call's
                // head is its number.
                if let Some(call) = message.words().nth(1) {
                    returned.end(call, Err(came_back(message.why())));
                }
            });
        self.transfers.add_handlers(self.streams.add_handlers(handlers))
    }

    /// How many calls wait for their answers.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// Takes an answer in. Returns whether a task was woken.
    fn answer(&self, call: u64, flags: u64, payload: &[u8]) -> bool {
        let flags = Flags::unpack(flags);
        if flags.accepted {
            return false;
        }
        // Pieces may follow at once.
        let stream = flags.streams.then(|| self.open_stream(call)).flatten();
        let payload = Bytes::copy_from_slice(payload);
        self.end(call, Ok(Answer { flags, payload, stream }))
    }

    /// Opens the stream of the response to a call that still waits.
    fn open_stream(&self, number: u64) -> Option<Body> {
        let (session, peer) = match self.lock().get(&number) {
            Some(call) if call.outcome.is_none() => (call.session, call.peer.clone()),
            _ => return None,
        };
        let share = self.share.clone();
        Some(self.streams.open_incoming((session, number), &peer, self.longest, share))
    }

    /// A future for the answer to a call that is about to be sent over a connection.
    pub fn expect(self: &Arc<Self>, (session, call): (u64, u64), peer: &Peer) -> Answered<'_> {
        let mut calls = self.lock();
        let outcome = self.over.get().map(|why| Err(Lost::Over(why.clone())));
        calls.insert(call, Call { peer: peer.clone(), session, outcome, waker: None });
        drop(calls);
        self.prober.begins(self, peer);
        Answered { calls: self, call }
    }

    /// The servers that calls or streams wait for, by the connections over which they were called.
    pub fn peers(&self) -> Vec<Peer> {
        let mut peers = self.streams.peers();
        for call in self.lock().values().filter(|call| call.outcome.is_none()) {
            if !peers.contains(&call.peer) {
                peers.push(call.peer.clone());
            }
        }
        peers
    }

    /// Ends all calls that were sent over a connection which has ended as `ending` says.
    pub fn end_all_of(&self, peer: &Peer, ending: &str) {
        let why = Status::unavailable(format!(
            "the connection to {peer} ended before the call was answered: {ending}"
        ));
        self.streams.end_all_of(|of| (of == peer).then_some(&why));
        self.transfers.end_all_of(|of| of == peer);
        let mut wakers = Vec::new();
        for call in self.lock().values_mut() {
            if call.peer == *peer && call.outcome.is_none() {
                call.outcome = Some(Err(Lost::Unknown(why.clone())));
                wakers.extend(call.waker.take());
            }
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Ends all calls, and those that will be made, because the channel is over.
    pub fn close(&self, why: Status) {
        self.streams.end_all(&why);
        self.transfers.end_all();
        let why = self.over.get_or_init(|| why);
        let mut wakers = Vec::new();
        for call in self.lock().values_mut().filter(|call| call.outcome.is_none()) {
            call.outcome = Some(Err(Lost::Over(why.clone())));
            wakers.extend(call.waker.take());
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Ends a call, if it still waits. Returns whether a task was woken.
    fn end(&self, number: u64, outcome: Outcome) -> bool {
        let mut calls = self.lock();
        let Some(call) = calls.get_mut(&number).filter(|call| call.outcome.is_none()) else {
            return false;
        };
        call.outcome = Some(outcome);
        let waker = call.waker.take();
        drop(calls);
        let woke = waker.is_some();
        waker.into_iter().for_each(Waker::wake);
        woke
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a call ended whose request came back from a server that is there.
#[cold]
fn came_back(why: Undeliverable) -> Lost {
    let text = format!("the call came back: {why}");
    match why {
        Undeliverable::Busy => Lost::Over(Status::resource_exhausted(text)),
        Undeliverable::WrongTag => Lost::Over(Status::permission_denied(text)),
        _ => Lost::Over(Status::internal(text)),
    }
}

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Calls").field("waiting", &self.lock().len()).finish()
    }
}

/// The future of a call's answer. When it is dropped, the call is taken off the table.
pub struct Answered<'c> {
    calls: &'c Calls,
    call: u64,
}

impl Future for Answered<'_> {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let mut calls = self.calls.lock();
        let call = calls.get_mut(&self.call).expect("it is on the table until this is dropped");
        match call.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                match &mut call.waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    none => *none = Some(context.waker().clone()),
                }
                Poll::Pending
            }
        }
    }
}

impl Drop for Answered<'_> {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.call);
    }
}

/// A hash of numbers that are counted up: the number itself, spread over all bits.
#[derive(Default)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte) ^ self.0);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
