//! Peers: sending to them.

use std::future::Future;
use std::sync::Arc;

use doorbell_verbs::{Data, Ending, Memory};

use crate::carried;
use crate::error::{CallError, SendError};
use crate::handlers::RequestId;
use crate::handling::handles;
use crate::link::{Answer, Link};
use crate::message::Reply;
use crate::outbox::Content;
use crate::waiting::{Admission, Awaited, Coming, found, found_since};
use crate::words::{Arguments, MOST_WORDS, Room};

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
    /// If others are under way to the peer, it goes in company: with what is sent before this task lets
    /// other tasks run, at the latest then. A task that blocks its thread instead keeps it back.
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
        let mut room = Room::new();
        let content = Content { words: room.of(&arguments), payload };
        let link = self.0.lane(content);
        link.allows(content)?;
        if link.try_request(id.index(), content)? {
            return Ok(());
        }
        credit(link).await?.send(id.index(), content)
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
        let mut room = Room::new();
        let content = Content { words: room.of(&arguments), payload };
        let link = self.0.lane(content);
        // As `call`, of which the arguments would be stored only to be loaded again.
        let begun = match begin(link, id.index(), content)? {
            Some(begun) => begun,
            None => begin_later(link, id.index(), content).await?,
        };
        let mut answer = None;
        begun.answered(link, &mut answer).await;
        Ok(answer.expect("it was found")?)
    }

    /// Places data in the peer's segment, and runs a handler there behind it. What this gives may be
    /// awaited for the data's memory.
    ///
    /// Where there is a credit this is done at once, and other tasks are not let run. Nothing is copied: of
    /// registered memory name a [`Segment`](doorbell_verbs::Segment), which is to
    /// be left alone until then.
    ///
    /// # Errors
    /// When the data does not fit there, or there are more than sixteen words; the peer has gone, or this
    /// is a handler.
    pub async fn place<A: Arguments>(
        &self,
        id: RequestId<A>,
        arguments: A,
        offset: u64,
        data: impl Into<Data>,
    ) -> Result<Placing, SendError> {
        let mut room = Room::new();
        let words = room.of(&arguments);
        self.0.allows(Content::encoded(&[]))?;
        if words.len() > MOST_WORDS {
            return Err(SendError::Words(words.len()));
        }
        /// The most that the NIC takes at once.
        const MOST: u64 = 1 << 31;
        let (data, link) = (data.into(), &self.0);
        if data.len() > MOST {
            return Err(SendError::Payload { len: data.len() as usize, most: MOST as usize });
        }
        if let Some(right) = link.carries() {
            link.out().locate(offset, data.len())?;
            let _right = right.lock().await;
            return carry(link, id.index(), words, offset, data).await;
        }
        let source = match link.try_place(id.index(), words, offset, data)? {
            Ok(source) => source,
            Err(placed) => {
                let credit = credit(link).await?;
                credit.uses(|| link.place(&mut link.out(), id.index(), words, placed))?
            }
        };
        Ok(Placing { link: link.clone(), coming: Coming::by(source), whole: None })
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
        credit(&self.0).await
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

/// A call that was sent.
struct Begun {
    call: u16,
    /// What the link had changed before that, or an answer that comes at once would not be looked for.
    seen: u32,
}

impl Begun {
    /// Waits for the answer, which is put where the caller is to have it.
    #[inline]
    async fn answered(self, link: &Arc<Link>, answer: &mut Option<Answer>) {
        found_since(link, Some(self.seen), Coming::<Answer>::by(self.call), answer).await;
    }
}

/// Sends a request that is answered by a link, if there is a credit.
#[inline]
fn begin(link: &Arc<Link>, handler: u16, content: Content<'_>) -> Result<Option<Begun>, SendError> {
    link.allows(content)?;
    let seen = link.changes();
    Ok(link.try_call(handler, content)?.map(|call| Begun { call, seen }))
}

/// The same when there is one.
async fn begin_later(
    link: &Arc<Link>,
    handler: u16,
    content: Content<'_>,
) -> Result<Begun, SendError> {
    let credit = credit(link).await?;
    let seen = link.changes();
    Ok(Begun { call: credit.send_call(handler, content)?, seen })
}

/// Sends a request by a link, and waits for the answer.
pub(crate) async fn call(
    link: &Arc<Link>,
    handler: u16,
    content: Content<'_>,
) -> Result<Reply, CallError> {
    let begun = match begin(link, handler, content)? {
        Some(begun) => begun,
        None => begin_later(link, handler, content).await?,
    };
    let mut answer = None;
    begun.answered(link, &mut answer).await;
    Ok(answer.expect("it was found")?)
}

/// Waits for a credit.
async fn credit(link: &Arc<Link>) -> Result<Credit<'_>, SendError> {
    found(link, Admission::default()).await?;
    Ok(Credit { link, used: false })
}

/// Places data by messages.
async fn carry(
    link: &Arc<Link>,
    handler: u16,
    words: &[u64],
    offset: u64,
    data: Data,
) -> Result<Placing, SendError> {
    let place = [offset, data.len()];
    credit(link).await?.uses(|| link.carry(handler, words, place))?;
    let mut pieces = carried::pieces(&data, link.longest(), &link.buffers).peekable();
    let mut source = None;
    while let Some(piece) = pieces.next() {
        let is_last = pieces.peek().is_none();
        source = credit(link).await?.uses(|| link.carry_piece(piece, is_last))?;
    }
    drop(pieces);
    let whole = match data {
        Data::Memory(memory) => memory,
        Data::Inline(_) => Memory::None,
    };
    let coming = source.map_or(Coming::nothing(), Coming::by);
    Ok(Placing { link: link.clone(), coming, whole: Some(whole) })
}

/// Data that is being placed. If this is dropped, its memory goes when it comes back.
pub struct Placing {
    link: Arc<Link>,
    coming: Coming<Memory>,
    /// All of it, if what comes back is a piece.
    whole: Option<Memory>,
}

impl Placing {
    /// Waits until all of it is there, and gives the memory back that it came from.
    ///
    /// # Errors
    /// When the peer has gone. Whether the data is there is not known then.
    pub async fn done(mut self) -> Result<Memory, SendError> {
        let whole = self.whole.take();
        if !self.coming.is_due() {
            return Ok(whole.unwrap_or(Memory::None));
        }
        // Of several that are under way most have come when somebody asks.
        let here = self.coming.find(&self.link, &mut self.link.out());
        let memory = match here {
            Some(found) => found?,
            None => found(&self.link, self.coming.hand_on()).await?,
        };
        Ok(whole.unwrap_or(memory))
    }
}

impl Drop for Placing {
    fn drop(&mut self) {
        if self.coming.is_due() {
            self.coming.leave(&mut self.link.out());
        }
    }
}

impl Credit<'_> {
    /// Sends a request, now.
    ///
    /// # Errors
    /// When there are more words than the peer takes.
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
        let mut room = Room::new();
        let content = Content { words: room.of(&arguments), payload };
        self.link.allows(content)?;
        self.send(id.index(), content)
    }

    fn send(self, handler: u16, content: Content<'_>) -> Result<(), SendError> {
        let link = self.link;
        self.uses(|| link.request(&mut link.out(), handler, content))
    }

    fn send_call(self, handler: u16, content: Content<'_>) -> Result<u16, SendError> {
        let link = self.link;
        self.uses(|| link.call(&mut link.out(), handler, content))
    }

    /// Sends something by it.
    fn uses<R>(mut self, sends: impl FnOnce() -> R) -> R {
        self.used = true;
        sends()
    }
}

impl Drop for Credit<'_> {
    fn drop(&mut self) {
        if !self.used {
            self.link.put_back();
        }
    }
}
