//! The calls of a channel that wait for their answers.

use std::collections::HashMap;
use std::future::Future;
use std::hash::{BuildHasherDefault, Hasher};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use doorbell_am::{Handlers, Peer};

use super::connection::Lost;
use crate::status::Status;
use crate::wire::{ANSWER, CALL};

/// The calls that wait, by their numbers.
#[derive(Default)]
pub struct Calls(Mutex<HashMap<u64, Call, BuildHasherDefault<Spread>>>);

/// What has become of a call so far.
struct Call {
    /// The server, by the connection over which the call was sent.
    peer: Peer,
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

/// The end of a call.
pub type Outcome = Result<Answer, Lost>;

/// What a server has answered.
pub struct Answer {
    /// The flags in front of metadata and body.
    pub shape: u64,
    pub payload: Bytes,
}

impl Calls {
    /// The Active Messages of a client: answers, and requests that came back.
    pub fn handlers(self: &Arc<Self>) -> Handlers {
        let [answered, returned] = [self.clone(), self.clone()];
        Handlers::new()
            .reply(ANSWER, move |reply, [call, shape]| {
                let payload = Bytes::copy_from_slice(reply.payload());
                if answered.end(call, Ok(Answer { shape, payload })) {
                    reply.note_woken();
                }
            })
            .returned(move |message| {
                if message.handler() != Some(CALL.index()) {
                    return;
                }
                // The second word of a call's head is its number.
                if let Some(call) = message.words().nth(1) {
                    let why = Status::internal(format!("the call came back: {}", message.why()));
                    returned.end(call, Err(Lost::Over(why)));
                }
            })
    }

    /// A future for the answer to a call that is about to be sent over a connection.
    pub fn expect(&self, call: u64, peer: Peer) -> Answered<'_> {
        self.lock().insert(call, Call { peer, outcome: None, waker: None });
        Answered { calls: self, call }
    }

    /// Ends all calls that were sent over a connection which has ended as `ending` says.
    pub fn end_all_of(&self, peer: &Peer, ending: &str) {
        let mut wakers = Vec::new();
        for call in self.lock().values_mut() {
            if call.peer == *peer && call.outcome.is_none() {
                let why = Status::unavailable(format!(
                    "the connection ended before the call was answered: {ending}"
                ));
                call.outcome = Some(Err(Lost::Unknown(why)));
                wakers.extend(call.waker.take());
            }
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

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Call, BuildHasherDefault<Spread>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
