//! The calls of a channel that are in flight, and the delivery of their answers.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use doorbell_am::{Handlers, Peer, Undeliverable};
use doorbell_verbs::floor::{Awaits, Prober, locked};

use super::connection::Connection;
use super::connector::Connector;
use super::numbered::Numbered;
use super::states::Failure;
use crate::bulk::{Share, Transfers};
use crate::message::Body;
use crate::status::Status;
use crate::stream::Streams;
use crate::wire::{ANSWER, CALL, Flags, LEAVE, RESPONSE};

/// The calls in flight of a channel, by their numbers, with their streams and bodies.
pub struct Calls {
    waiting: Mutex<Numbered<Call>>,
    pub streams: Arc<Streams>,
    pub transfers: Arc<Transfers>,
    /// The memory for long data that the server sends.
    pub share: Share,
    /// The task that probes servers from which calls wait for answers, or streams for messages.
    pub prober: Prober,
    /// The longest message of a stream that is accepted, in bytes.
    longest: usize,
    /// The status that all further calls end with; set when the channel is over.
    over: OnceLock<Status>,
    /// The connector of the session, which is told when the server says that it shuts down.
    pub connector: OnceLock<Weak<Connector>>,
}

/// The state of one call in flight.
struct Call {
    /// The connection over which the call was sent.
    connection: Arc<Connection>,
    state: Awaited,
}

/// The state of the answer to a call.
enum Awaited {
    /// The call waits for its answer. The waker is that of the task which has asked last.
    Waits(Option<Waker>),
    /// The call has ended. Its task takes the outcome out.
    Ended(Option<Outcome>),
}

impl Call {
    fn is_waiting(&self) -> bool {
        matches!(self.state, Awaited::Waits(_))
    }

    fn peer(&self) -> &Peer {
        &self.connection.peer
    }

    /// Ends the call, if it still waits. Returns the waker of its task, if that is to be woken.
    ///
    /// # Errors
    /// The outcome, if the call has another already.
    fn end(&mut self, outcome: Outcome) -> Result<Option<Waker>, Outcome> {
        match &mut self.state {
            Awaited::Waits(waker) => {
                let waker = waker.take();
                self.state = Awaited::Ended(Some(outcome));
                Ok(waker)
            }
            Awaited::Ended(_) => Err(outcome),
        }
    }
}

/// How a call has ended: with the server's answer, or without one.
pub type Outcome = Result<Answer, Failure>;

/// The answer of a server, as it has arrived.
pub struct Answer {
    pub flags: Flags,
    pub payload: Bytes,
    /// The incoming stream, if the response's body is one.
    pub stream: Option<Body>,
}

impl Calls {
    /// Makes an empty table, for bodies of at most `longest` bytes each and `memory` bytes
    /// together. A body that finds no memory is refused when none has come back for `patience`.
    pub fn new(longest: usize, memory: usize, patience: Duration) -> Self {
        let transfers = Transfers::new(longest, memory, patience);
        let share = transfers.whole();
        Self {
            waiting: Mutex::default(),
            streams: Arc::default(),
            transfers,
            share,
            prober: Prober::default(),
            longest,
            over: OnceLock::new(),
            connector: OnceLock::new(),
        }
    }

    /// The handlers of Active Messages by which an endpoint receives answers, pieces of streams,
    /// and requests that came back undelivered.
    pub fn handlers(self: &Arc<Self>) -> Handlers {
        let [answered, responded, returned, left] = [0; 4].map(|_| self.clone());
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
            .request(LEAVE, move |request, _| {
                if let Some(connector) = left.connector.get().and_then(Weak::upgrade) {
                    connector.leaves(&request.peer());
                }
            })
            .returned(move |message| {
                if message.handler() != Some(CALL.index()) {
                    return;
                }
                // A request that is lost with its connection does not come here, because it is not
                // known which requests those were: `end_all_of` ends their calls. The second word
                // of a call's head is the call's number.
                if let Some(call) = message.words().nth(1) {
                    returned.end(call, Err(came_back(message.why())));
                }
            });
        self.transfers.add_handlers(self.streams.add_handlers(handlers))
    }

    /// The number of calls in flight.
    pub fn count(&self) -> usize {
        locked(&self.waiting).len()
    }

    /// Delivers an answer to its call. Returns whether a task was woken.
    fn answer(&self, call: u64, flags: u64, payload: &[u8]) -> bool {
        let flags = Flags::unpack(flags);
        if flags.accepted {
            return false;
        }
        // Pieces may follow right behind the answer, so the stream is opened first.
        let stream = flags.streams.then(|| self.open_stream(call)).flatten();
        let payload = Bytes::copy_from_slice(payload);
        self.end(call, Ok(Answer { flags, payload, stream }))
    }

    /// Opens the incoming stream of a call's response, if the call still waits.
    fn open_stream(&self, number: u64) -> Option<Body> {
        let connection = match locked(&self.waiting).get_mut(number) {
            Some(call) if call.is_waiting() => call.connection.clone(),
            _ => return None,
        };
        let (key, share) = ((connection.welcome.session, number), self.share.clone());
        Some(self.streams.open_incoming(key, &connection.peer, self.longest, share))
    }

    /// Enters a call that is about to be sent over a connection, and returns the future of its
    /// answer.
    pub fn expect(&self, call: u64, connection: &Arc<Connection>) -> Answered<'_> {
        self.enter(call, connection.clone());
        Answered { calls: self, call }
    }

    /// Enters a call that is about to be sent over a connection. Whoever enters it
    /// [polls](Self::poll) it until it has ended, or [leaves](Self::leave).
    pub fn enter(&self, call: u64, connection: Arc<Connection>) {
        let mut calls = locked(&self.waiting);
        let state = match self.over.get() {
            None => Awaited::Waits(None),
            Some(why) => Awaited::Ended(Some(Err(Failure::Final(why.clone())))),
        };
        calls.insert(call, Call { connection, state });
    }

    /// Waits for the end of a call. The call that has ended is taken off the table, and its
    /// connection comes with the outcome.
    pub fn poll(&self, number: u64, context: &mut Context<'_>) -> Poll<(Outcome, Arc<Connection>)> {
        let mut calls = locked(&self.waiting);
        let call = calls.get_mut(number).expect("it is on the table until it has ended");
        let replaced = match &mut call.state {
            Awaited::Ended(outcome) => {
                let outcome = outcome.take().expect("a call that has ended is taken off");
                let ended = calls.remove(number).expect("it was there just now");
                return Poll::Ready((outcome, ended.connection));
            }
            Awaited::Waits(Some(waker)) if waker.will_wake(context.waker()) => None,
            Awaited::Waits(waker) => waker.replace(context.waker().clone()),
        };
        drop(calls);
        // What is dropped with a waker may be another call, which is then taken off the table.
        drop(replaced);
        Poll::Pending
    }

    /// Takes a call off the table that nobody waits for any more. Returns its connection, unless
    /// the call has been taken off.
    pub fn leave(&self, number: u64) -> Option<Arc<Connection>> {
        let call = locked(&self.waiting).remove(number);
        call.map(|call| call.connection)
    }

    /// The servers from which calls or streams wait for something, by their connections.
    pub fn peers(&self) -> Vec<Peer> {
        let mut peers = self.streams.peers();
        for call in locked(&self.waiting).values().filter(|call| call.is_waiting()) {
            if !peers.contains(call.peer()) {
                peers.push(call.peer().clone());
            }
        }
        peers
    }

    /// Ends all calls that were sent over a connection, because it has ended for the reason
    /// `ending`.
    pub fn end_all_of(&self, peer: &Peer, ending: &str) {
        let why = Status::unavailable(format!(
            "the connection to {peer} ended before the call was answered: {ending}"
        ));
        self.streams.end_all_of(|of| (of == peer).then_some(&why));
        self.transfers.end_all_of(|of| of == peer);
        self.end_those(|call| call.peer() == peer, || Failure::OutcomeUnknown(why.clone()));
    }

    /// Ends all calls that were sent over connections that have ended, for when events were missed
    /// that would have named these.
    pub fn end_all_of_gone(&self) {
        for peer in self.peers() {
            if let Some(ending) = peer.ending() {
                self.end_all_of(&peer, &ending.to_string());
            }
        }
    }

    /// Ends all calls in flight and all future calls, because the channel is over.
    pub fn close(&self, why: Status) {
        self.streams.end_all(&why);
        self.transfers.end_all();
        let why = self.over.get_or_init(|| why);
        self.end_those(|_| true, || Failure::Final(why.clone()));
    }

    /// Ends the calls that still wait, of those that `which` picks.
    fn end_those(&self, which: impl Fn(&Call) -> bool, failure: impl Fn() -> Failure) {
        let mut wakers = Vec::new();
        for call in
            locked(&self.waiting).values_mut().filter(|call| call.is_waiting() && which(call))
        {
            wakers.extend(call.end(Err(failure())).ok().flatten());
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Ends a call, if it still waits. Returns whether a task was woken.
    fn end(&self, number: u64, outcome: Outcome) -> bool {
        // The lock is given back before the task is woken, and before an outcome is dropped that
        // nobody waits for.
        let ended = match locked(&self.waiting).get_mut(number) {
            Some(call) => call.end(outcome),
            None => Err(outcome),
        };
        let Ok(Some(waker)) = ended else { return false };
        waker.wake();
        true
    }
}

impl Awaits for Calls {
    fn prober(&self) -> &Prober {
        &self.prober
    }

    fn is_waiting(&self) -> bool {
        !self.peers().is_empty()
    }

    fn probe(&self) {
        self.peers().iter().for_each(Peer::probe);
    }
}

/// How a call ends whose request came back, undelivered, from a server that is reachable.
#[cold]
fn came_back(why: Undeliverable) -> Failure {
    let text = format!("the call came back: {why}");
    match why {
        Undeliverable::Busy => Failure::Final(Status::resource_exhausted(text).not_run()),
        Undeliverable::WrongTag => Failure::Final(Status::permission_denied(text).not_run()),
        _ => Failure::Final(Status::internal(text)),
    }
}

/// The future of a call's answer. Dropping it takes the call off the table.
pub struct Answered<'c> {
    calls: &'c Calls,
    call: u64,
}

impl Future for Answered<'_> {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        self.calls.poll(self.call, context).map(|(outcome, _)| outcome)
    }
}

impl Drop for Answered<'_> {
    fn drop(&mut self) {
        drop(self.calls.leave(self.call));
    }
}
