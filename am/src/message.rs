//! Messages, as handlers and callers see them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use doorbell_verbs::{AtHand, Buf, Inline};

use crate::buffers::Buffers;
use crate::error::{CallError, SendError, Undeliverable};
use crate::handlers::ReplyId;
use crate::kept::Owes;
use crate::link::{Link, To};
use crate::outbox::Content;
use crate::owed::{Kept, TaskDebt, unanswered};
use crate::peer::Peer;
use crate::wire::Header;
use crate::words::{Arguments, MOST_WORDS, Room, each_word};

/// What came for a handler, in the buffer in which it was received.
pub(crate) struct Arrival {
    pub header: Header,
    /// There, unless a handler has kept it.
    pub buffer: Option<Buf>,
    /// Where in it the words are, and the payload behind them.
    pub data: Range<usize>,
    /// Whether there is nothing else in the buffer.
    pub whole: bool,
    /// Whether the buffer was posted, and is to be again.
    pub posted: bool,
    /// Where in the segment a payload was placed.
    pub placed: Option<Range<u64>>,
}

impl Arrival {
    /// One that has its buffer for itself.
    #[inline]
    pub fn alone(header: Header, buffer: Buf, data: Range<usize>) -> Self {
        Self { header, buffer: Some(buffer), data, whole: true, posted: true, placed: None }
    }

    /// The words and the payload.
    #[inline]
    pub fn data(&self) -> &[u8] {
        self.buffer.as_deref().map_or(&[], |buffer| &buffer[self.data.clone()])
    }

    #[inline]
    pub fn words(&self) -> &[u8] {
        &self.data()[..8 * self.header.words]
    }

    #[inline]
    pub fn payload(&self) -> &[u8] {
        &self.data()[8 * self.header.words..]
    }

    /// Whether it is no longer than a message with such a payload: words beyond sixteen, and one more
    /// then, are in the place of some.
    #[inline]
    pub fn fits(&self, payload: usize) -> bool {
        let Header { kind, words, .. } = self.header;
        let few = MOST_WORDS + kind.own_words();
        let more = if words > few { 8 } else { 0 };
        self.data.len() + more <= 8 * words.min(few) + payload
    }

    /// Takes the buffer, if the message has it for itself; or else a copy.
    pub fn detach(&mut self, buffers: &Buffers) -> Option<Buf> {
        if self.whole {
            return self.buffer.take();
        }
        let mut copy = buffers.take();
        let copied = copy.extend_from_slice(self.data());
        debug_assert!(copied.is_ok(), "it came in a buffer of that size");
        Some(copy)
    }

    /// It is handled: the buffer that goes on where this one was, if one does.
    #[inline]
    pub fn leave(&mut self, buffers: &Buffers) -> Option<Buf> {
        let buffer = self.buffer.take();
        // With others in it, it goes on to them; and it is to be posted if it was.
        if self.posted || !self.whole {
            return Some(buffer.unwrap_or_else(|| buffers.take()));
        }
        buffer.into_iter().for_each(|buffer| buffers.give(buffer));
        None
    }

    /// The same, which may be kept: in a buffer of its own.
    pub fn detached(&mut self, buffers: &Buffers) -> (Self, Option<Buf>) {
        let data = if self.whole { self.data.clone() } else { 0..self.data.len() };
        let buffer = self.detach(buffers);
        let rest = self.buffer.take();
        let Self { header, posted, ref placed, .. } = *self;
        (Self { header, buffer, data, whole: true, posted, placed: placed.clone() }, rest)
    }
}

/// A request, for the handler that it runs: it may be answered once.
///
/// If it is dropped, the peer is told that it is done, some time, and a caller that nothing was
/// replied. Once:
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
/// And not twice:
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
/// Later only by what was [kept](Self::keep) of it:
///
/// ```
/// # use doorbell_am::{Handlers, RequestId};
/// # const ADD: RequestId<u64> = RequestId::new(0, "add");
/// let (requests, _) = std::sync::mpsc::channel();
/// Handlers::new().request(ADD, move |request, _| requests.send(request.keep()).unwrap());
/// ```
///
/// And not by itself:
///
/// ```compile_fail,E0277
/// # use doorbell_am::{Handlers, RequestId};
/// # const ADD: RequestId<u64> = RequestId::new(0, "add");
/// let (requests, _) = std::sync::mpsc::channel();
/// Handlers::new().request(ADD, move |request, _| requests.send(request).unwrap());
/// ```
pub struct Request<'r>(&'r mut Asked<'r>);

/// What a request is about: where it was received, so that the request itself is moved in a register.
pub(crate) struct Asked<'r> {
    link: &'r Arc<Link>,
    arrival: &'r mut Arrival,
    nic: AtHand<'r>,
    /// Whether it has its answer, or somebody else owes it.
    settled: bool,
}

impl<'r> Asked<'r> {
    #[inline]
    pub fn new(link: &'r Arc<Link>, arrival: &'r mut Arrival, nic: AtHand<'r>) -> Self {
        Self { link, arrival, nic, settled: false }
    }
}

impl<'r> Request<'r> {
    #[inline]
    pub(crate) fn new(asked: &'r mut Asked<'r>) -> Self {
        Self(asked)
    }

    /// Who sent it.
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

    /// Replies with words. If they are more than the peer takes, it is told that.
    #[inline]
    pub fn reply<A: Arguments>(self, id: ReplyId<A>, arguments: A) {
        let mut room = Room::new();
        self.answer(id.index(), Content { words: room.of(&arguments), payload: &[] });
    }

    /// Replies with words and a payload, of which a copy is sent.
    ///
    /// # Errors
    /// When the payload is longer than the peer takes, or there are too many words. The peer is told that,
    /// as [`LongReply`](Undeliverable::LongReply).
    #[inline]
    pub fn reply_with<A: Arguments>(
        self,
        id: ReplyId<A>,
        arguments: A,
        payload: &[u8],
    ) -> Result<(), SendError> {
        let mut room = Room::new();
        let content = Content { words: room.of(&arguments), payload };
        if let Err(why) = self.0.link.takes(content) {
            self.gives_back(Undeliverable::LongReply);
            return Err(why);
        }
        self.answer(id.index(), content);
        Ok(())
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
            self.0.nic.again(),
        );
    }

    /// Keeps it, with its payload, for an answer later. Another buffer takes the place of the one in
    /// which it was received.
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

    /// Has a task answer it, or say when it ends that there is no answer.
    pub(crate) fn spawn<F>(self, handler: impl FnOnce(Kept) -> F)
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

    /// The payload, where it was received.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        self.arrival.payload()
    }
}

/// A reply, for the caller who awaited it. One of more bytes than [travel in a
/// request](doorbell_verbs::Inline), 64, keeps the buffer in which it was received.
pub struct Reply {
    handler: u16,
    /// How many of the bytes are words.
    words: usize,
    data: ReplyData,
}

/// The words and the payload of a reply.
enum ReplyData {
    /// So few bytes that the buffer is left to others.
    Few(Inline),
    Buffered(Buffered),
}

/// What lies in the buffer in which it was received.
struct Buffered {
    buffer: Buf,
    data: Range<usize>,
    link: Arc<Link>,
}

impl Buffered {
    fn of(arrival: &mut Arrival, link: &Arc<Link>) -> Self {
        let data = if arrival.whole { arrival.data.clone() } else { 0..arrival.data.len() };
        let buffer = arrival.detach(&link.buffers).unwrap_or_default();
        Self { buffer, data, link: link.clone() }
    }
}

impl Drop for Buffered {
    fn drop(&mut self) {
        self.link.buffers.give(std::mem::take(&mut self.buffer));
    }
}

impl Reply {
    /// Takes the buffer along only if there is much in it.
    #[inline]
    pub(crate) fn of(arrival: &mut Arrival, link: &Arc<Link>) -> Self {
        let Header { words, handler, .. } = arrival.header;
        // What is moved with each costs less than to get another buffer.
        let data = match Inline::new(arrival.data()) {
            Some(few) => ReplyData::Few(few),
            None => ReplyData::Buffered(Buffered::of(arrival, link)),
        };
        Self { handler, words: 8 * words, data }
    }

    #[inline]
    fn data(&self) -> &[u8] {
        match &self.data {
            ReplyData::Few(few) => few.bytes(),
            ReplyData::Buffered(Buffered { buffer, data, .. }) => &buffer[data.clone()],
        }
    }

    /// The index of the handler that it is for.
    pub fn handler(&self) -> u16 {
        self.handler
    }

    /// Its words.
    pub fn words(&self) -> impl ExactSizeIterator<Item = u64> {
        each_word(&self.data()[..self.words])
    }

    /// Its payload.
    pub fn payload(&self) -> &[u8] {
        &self.data()[self.words..]
    }

    #[cold]
    fn is_other(&self, index: u16, expected: &'static str) -> CallError {
        CallError::OtherReply { found: self.handler, index, expected }
    }

    /// Its arguments, if it is of this kind.
    ///
    /// # Errors
    /// When it is of another, or the words are none of that.
    #[inline]
    pub fn arguments<A: Arguments>(&self, id: ReplyId<A>) -> Result<A, CallError> {
        let mut room = Room::new();
        let is = self.handler == id.index();
        let found = if is { A::take(room.read(&self.data()[..self.words])) } else { None };
        found.ok_or_else(|| self.is_other(id.index(), id.name()))
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("handler", &self.handler)
            .field("words", &self.words().collect::<Vec<_>>())
            .field("payload", &self.payload().len())
            .finish()
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

    /// The index of the handler that it was for. When the peer has gone, it is not known which of the
    /// requests under way were handled, and so which one this is.
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

impl fmt::Display for Returned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.handler() {
            Some(handler) => write!(f, "a request for handler {handler}")?,
            None => write!(f, "a request")?,
        }
        write!(f, " of {} came back: {}", self.link.peer_text(), self.why)
    }
}
