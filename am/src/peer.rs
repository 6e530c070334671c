//! Peers: sending to them.

use std::future::Future;
use std::sync::Arc;
use std::task::Waker;

use doorbell_verbs::{Data, Ending, Look, Memory, RemoteAddr, RemoteMemory, Rkey};

use crate::calls::Answer;
use crate::error::{CallError, SendError, Undeliverable};
use crate::handlers::RequestId;
use crate::handling::handles;
use crate::link::{Link, Placed};
use crate::message::Reply;
use crate::outbox::Content;
use crate::words::{Arguments, MOST_WORDS, Words};

/// An endpoint's peer, to send requests to. Clones are handles to the same.
#[derive(Clone)]
pub struct Peer(Arc<Link>);

/// The right to have one more request under way to a peer. If it is dropped, another may use it.
#[must_use = "it is given back if nothing is sent by it"]
pub struct Credit<'p> {
    link: &'p Arc<Link>,
    used: bool,
}

impl Peer {
    pub(crate) fn of(link: Arc<Link>) -> Self {
        Self(link)
    }

    /// Why it has gone, if it has.
    pub fn ending(&self) -> Option<Ending> {
        self.0.ending()
    }

    /// The longest payload that it takes in a message.
    pub fn longest_payload(&self) -> usize {
        self.0.longest()
    }

    /// Sends a request, when there is a credit for it. This does not wait until it is handled.
    ///
    /// # Errors
    /// When the peer has gone, or this is a handler.
    #[inline]
    pub async fn request<A: Arguments>(
        &self,
        id: RequestId<A>,
        arguments: A,
    ) -> Result<(), SendError> {
        self.request_with(id, arguments, &[]).await
    }

    /// The same with a payload, of which a copy is sent.
    ///
    /// # Errors
    /// As [`request`](Self::request), and when the peer does not take so long a payload.
    #[inline]
    pub async fn request_with<A: Arguments>(
        &self,
        id: RequestId<A>,
        arguments: A,
        payload: &[u8],
    ) -> Result<(), SendError> {
        let words = &self.check(&arguments, payload)?;
        let content = Content { words, payload };
        if self.0.try_request(id.index(), content)? {
            return Ok(());
        }
        self.credit().await?.send(id.index(), content)
    }

    /// Sends a request, and waits for what its handler replies.
    ///
    /// # Errors
    /// When it was not sent, not delivered, or not answered.
    #[inline]
    pub async fn call<A: Arguments>(
        &self,
        id: RequestId<A>,
        arguments: A,
    ) -> Result<Reply, CallError> {
        self.call_with(id, arguments, &[]).await
    }

    /// The same with a payload, of which a copy is sent.
    ///
    /// # Errors
    /// As [`call`](Self::call), and when the peer does not take so long a payload.
    #[inline]
    pub async fn call_with<A: Arguments>(
        &self,
        id: RequestId<A>,
        arguments: A,
        payload: &[u8],
    ) -> Result<Reply, CallError> {
        let words = &self.check(&arguments, payload)?;
        let content = Content { words, payload };
        let call = match self.0.try_call(id.index(), content)? {
            Some(call) => call,
            None => self.credit().await?.send_call(id.index(), content)?,
        };
        let awaited = Answering { link: &self.0, call, seen: None, woke: false, there: false };
        Ok(self.0.endpoint.shared.nic.wait_for(awaited).await?)
    }

    /// Places data in the peer's segment, and runs a handler there behind it. What this gives may be
    /// awaited for the data's memory.
    ///
    /// Nothing is copied: of registered memory name a [`Segment`](doorbell_verbs::Segment), which is to
    /// be left alone until then.
    ///
    /// # Errors
    /// When the data does not fit there, the peer has gone, or this is a handler.
    pub async fn place<A: Arguments>(
        &self,
        id: RequestId<A>,
        arguments: A,
        offset: u64,
        data: impl Into<Data>,
    ) -> Result<Placing, SendError> {
        let words = self.check(&arguments, &[])?;
        /// The most that the NIC takes at once.
        const MOST: u64 = 1 << 31;
        let (data, link) = (data.into(), &self.0);
        if data.len() > MOST {
            return Err(SendError::Payload { len: data.len() as usize, most: MOST as usize });
        }
        let segment = link.segment().unwrap_or(NOWHERE);
        let len = data.len();
        let room = segment.len();
        let memory =
            segment.at(offset, len).map_err(|_| SendError::Segment { offset, len, room })?;
        let mut credit = self.credit().await?;
        credit.used = true;
        let placed = Placed { offset, data, memory };
        let source = link.place(&mut link.out(), id.index(), &words, placed)?;
        Ok(Placing { link: link.clone(), source, back: false })
    }

    /// What may be sent.
    #[inline]
    fn check<A: Arguments>(&self, arguments: &A, payload: &[u8]) -> Result<Words, SendError> {
        if handles() {
            return Err(SendError::InHandler);
        }
        if arguments.count() > MOST_WORDS {
            return Err(SendError::Words(arguments.count()));
        }
        if !payload.is_empty() && payload.len() > self.0.longest() {
            let (len, most) = (payload.len(), self.0.longest());
            return Err(SendError::Payload { len, most });
        }
        Ok(Words::of(arguments))
    }

    /// Waits for the right to have one more request under way. To give it up in time, see
    /// [`credit_by`](Self::credit_by).
    ///
    /// # Errors
    /// When the peer has gone, or this is a handler.
    pub async fn credit(&self) -> Result<Credit<'_>, SendError> {
        if handles() {
            return Err(SendError::InHandler);
        }
        let link = &self.0;
        let awaited = Admitted { link, seen: None, place: None, woke: false };
        link.endpoint.shared.nic.wait_for(awaited).await?;
        Ok(Credit { link, used: false })
    }

    /// The same until something else is done: a timer, as a rule.
    ///
    /// # Errors
    /// As [`credit`](Self::credit), and when the other is done first.
    pub async fn credit_by(&self, deadline: impl Future) -> Result<Credit<'_>, SendError> {
        let mut deadline = std::pin::pin!(deadline);
        let mut credit = std::pin::pin!(self.credit());
        std::future::poll_fn(|context| {
            if let credit @ std::task::Poll::Ready(_) = credit.as_mut().poll(context) {
                return credit;
            }
            deadline.as_mut().poll(context).map(|_| Err(SendError::NoCredit))
        })
        .await
    }

    /// The right to have one more request under way, if there is one now.
    ///
    /// # Errors
    /// When the peer has gone, or this is a handler.
    pub fn try_credit(&self) -> Result<Option<Credit<'_>>, SendError> {
        if handles() {
            return Err(SendError::InHandler);
        }
        let admitted = self.0.admit(&mut self.0.out())?;
        Ok(admitted.then(|| Credit { link: &self.0, used: false }))
    }
}

/// No memory.
const NOWHERE: RemoteMemory = RemoteMemory::new(RemoteAddr(0), Rkey(0), 0);

/// Data that is being placed. If this is dropped, its memory goes when it comes back.
pub struct Placing {
    link: Arc<Link>,
    source: u16,
    back: bool,
}

impl Placing {
    /// Waits until all of it is there, and gives the memory back that it came from.
    ///
    /// # Errors
    /// When the peer has gone. Whether the data is there is not known then.
    pub async fn done(mut self) -> Result<Memory, SendError> {
        let nic = &self.link.endpoint.shared.nic;
        let awaited = Returning { link: &self.link, source: self.source, seen: None, woke: false };
        let memory = nic.wait_for(awaited).await?;
        self.back = true;
        Ok(memory)
    }
}

impl Drop for Placing {
    fn drop(&mut self) {
        if !self.back {
            self.link.out().sources.abandon(self.source);
        }
    }
}

/// Looks for memory that comes back.
struct Returning<'l> {
    link: &'l Arc<Link>,
    source: u16,
    seen: Option<u32>,
    woke: bool,
}

impl Look for Returning<'_> {
    type Found = Result<Memory, SendError>;

    fn look(&mut self) -> Option<Self::Found> {
        self.woke |= self.link.endpoint.shared.look(true).woke;
        let changes = self.link.changes();
        if self.seen == Some(changes) {
            return None;
        }
        self.seen = Some(changes);
        let mut out = self.link.out();
        match out.sources.take(self.source) {
            Some(memory) => Some(Ok(memory)),
            None => out.gone().map(Err),
        }
    }

    fn register(&mut self, waker: &Waker) {
        self.seen = None;
        self.link.out().sources.wait(self.source, waker);
    }

    fn woke(&mut self) -> bool {
        std::mem::take(&mut self.woke)
    }
}

impl Credit<'_> {
    /// Sends a request, now.
    ///
    /// # Errors
    /// When there are more words than a message has.
    pub fn request<A: Arguments>(self, id: RequestId<A>, arguments: A) -> Result<(), SendError> {
        self.request_with(id, arguments, &[])
    }

    /// The same with a payload, of which a copy is sent.
    ///
    /// # Errors
    /// As [`request`](Self::request), and when the peer does not take so long a payload.
    pub fn request_with<A: Arguments>(
        self,
        id: RequestId<A>,
        arguments: A,
        payload: &[u8],
    ) -> Result<(), SendError> {
        let words = &Peer(self.link.clone()).check(&arguments, payload)?;
        self.send(id.index(), Content { words, payload })
    }

    fn send(mut self, handler: u16, content: Content<'_>) -> Result<(), SendError> {
        self.used = true;
        self.link.request(&mut self.link.out(), handler, content)
    }

    fn send_call(mut self, handler: u16, content: Content<'_>) -> Result<u16, SendError> {
        self.used = true;
        self.link.call(&mut self.link.out(), handler, content)
    }
}

impl Drop for Credit<'_> {
    fn drop(&mut self) {
        if !self.used {
            self.link.put_back();
        }
    }
}

/// Looks for a credit.
struct Admitted<'l> {
    link: &'l Arc<Link>,
    /// What the link had changed when it was looked at last.
    seen: Option<u32>,
    /// Among those who wait.
    place: Option<u64>,
    woke: bool,
}

impl Look for Admitted<'_> {
    type Found = Result<(), SendError>;

    #[inline]
    fn look(&mut self) -> Option<Self::Found> {
        self.woke |= self.link.endpoint.shared.look(true).woke;
        let changes = self.link.changes();
        if self.seen == Some(changes) {
            return None;
        }
        self.seen = Some(changes);
        match self.link.admit(&mut self.link.out()) {
            Ok(true) => Some(Ok(())),
            Ok(false) => None,
            Err(why) => Some(Err(why)),
        }
    }

    fn register(&mut self, waker: &Waker) {
        self.seen = None;
        self.link.out().wait(&mut self.place, waker);
    }

    fn woke(&mut self) -> bool {
        std::mem::take(&mut self.woke)
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.link.out().leave(place);
        }
    }
}

/// Looks for the answer to a call. If it is dropped before, nobody waits for it any more.
struct Answering<'l> {
    link: &'l Arc<Link>,
    call: u16,
    seen: Option<u32>,
    woke: bool,
    /// Whether it was there.
    there: bool,
}

impl Look for Answering<'_> {
    type Found = Answer;

    #[inline]
    fn look(&mut self) -> Option<Answer> {
        self.woke |= self.link.endpoint.shared.look(true).woke;
        let changes = self.link.changes();
        if self.seen == Some(changes) {
            return None;
        }
        self.seen = Some(changes);
        let mut out = self.link.out();
        let answer = out.calls.take(self.call);
        let gone = || out.gone().map(|_| Err(Undeliverable::PeerGone));
        self.there = answer.is_some();
        answer.or_else(gone)
    }

    fn register(&mut self, waker: &Waker) {
        self.seen = None;
        self.link.out().calls.wait(self.call, waker);
    }

    fn woke(&mut self) -> bool {
        std::mem::take(&mut self.woke)
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        if !self.there {
            self.link.out().calls.abandon(self.call);
        }
    }
}
