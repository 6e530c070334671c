//! Retained requests, and who owes them an answer.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use doorbell_verbs::Buf;
use doorbell_verbs::floor::HeldNic;

use super::received::Received;
use crate::arguments::{Arguments, Room};
use crate::credits::{DeferredAnswer, Owes, Release, RetainedId};
use crate::error::{SendError, Undeliverable};
use crate::kinds::ReplyId;
use crate::link::{Link, To};
use crate::peer::Peer;
use crate::receives::{ReceivedBuffer, is_copied};
use crate::shared::Reserved;
use crate::wire::{ANSWER, Content, FAILED, Header};

/// A request that a handler has kept, to be answered later. It may be answered once, by any task or
/// thread, and within the [`patience`](crate::EndpointConfig::patience) of its sender's endpoint. A
/// later answer is dropped.
///
/// If the value is dropped, the caller is told that nothing was replied. For an asynchronous
/// handler, the caller is told so when the handler ends, unless the handler has given the value
/// away and it is still held then.
pub struct Kept {
    link: Arc<Link>,
    /// The request's header and its place in the link's table, until it is answered.
    owed: Option<(Header, RetainedId)>,
    /// The buffer that the request came in, until it is answered.
    buffer: Option<Buf>,
    payload: Range<usize>,
    placed: Option<Range<u64>>,
}

impl Kept {
    pub(crate) fn new(
        link: Arc<Link>,
        owed: (Header, RetainedId),
        buffer: Option<Buf>,
        payload: Range<usize>,
        placed: Option<Range<u64>>,
    ) -> Self {
        Self { link, owed: Some(owed), buffer, payload, placed }
    }

    /// Returns the request's place in the link's table, until the request is answered.
    pub(crate) fn id(&self) -> Option<RetainedId> {
        self.owed.map(|(_, id)| id)
    }

    /// Returns whether the sender still waits for the answer. It does not once its
    /// [`patience`](crate::EndpointConfig::patience) is over, once it has gone, or once it has
    /// given its call up, which it tells as soon as it has a credit.
    pub fn is_awaited(&self) -> bool {
        self.id().is_some_and(|id| self.link.awaits(id))
    }

    /// Returns the peer that sent the request.
    pub fn peer(&self) -> Peer {
        Peer::of(self.link.clone())
    }

    /// Returns the payload, in the buffer in which it was received.
    pub fn payload(&self) -> &[u8] {
        self.buffer.as_deref().map_or(&[], |buffer| &buffer[self.payload.clone()])
    }

    /// Returns the range of the endpoint's segment in which the payload was placed, if it was.
    pub fn placed(&self) -> Option<Range<u64>> {
        self.placed.clone()
    }

    /// Takes the payload, and leaves an empty [`payload`](Self::payload). The bytes are not copied
    /// if they fill a quarter of their buffer.
    pub fn take_payload(&mut self) -> Bytes {
        let range = std::mem::replace(&mut self.payload, 0..0);
        let Some(buffer) = self.buffer.take() else { return Bytes::new() };
        let received =
            ReceivedBuffer { buffer, range, buffers: Arc::downgrade(&self.link.buffers) };
        match received.as_ref() {
            few if is_copied(few.len(), &received.buffer) => Bytes::copy_from_slice(few),
            _ => Bytes::from_owner(received),
        }
    }

    /// Takes the payload into what an asynchronous handler gets of the request.
    pub(crate) fn received(&mut self) -> Received {
        let (payload, placed) = (self.take_payload(), self.placed.take());
        Received::new(self.link.clone(), self.id(), payload, placed)
    }

    /// Answers the request with a reply. If the reply is longer than the peer takes, the peer is
    /// told so by [`LongReply`](Undeliverable::LongReply).
    ///
    /// While other requests of the peer have no answer yet, the reply leaves together with other
    /// messages, and at the latest when this task lets other tasks run.
    pub fn reply<A: Arguments>(self, id: ReplyId<A>, arguments: A) {
        let mut room = Room::new();
        self.answer(id.index(), room.content(&arguments));
    }

    /// Answers the request with a reply that has a copy of a payload beside the arguments.
    ///
    /// # Errors
    /// As [`Request::reply_with`](crate::Request::reply_with).
    pub fn reply_with<A: Arguments>(
        self,
        id: ReplyId<A>,
        arguments: A,
        payload: impl AsRef<[u8]>,
    ) -> Result<(), SendError> {
        let mut room = Room::new();
        let content = room.content_with(&arguments, payload.as_ref());
        let taken = self.link.check_takes(content);
        self.answer(id.index(), content);
        taken
    }

    /// Answers the request with the value that a handler has returned.
    pub(crate) fn answers<A: Arguments>(self, answer: &A) {
        let mut room = Room::new();
        self.answer(ANSWER, room.content(answer));
    }

    /// Answers the request with the error that the handler has returned.
    #[cold]
    pub(crate) fn fails(self, text: &str) {
        if self.owed.is_some_and(|(header, _)| header.call == 0) {
            return failed_unheard(&self.link, text);
        }
        let link = self.link.clone();
        self.answer(FAILED, Content { words: &[], payload: link.shortened(text) });
    }

    /// Sends the answer, or tells the peer that the reply is longer than it takes.
    fn answer(mut self, handler: u16, content: Content<'_>) {
        let Some((Header { call, .. }, id)) = self.settle() else { return };
        let to = To { handler, call };
        let deferred = || {
            let (words, payload) = (content.words.to_vec(), content.payload.to_vec());
            DeferredAnswer::Reply { handler, call, words, payload }
        };
        match self.link.release(id, deferred) {
            Release::Now => self.link.reply(to, content, HeldNic::none()),
            Release::Deferred | Release::Late => {}
            Release::Never => {
                self.link.endpoint.counters.late.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Gives the buffer back, and returns the request that was owed an answer, if one still was.
    fn settle(&mut self) -> Option<(Header, RetainedId)> {
        if let Some(buffer) = self.buffer.take() {
            self.link.buffers.give(buffer);
        }
        self.owed.take()
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept")
            .field("peer", &self.link.peer_text())
            .field("payload", &self.payload.len())
            .field("placed", &self.placed)
            .finish()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some((header, id)) = self.settle() {
            let panics = std::thread::panicking();
            ends_without_answer(&self.link, (header, id), (Owes::Holder, None), panics);
        }
    }
}

/// The debt of an asynchronous handler's task to its request. If the value is dropped while no
/// answer was given and nobody else owes one, the caller is told that there is none.
pub(crate) struct TaskDebt {
    link: Arc<Link>,
    owed: (Header, RetainedId),
    /// The room that the task and its request take.
    room: Option<Reserved>,
    panicked: bool,
}

impl TaskDebt {
    pub fn new(link: Arc<Link>, owed: (Header, RetainedId), room: Reserved) -> Self {
        Self { link, owed, room: Some(room), panicked: false }
    }

    /// Notes that the task waits for something, so that the request may give its credit back.
    pub fn waits(&self) {
        self.link.waits(self.owed.1);
    }

    /// Ends the debt of a task that has panicked.
    pub fn panicked(mut self) {
        self.panicked = true;
    }
}

impl Drop for TaskDebt {
    fn drop(&mut self) {
        let panics = self.panicked || std::thread::panicking();
        ends_without_answer(&self.link, self.owed, (Owes::Task, self.room.take()), panics);
    }
}

/// Ends a request without an answer from its holder, or from its task, whose room is given. If
/// nobody else owes an answer, the caller is told that there is none.
fn ends_without_answer(
    link: &Arc<Link>,
    (header, id): (Header, RetainedId),
    who: (Owes, Option<Reserved>),
    panics: bool,
) {
    let deferred = || match panics {
        true => DeferredAnswer::Returned(header, Undeliverable::Panicked),
        false => DeferredAnswer::Nothing { call: header.call },
    };
    if link.end_unanswered(id, who, deferred) == Release::Now {
        unanswered(link, header, panics);
    }
}

/// Tells a requester that its request gets no answer, perhaps since the handler panicked.
pub(crate) fn unanswered(link: &Arc<Link>, header: Header, panicked: bool) {
    if panicked {
        link.give_back(header, Undeliverable::Panicked, &[]);
    } else {
        link.done(header.call);
    }
}

/// Traces the error of the handler of a notice, whose sender waits for no answer.
#[cold]
pub(crate) fn failed_unheard(link: &Link, text: &str) {
    tracing::warn!(peer = %link.peer_text(), "the handler of a notice has failed: {text}");
}
