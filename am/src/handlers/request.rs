//! Requests, as their handlers see them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use doorbell_verbs::floor::HeldNic;

use super::kept::{Kept, TaskDebt, failed_unheard, unanswered};
use crate::arguments::{Arguments, HasPayload, Payload, Room};
use crate::credits::Owes;
use crate::error::{SendError, Undeliverable};
use crate::kinds::ReplyId;
use crate::link::{Link, To};
use crate::peer::Peer;
use crate::receives::{Arrival, is_copied};
use crate::shared::FEW;
use crate::wire::{ANSWER, Content, FAILED};

/// A request, as its handler gets it. It may be answered once.
///
/// If the request is dropped, a caller is told that nothing was replied, and any other sender gets
/// the credit back some time. A handler answers once:
///
/// ```
/// # use doorbell_am::{Handlers, ReplyId, RequestId};
/// # const ADD: RequestId<u64> = RequestId::new(0, "add");
/// # const SUM: ReplyId<u64> = ReplyId::new(0, "sum");
/// Handlers::new().request(ADD, |request, number| {
///     request.reply(SUM, number);
/// });
/// ```
///
/// A second answer does not compile:
///
/// ```compile_fail,E0382
/// # use doorbell_am::{Handlers, ReplyId, RequestId};
/// # const ADD: RequestId<u64> = RequestId::new(0, "add");
/// # const SUM: ReplyId<u64> = ReplyId::new(0, "sum");
/// Handlers::new().request(ADD, |request, number| {
///     request.reply(SUM, number);
///     request.reply(SUM, number);
/// });
/// ```
///
/// To answer later, a handler [keeps](Self::keep) the request:
///
/// ```
/// # use doorbell_am::{Handlers, RequestId};
/// # const ADD: RequestId<u64> = RequestId::new(0, "add");
/// let (requests, _) = std::sync::mpsc::channel();
/// Handlers::new().request(ADD, move |request, _| requests.send(request.keep()).unwrap());
/// ```
///
/// The request itself does not outlive the handler:
///
/// ```compile_fail,E0277
/// # use doorbell_am::{Handlers, RequestId};
/// # const ADD: RequestId<u64> = RequestId::new(0, "add");
/// let (requests, _) = std::sync::mpsc::channel();
/// Handlers::new().request(ADD, move |request, _| requests.send(request).unwrap());
/// ```
pub struct Request<'r>(&'r mut Asked<'r>);

/// The content of a request, on the stack of the dispatcher, so that a [`Request`] is a mere
/// pointer.
pub(crate) struct Asked<'r> {
    link: &'r Arc<Link>,
    arrival: &'r mut Arrival,
    nic: HeldNic<'r>,
    /// Whether the request has its answer, or somebody else owes the answer.
    settled: bool,
    /// The bytes of the payload, and of the buffer that went along, that the arguments have taken.
    taken: usize,
}

impl<'r> Asked<'r> {
    #[inline]
    pub fn new(link: &'r Arc<Link>, arrival: &'r mut Arrival, nic: HeldNic<'r>) -> Self {
        Self { link, arrival, nic, settled: false, taken: 0 }
    }
}

impl HasPayload for Asked<'_> {
    fn payload(&self) -> &[u8] {
        self.arrival.payload()
    }

    fn take_payload(&mut self) -> Bytes {
        let payload = self.arrival.take_payload(&self.link.buffers);
        let is_whole = self.arrival.buffer.is_none();
        self.taken += if is_whole { self.link.buffers.size() } else { payload.len() };
        payload
    }
}

impl<'r> Request<'r> {
    #[inline]
    pub(crate) fn new(asked: &'r mut Asked<'r>) -> Self {
        Self(asked)
    }

    /// Returns the peer that sent the request.
    pub fn peer(&self) -> Peer {
        Peer::of(self.0.link.clone())
    }

    /// Returns the number that was [noted](Peer::note) of the peer, or 0. For layers of this
    /// workspace that stand on Active Messages.
    #[doc(hidden)]
    #[inline]
    pub fn noted(&self) -> u64 {
        self.0.link.noted()
    }

    /// Returns the payload, in the buffer in which it was received.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        self.0.arrival.payload()
    }

    /// Returns the range of the endpoint's segment in which the payload was placed, if it was.
    #[inline]
    pub fn placed(&self) -> Option<Range<u64>> {
        self.0.arrival.placed.clone()
    }

    /// Returns the payload for the arguments to be made of.
    #[inline]
    pub(crate) fn parts(&mut self) -> Payload<'_> {
        Payload::of(self.0)
    }

    /// Has the task that serves the endpoint let other tasks run as soon as this handler has
    /// returned. A handler calls it when it has woken a task of the same thread. Otherwise that
    /// task would wait until the serving task has found nothing more for some time.
    pub fn note_woken(&self) {
        self.0.link.endpoint.signals.note_woken();
    }

    /// Returns the number of the look in which the request is handled. Requests of the same look
    /// had all come when the look began. For layers of this workspace that stand on Active
    /// Messages.
    #[doc(hidden)]
    pub fn look(&self) -> u64 {
        self.0.link.endpoint.signals.looks()
    }

    /// Takes the payload, and leaves an empty [`payload`](Self::payload). The bytes are not copied
    /// if they came in a packet of their own and fill a quarter of their buffer.
    pub fn take_payload(&mut self) -> Bytes {
        self.parts().take()
    }

    /// Answers the request with a reply. If the reply is longer than the peer takes, the peer is
    /// told so by [`LongReply`](Undeliverable::LongReply).
    #[inline]
    pub fn reply<A: Arguments>(self, id: ReplyId<A>, arguments: A) {
        let mut room = Room::new();
        self.answer(id.index(), room.content(&arguments));
    }

    /// Answers the request with a reply that has a copy of a payload beside the arguments.
    ///
    /// # Errors
    /// When the payload is longer than the peer takes, or there are too many words. The peer is
    /// told so by [`LongReply`](Undeliverable::LongReply).
    #[inline]
    pub fn reply_with<A: Arguments>(
        self,
        id: ReplyId<A>,
        arguments: A,
        payload: impl AsRef<[u8]>,
    ) -> Result<(), SendError> {
        let mut room = Room::new();
        let content = room.content_with(&arguments, payload.as_ref());
        let taken = self.0.link.check_takes(content);
        self.answer(id.index(), content);
        taken
    }

    /// Answers the request with the value that a handler has returned.
    #[inline]
    pub(crate) fn answers<A: Arguments>(self, answer: &A) {
        let mut room = Room::new();
        self.answer(ANSWER, room.content(answer));
    }

    /// Answers the request with the error that the handler has returned.
    #[cold]
    pub(crate) fn fails(self, text: &str) {
        if self.0.arrival.header.call == 0 {
            return failed_unheard(self.0.link, text);
        }
        let text = self.0.link.shortened(text);
        self.answer(FAILED, Content { words: &[], payload: text });
    }

    /// Sends the request back with the reason why there is no reply.
    #[cold]
    fn gives_back(self, why: Undeliverable) {
        self.0.settled = true;
        self.0.link.give_back(self.0.arrival.header, why, &[]);
    }

    #[inline]
    fn answer(self, handler: u16, content: Content<'_>) {
        self.0.settled = true;
        self.0.link.reply(
            To { handler, call: self.0.arrival.header.call },
            content,
            self.0.nic.reborrow(),
        );
    }

    /// Keeps the request, with its payload, to be answered later. Another buffer takes the place of
    /// the buffer in which the request was received.
    pub fn keep(self) -> Kept {
        self.keep_by(Owes::Holder)
    }

    fn keep_by(self, owes: Owes) -> Kept {
        self.0.settled = true;
        let Arrival { header, data, whole, placed, .. } = &*self.0.arrival;
        let words = 8 * header.words;
        let start = if *whole { data.start } else { 0 } + words;
        let payload = start..start + data.len() - words;
        let (header, placed) = (*header, placed.clone());
        // The words are read by now.
        let buffer = match payload.is_empty() {
            true => None,
            false => self.0.arrival.detach(&self.0.link.buffers),
        };
        let id = self.0.link.retain(header, owes);
        Kept::new(self.0.link.clone(), (header, id), buffer, payload, placed)
    }

    /// Has a task of the runtime answer the request, by the future that `handler` makes of it. If
    /// the task ends without an answer, or panics, the caller is told so. If nobody waits for the
    /// answer any more, the future is dropped at its next await. If the most asynchronous handlers
    /// are under way already, or their requests keep the most bytes, the request goes back as
    /// [`Busy`](Undeliverable::Busy).
    ///
    /// A handler that waits for something, while other requests of the peer do, gives the credit of
    /// its request back before it answers: the peer can send what the handler waits for.
    pub fn spawn<F>(self, handler: impl FnOnce(Kept) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let bytes = self.bytes_kept();
        self.spawn_keeping(bytes, handler);
    }

    /// Has a task of the runtime answer the request, as [`spawn`](Self::spawn) does. For layers of
    /// this workspace that refuse requests in words of their own.
    ///
    /// # Errors
    /// The request, when there is no room for another handler.
    #[doc(hidden)]
    pub fn try_spawn<F>(self, handler: impl FnOnce(Kept) -> F) -> Result<(), Self>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let bytes = self.bytes_kept();
        self.try_spawn_keeping(bytes, handler)
    }

    /// Returns the bytes that a task keeps which has the request, beside its words.
    fn bytes_kept(&self) -> usize {
        if self.payload().is_empty() { 0 } else { self.0.link.buffers.size() }
    }

    /// Has a task of the runtime answer the request, as [`spawn`](Self::spawn) does, by a future that
    /// keeps no more of the request than [`Kept::received`].
    pub(crate) fn spawn_received<F>(self, handler: impl FnOnce(Kept) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let payload = self.payload().len();
        let copied = self.0.arrival.buffer.as_ref().is_none_or(|buffer| is_copied(payload, buffer));
        // The arguments may have been made of the payload, too.
        let bytes = if copied { 2 * payload } else { payload + self.0.link.buffers.size() };
        self.spawn_keeping(bytes, handler);
    }

    /// Has a task of the runtime answer the request, by a future that keeps so many bytes of the
    /// request beside the words and what the arguments have taken.
    fn spawn_keeping<F>(self, bytes: usize, handler: impl FnOnce(Kept) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if let Err(refused) = self.try_spawn_keeping(bytes, handler) {
            refused.gives_back(Undeliverable::Busy);
        }
    }

    fn try_spawn_keeping<F>(self, bytes: usize, handler: impl FnOnce(Kept) -> F) -> Result<(), Self>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let Asked { link, ref arrival, taken, .. } = *self.0;
        let bytes = 8 * arrival.header.words + taken + bytes;
        let few = || link.retains_few(FEW);
        let Some(room) = link.endpoint.tasks.reserve(bytes, few) else {
            return Err(self);
        };
        let (header, kept) = (self.0.arrival.header, self.keep_by(Owes::HolderAndTask));
        let Some(id) = kept.id() else { return Ok(()) };
        // The debt tells the caller even if `handler` panics instead of making a future.
        let debt = TaskDebt::new(link.clone(), (header, id), room);
        let tasks = &link.endpoint.tasks;
        let task = tasks.spawn(handler(kept), debt, TaskDebt::waits, TaskDebt::panicked);
        link.endpoint.signals.note_woken();
        link.set_task(id, task);
        Ok(())
    }

    /// Sends the request back, since its words are no arguments of the handler.
    #[cold]
    pub(crate) fn misfits(self) {
        self.0.settled = true;
        let header = self.0.arrival.header;
        self.0.link.give_back(header, Undeliverable::Arguments, self.0.arrival.data());
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Asked { link, arrival, .. } = &*self.0;
        f.debug_struct("Request")
            .field("peer", &link.peer_text())
            .field("payload", &arrival.payload().len())
            .field("placed", &arrival.placed)
            .finish()
    }
}

impl Drop for Request<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.0.settled {
            unanswered(self.0.link, self.0.arrival.header, std::thread::panicking());
        }
    }
}
