//! Requests, replies, and requests that came back, as handlers see them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use doorbell_verbs::floor::HeldNic;

use crate::arguments::{Arguments, HasPayload, Payload};
use crate::arrival::Arrival;
use crate::content::Content;
use crate::error::{SendError, Undeliverable};
use crate::handlers::ReplyId;
use crate::kept::Owes;
use crate::link::{Link, To};
use crate::owed::{Kept, TaskDebt, unanswered};
use crate::peer::Peer;
use crate::room::Room;
use crate::wire::{ANSWER, FAILED, Header};
use crate::words::each_word;

/// A request, for the handler that it runs: it may be answered once.
///
/// If it is dropped, the peer is told that it is done, some time, and a caller that nothing was
/// replied. Once:
///
/// ```
/// # use doorbell::am::{Handlers, ReplyId, RequestId};
/// # const ADD: RequestId<u64> = RequestId::new(0, "add");
/// # const SUM: ReplyId<u64> = ReplyId::new(0, "sum");
/// Handlers::new().request(ADD, |request, number| {
///     request.reply(SUM, number);
/// });
/// ```
///
/// And not twice:
///
/// ```compile_fail,E0382
/// # use doorbell::am::{Handlers, ReplyId, RequestId};
/// # const ADD: RequestId<u64> = RequestId::new(0, "add");
/// # const SUM: ReplyId<u64> = ReplyId::new(0, "sum");
/// Handlers::new().request(ADD, |request, number| {
///     request.reply(SUM, number);
///     request.reply(SUM, number);
/// });
/// ```
///
/// Later only by what was [kept](Self::keep) of it:
///
/// ```
/// # use doorbell::am::{Handlers, RequestId};
/// # const ADD: RequestId<u64> = RequestId::new(0, "add");
/// let (requests, _) = std::sync::mpsc::channel();
/// Handlers::new().request(ADD, move |request, _| requests.send(request.keep()).unwrap());
/// ```
///
/// And not by itself:
///
/// ```compile_fail,E0277
/// # use doorbell::am::{Handlers, RequestId};
/// # const ADD: RequestId<u64> = RequestId::new(0, "add");
/// let (requests, _) = std::sync::mpsc::channel();
/// Handlers::new().request(ADD, move |request, _| requests.send(request).unwrap());
/// ```
pub struct Request<'r>(&'r mut Asked<'r>);

/// What a request is about: where it was received, so that the request itself is moved in a
/// register.
pub(crate) struct Asked<'r> {
    link: &'r Arc<Link>,
    arrival: &'r mut Arrival,
    nic: HeldNic<'r>,
    /// Whether it has its answer, or somebody else owes it.
    settled: bool,
}

impl<'r> Asked<'r> {
    #[inline]
    pub fn new(link: &'r Arc<Link>, arrival: &'r mut Arrival, nic: HeldNic<'r>) -> Self {
        Self { link, arrival, nic, settled: false }
    }
}

impl HasPayload for Asked<'_> {
    fn payload(&self) -> &[u8] {
        self.arrival.payload()
    }

    fn take_payload(&mut self) -> Bytes {
        self.arrival.take_payload(&self.link.buffers)
    }
}

impl<'r> Request<'r> {
    #[inline]
    pub(crate) fn new(asked: &'r mut Asked<'r>) -> Self {
        Self(asked)
    }

    /// The peer that sent the request.
    pub fn peer(&self) -> Peer {
        Peer::of(self.0.link.clone())
    }

    /// The payload, where it was received.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        self.0.arrival.payload()
    }

    /// Where in the endpoint's segment the payload was placed, if it was.
    #[inline]
    pub fn placed(&self) -> Option<Range<u64>> {
        self.0.arrival.placed.clone()
    }

    /// The words and the payload, to make arguments of.
    #[inline]
    pub(crate) fn parts(&mut self) -> Payload<'_> {
        Payload::of(self.0)
    }

    /// Has the task that serves the endpoint let other tasks run as soon as this handler has returned:
    /// for a handler that wakes a task of the same thread, which would wait until the serving task
    /// has found nothing more for some time.
    pub fn note_woken(&self) {
        self.0.link.endpoint.shared.note_woken();
    }

    /// The number of the look at what has come in which the request is handled. Requests of the same
    /// look had all come when the look began. For layers of this workspace that stand on Active
    /// Messages.
    #[doc(hidden)]
    pub fn look(&self) -> u64 {
        self.0.link.endpoint.shared.looks()
    }

    /// Takes the payload, which is not copied if it came in a packet of its own and fills a quarter
    /// of its buffer. [`payload`](Self::payload) is empty then.
    pub fn take_payload(&mut self) -> Bytes {
        self.parts().take()
    }

    /// Replies. If the reply is more than the peer takes, the peer is told that, as
    /// [`LongReply`](Undeliverable::LongReply).
    #[inline]
    pub fn reply<A: Arguments>(self, id: ReplyId<A>, arguments: A) {
        let mut room = Room::new();
        self.answer(id.index(), room.content(&arguments));
    }

    /// Replies with a payload beside the arguments, of which a copy is sent.
    ///
    /// # Errors
    /// When the payload is longer than the peer takes, or there are too many words. The peer is
    /// told that, as [`LongReply`](Undeliverable::LongReply).
    #[inline]
    pub fn reply_with<A: Arguments>(
        self,
        id: ReplyId<A>,
        arguments: A,
        payload: impl AsRef<[u8]>,
    ) -> Result<(), SendError> {
        let mut room = Room::new();
        let content = room.content_with(&arguments, payload.as_ref());
        let taken = self.0.link.takes(content);
        self.answer(id.index(), content);
        taken
    }

    /// Replies with what a handler has returned.
    #[inline]
    pub(crate) fn answers<A: Arguments>(self, answer: &A) {
        let mut room = Room::new();
        self.answer(ANSWER, room.content(answer));
    }

    /// Replies that the handler has failed.
    #[cold]
    pub(crate) fn fails(self, text: &str) {
        if self.0.arrival.header.call == 0 {
            return failed_unheard(self.0.link, text);
        }
        let text = self.0.link.shortened(text);
        self.answer(FAILED, Content { words: &[], payload: text });
    }

    /// Says to the peer why there is no reply.
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

    /// Keeps it, with its payload, for an answer later. Another buffer takes the place of the one
    /// in which it was received.
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
        let buffer = self.0.arrival.detach(&self.0.link.buffers);
        let id = self.0.link.keep(header, owes);
        Kept::new(self.0.link.clone(), (header, id), buffer, payload, placed)
    }

    /// Has a task of the runtime answer the request, which is given to `handler` to make the task's
    /// future. A task that ends without an answer, or panics, has the caller told so. The future is
    /// dropped at its next await when nobody waits for the answer any more. If as many asynchronous
    /// handlers are under way as may be, the request goes back as [`Busy`](Undeliverable::Busy).
    pub fn spawn<F>(self, handler: impl FnOnce(Kept) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let link = self.0.link;
        let Some(begun) = link.endpoint.tasks.reserve(&link.endpoint) else {
            return self.gives_back(Undeliverable::Busy);
        };
        let (header, kept) = (self.0.arrival.header, self.keep_by(Owes::HolderAndTask));
        let Some(id) = kept.id() else { return };
        // It tells the caller, too, if there is never a future.
        let debt = TaskDebt::new(link.clone(), (header, id));
        let task = link.endpoint.tasks.spawn(begun, handler(kept), debt);
        link.endpoint.shared.note_woken();
        link.runs(id, task);
    }

    /// The words are not the handler's.
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

/// Traces that the handler of a message has failed, for nobody waits for its answer.
#[cold]
pub(crate) fn failed_unheard(link: &Link, text: &str) {
    tracing::warn!(peer = %link.peer_text(), "the handler of a notice has failed: {text}");
}

impl Drop for Request<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.0.settled {
            unanswered(self.0.link, self.0.arrival.header, std::thread::panicking());
        }
    }
}

/// A reply, for the handler that it runs.
pub struct Replied<'r> {
    link: &'r Arc<Link>,
    arrival: &'r Arrival,
}

impl<'r> Replied<'r> {
    #[inline]
    pub(crate) fn new(link: &'r Arc<Link>, arrival: &'r Arrival) -> Self {
        Self { link, arrival }
    }

    /// Who replied.
    pub fn peer(&self) -> Peer {
        Peer::of(self.link.clone())
    }

    /// As [`Request::note_woken`].
    pub fn note_woken(&self) {
        self.link.endpoint.shared.note_woken();
    }

    /// The payload, where it was received.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        self.arrival.payload()
    }
}

/// A request that came back, for the handler of such.
pub struct Returned<'r> {
    pub(crate) why: Undeliverable,
    pub(crate) link: &'r Arc<Link>,
    pub(crate) what: Option<(Header, &'r [u8])>,
}

impl Returned<'_> {
    /// Why.
    pub fn why(&self) -> Undeliverable {
        self.why
    }

    /// Whom it was for.
    pub fn peer(&self) -> Peer {
        Peer::of(self.link.clone())
    }

    /// The index of the handler that it was for. When the peer has gone, it is not known which of
    /// the requests under way were handled, and so which one this is.
    pub fn handler(&self) -> Option<u16> {
        self.what.map(|(header, _)| header.handler)
    }

    /// Its words, if they came back, too.
    pub fn words(&self) -> impl ExactSizeIterator<Item = u64> {
        let words = self.what.and_then(|(header, data)| data.get(..8 * header.words));
        each_word(words.unwrap_or_default())
    }

    /// Its payload, if that came back, too.
    pub fn payload(&self) -> &[u8] {
        let payload = self.what.and_then(|(header, data)| data.get(8 * header.words..));
        payload.unwrap_or_default()
    }
}

impl fmt::Debug for Replied<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replied")
            .field("peer", &self.link.peer_text())
            .field("payload", &self.payload().len())
            .finish()
    }
}

impl fmt::Debug for Returned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Returned")
            .field("peer", &self.link.peer_text())
            .field("handler", &self.handler())
            .field("why", &self.why)
            .finish()
    }
}

impl fmt::Display for Returned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.handler() {
            Some(handler) => write!(f, "a request for handler {handler}")?,
            None => write!(f, "a request")?,
        }
        write!(f, " of {} came back: {}", self.link.peer_text(), self.why)
    }
}
