//! Requests that were kept, and who owes them an answer.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use doorbell_verbs::Buf;
use doorbell_verbs::floor::HeldNic;

use crate::arguments::Arguments;
use crate::content::Content;
use crate::error::{SendError, Undeliverable};
use crate::handlers::ReplyId;
use crate::kept::{KeptId, Later, Owes, Release};
use crate::link::{Link, To};
use crate::message::failed_unheard;
use crate::peer::Peer;
use crate::received::Received;
use crate::received_buffer::{ReceivedBuffer, is_copied};
use crate::room::Room;
use crate::wire::{ANSWER, FAILED, Header};

/// A request that was kept, to be answered later: from wherever, once, and within the time that its
/// sender gives it, its endpoint's [`patience`](crate::EndpointConfig::patience). An answer that is
/// too late goes nowhere.
///
/// One that is dropped says to its caller that nothing was replied. That of an asynchronous handler
/// says so when the handler ends, unless it was given away and is still held then.
pub struct Kept {
    link: Arc<Link>,
    /// The request's header and its place in the link's table, until it is answered.
    owed: Option<(Header, KeptId)>,
    /// The buffer that the request came in, until it is answered.
    buffer: Option<Buf>,
    payload: Range<usize>,
    placed: Option<Range<u64>>,
}

impl Kept {
    pub(crate) fn new(
        link: Arc<Link>,
        owed: (Header, KeptId),
        buffer: Option<Buf>,
        payload: Range<usize>,
        placed: Option<Range<u64>>,
    ) -> Self {
        Self { link, owed: Some(owed), buffer, payload, placed }
    }

    /// Its place in the link's table, until it is answered.
    pub(crate) fn id(&self) -> Option<KeptId> {
        self.owed.map(|(_, id)| id)
    }

    /// Whether somebody still waits for the answer. Nobody does when the sender's
    /// [`patience`](crate::EndpointConfig::patience) is over, when the sender has gone, or when it
    /// has given its call up, which is known here within about a second.
    pub fn is_awaited(&self) -> bool {
        self.id().is_some_and(|id| self.link.awaits(id))
    }

    /// Who sent it.
    pub fn peer(&self) -> Peer {
        Peer::of(self.link.clone())
    }

    /// The payload, where it was received.
    pub fn payload(&self) -> &[u8] {
        self.buffer.as_deref().map_or(&[], |buffer| &buffer[self.payload.clone()])
    }

    /// Where in the endpoint's segment the payload was placed, if it was.
    pub fn placed(&self) -> Option<Range<u64>> {
        self.placed.clone()
    }

    /// Takes the payload, which is not copied if it fills a quarter of its buffer.
    /// [`payload`](Self::payload) is empty then.
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

    /// What an asynchronous handler is told of the request, with the payload.
    pub(crate) fn received(&mut self) -> Received {
        let (payload, placed) = (self.take_payload(), self.placed.take());
        Received::new(self.link.clone(), self.id(), payload, placed)
    }

    /// Replies. If the reply is more than the peer takes, the peer is told that, as
    /// [`LongReply`](Undeliverable::LongReply).
    ///
    /// While other requests of the peer have no answer yet, the reply leaves together with what is
    /// sent before this task lets other tasks run, at the latest then.
    pub fn reply<A: Arguments>(self, id: ReplyId<A>, arguments: A) {
        let mut room = Room::new();
        self.answer(id.index(), room.content(&arguments));
    }

    /// Replies with a payload beside the arguments, of which a copy is sent.
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
        let taken = self.link.takes(content);
        self.answer(id.index(), content);
        taken
    }

    /// Replies with what a handler has returned.
    pub(crate) fn answers<A: Arguments>(self, answer: &A) {
        let mut room = Room::new();
        self.answer(ANSWER, room.content(answer));
    }

    /// Replies that the handler has failed.
    #[cold]
    pub(crate) fn fails(self, text: &str) {
        if self.owed.is_some_and(|(header, _)| header.call == 0) {
            return failed_unheard(&self.link, text);
        }
        let link = self.link.clone();
        self.answer(FAILED, Content { words: &[], payload: link.shortened(text) });
    }

    /// Replies, or says to the peer that the reply is longer than it takes.
    fn answer(mut self, handler: u16, content: Content<'_>) {
        let Some((Header { call, .. }, id)) = self.settle() else { return };
        let to = To { handler, call };
        let later = || -> Later {
            let (words, payload) = (content.words.to_vec(), content.payload.to_vec());
            Box::new(move |link| {
                let content = Content { words: &words, payload: &payload };
                link.reply(to, content, HeldNic::none());
            })
        };
        match self.link.released(id, later) {
            Release::Now => self.link.reply(to, content, HeldNic::none()),
            Release::Later => {}
            Release::Never => {
                self.link.endpoint.shared.counters.late.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Gives the buffer back, and says what was owed an answer.
    fn settle(&mut self) -> Option<(Header, KeptId)> {
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
            ends_without_answer(&self.link, (header, id), Owes::Holder, panics);
        }
    }
}

/// What the task of an asynchronous handler owes to the request that it runs for: to say, when it
/// ends, that there is no answer, if nobody has given one or will.
pub(crate) struct TaskDebt {
    link: Arc<Link>,
    owed: (Header, KeptId),
    panicked: bool,
}

impl TaskDebt {
    pub fn new(link: Arc<Link>, owed: (Header, KeptId)) -> Self {
        Self { link, owed, panicked: false }
    }

    /// Notes that the task has ended by a panic, and pays the debt.
    pub fn panicked(mut self) {
        self.panicked = true;
    }
}

impl Drop for TaskDebt {
    fn drop(&mut self) {
        let panics = self.panicked || std::thread::panicking();
        ends_without_answer(&self.link, self.owed, Owes::Task, panics);
    }
}

/// Whoever is said to owe an answer ends without one: its requester is told, if nobody else owes
/// it.
fn ends_without_answer(link: &Arc<Link>, (header, id): (Header, KeptId), who: Owes, panics: bool) {
    let later = || -> Later { Box::new(move |link| unanswered(link, header, panics)) };
    if link.nothing_from(id, who, later) == Release::Now {
        unanswered(link, header, panics);
    }
}

/// Tells a requester that its request goes without an answer, perhaps because its handler panicked.
pub(crate) fn unanswered(link: &Arc<Link>, header: Header, panicked: bool) {
    if panicked {
        link.give_back(header, Undeliverable::Panicked, &[]);
    } else {
        link.done(header.call);
    }
}
