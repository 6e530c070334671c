//! Peers: sending to them.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use doorbell_verbs::{Data, Ending, Memory};

use crate::arguments::Arguments;
use crate::carried;
use crate::content::Content;
use crate::error::{CallError, Called, SendError, Undeliverable, WaitedFor};
use crate::handlers::RequestId;
use crate::handling::handles;
use crate::kinds::sealed::Failure;
use crate::kinds::{Callable, Kind, Notice, OneWay};
use crate::limit::Limit;
use crate::link::{Answer, Link};
use crate::lookup::{place, place_of};
use crate::name::Name;
use crate::reply::Reply;
use crate::room::Room;
use crate::waiting::{Admission, Awaited, Coming, found, found_since};
use crate::words::MOST_WORDS;

/// An endpoint's peer, to call and to send to. Clones are handles to the same. It may be used for
/// as long as the [`Endpoint`](crate::Endpoint) is there; kept for longer, it keeps the memory of
/// the endpoint's NIC.
#[derive(Clone)]
pub struct Peer {
    link: Arc<Link>,
    /// How long whoever waits for it by this handle does so.
    within: Option<Duration>,
}

/// A peer that is probed for signs of life until this is dropped.
pub(crate) struct Watch(Arc<Link>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.ends_to_wait();
    }
}

/// The right to have one more request under way to a peer. If it is dropped, another may use it.
#[must_use = "it is given back if nothing is sent by it"]
pub struct Credit<'p> {
    link: &'p Arc<Link>,
    used: bool,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Peer").field(&self.link.peer_text()).finish()
    }
}

/// The name, or what there is of it: see [`Peer::name`].
impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.link.peer_text())
    }
}

/// Handles to the same peer by the same connection are equal, however long they wait.
impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.link, &other.link)
    }
}

impl Eq for Peer {}

impl Hash for Peer {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        Arc::as_ptr(&self.link).hash(hasher);
    }
}

impl Peer {
    pub(crate) fn of(link: Arc<Link>) -> Self {
        let within = link.endpoint.config.deadline;
        Self { link, within }
    }

    /// A handle by which calls wait so long for their answers, and requests and payloads for
    /// credits, whatever the endpoint's [`deadline`](crate::EndpointConfig::deadline) is: for one
    /// call, or for many. The time of each counts from when it begins to sleep. With
    /// [`Duration::MAX`] they wait as long as the peer is there.
    ///
    /// When the time is over a call ends with [`CallError::Deadline`], and what else needs a credit
    /// with [`SendError::NoCredit`]. A call that was sent is given up then, as one that is dropped:
    /// its answer, if one comes, goes nowhere.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use doorbell::am::{Call, CallError, Peer};
    ///
    /// const ADD: Call<(u64, u64), u64> = Call::new("add");
    ///
    /// async fn add(peer: &Peer) -> Result<u64, CallError> {
    ///     peer.within(Duration::from_secs(2)).call(ADD, (2, 3)).await
    /// }
    /// ```
    #[must_use]
    pub fn within(&self, within: Duration) -> Self {
        Self { link: self.link.clone(), within: Some(within) }
    }

    #[inline]
    fn limit(&self) -> Limit<'_> {
        Limit::of(self.within)
    }

    /// Why it has gone, if it has.
    pub fn ending(&self) -> Option<Ending> {
        self.link.ending()
    }

    /// The name by which this endpoint has connected to the peer, or `None` if only the peer has
    /// connected to this endpoint.
    pub fn name(&self) -> Option<Name> {
        self.link.name()
    }

    /// Takes the peer off the endpoint's translation table, wherever it is there, and waits until
    /// it has handled what was sent there before: see [`Endpoint::unmap`](crate::Endpoint::unmap).
    /// Who drops a `Peer` instead stays connected, and may [connect](crate::Endpoint::connect)
    /// again for the same one.
    ///
    /// # Errors
    /// When this endpoint has not mapped the peer, or has taken it off already.
    pub async fn disconnect(&self) -> Result<(), SendError> {
        self.link.endpoint.clone().unmap_link(&self.link).await
    }

    /// The runtime that serves the endpoint. For layers of this workspace that stand on Active Messages.
    #[doc(hidden)]
    pub fn runtime(&self) -> &tokio::runtime::Handle {
        &self.link.endpoint.shared.runtime
    }

    /// The longest payload that it takes in a message.
    pub fn longest_payload(&self) -> usize {
        self.link.longest()
    }

    /// Calls a handler of the peer, and waits for its answer, for no longer than
    /// [that](Self::within) if there is a bound. Of a [`Call`](crate::Call) this gives what the
    /// handler has returned, of a [`RequestId`] the [`Reply`](crate::Reply).
    ///
    /// ```
    /// use doorbell::am::{Call, CallError, Peer};
    ///
    /// const ADD: Call<(u64, u64), u64> = Call::new("add");
    ///
    /// async fn add(peer: &Peer) -> Result<u64, CallError> {
    ///     peer.call(ADD, (2, 3)).await
    /// }
    /// ```
    ///
    /// A call that is dropped, by `select!` or `timeout`, is given up. Its asynchronous handler is
    /// ended at its next await, within about a second, which gives the call's credit back. Other
    /// handlers run to their end, and a request that they [keep](crate::Request::keep) has its
    /// credit until it is answered or the [`patience`](crate::EndpointConfig::patience) is over.
    ///
    /// # Errors
    /// When the call was not sent, not delivered, or not answered, or the handler has failed.
    #[inline]
    pub async fn call<K: Callable>(
        &self,
        kind: K,
        arguments: K::Arguments,
    ) -> Result<K::Answer, CallError> {
        let mut room = Room::new();
        self.call_content(kind, room.content(&arguments)).await
    }

    /// Calls a handler of the peer with a payload beside the arguments, of which a copy is sent.
    /// The handler finds it in its [request](crate::Request::payload).
    ///
    /// # Errors
    /// As [`call`](Self::call), and when the peer does not take so long a payload.
    #[inline]
    pub async fn call_with<K: Callable>(
        &self,
        kind: K,
        arguments: K::Arguments,
        payload: impl AsRef<[u8]>,
    ) -> Result<K::Answer, CallError> {
        let mut room = Room::new();
        self.call_content(kind, room.content_with(&arguments, payload.as_ref())).await
    }

    #[inline]
    async fn call_content<K: Callable>(
        &self,
        kind: K,
        content: Content<'_>,
    ) -> Result<K::Answer, CallError> {
        let place = match place(kind, &self.link) {
            Some(place) => place,
            None => self.look_up(kind).await?,
        };
        let link = self.link.lane(content);
        let (mut limit, mut answer) = (self.limit(), None);
        // As `ask`, of which the arguments would be stored only to be loaded again.
        let begun = match begin(link, place, content) {
            Ok(Some(begun)) => begun,
            Ok(None) => match begin_later(link, place, content, &mut limit).await {
                Ok(begun) => begun,
                Err(why) => return Err(not_sent(link, called(kind), why)),
            },
            Err(why) => return Err(not_sent(link, called(kind), why)),
        };
        begun.answered(link, &mut answer, &mut limit).await;
        match answer {
            Some(Ok(reply)) => {
                kind.answer(reply).map_err(|failure| failed(link, called(kind), failure))
            }
            Some(Err(why)) => Err(undelivered(link, called(kind), why)),
            None => Err(too_late(link, called(kind), &limit)),
        }
    }

    /// Asks the peer for the place of a handler.
    #[cold]
    async fn look_up<K: Callable>(&self, kind: K) -> Result<u16, CallError> {
        let found = Box::pin(place_of(kind, &self.link, self.within)).await;
        found.map_err(|why| why.about(Called::new(self.link.peer_text(), None, kind.name())))
    }

    /// Sends a notice, when there is a credit for it. This does not wait until the notice is
    /// handled.
    ///
    /// If others are under way to the peer, it goes in company: with what is sent before this task
    /// lets other tasks run, at the latest then. A task that blocks its thread instead keeps it
    /// back.
    ///
    /// ```
    /// use doorbell::am::{Notice, Peer, SendError};
    ///
    /// const MOVED: Notice<(u64, f64, f64)> = Notice::new("moved");
    ///
    /// async fn tell(peer: &Peer) -> Result<(), SendError> {
    ///     peer.notify(MOVED, (7, 0.5, -2.0)).await
    /// }
    /// ```
    ///
    /// # Errors
    /// When the peer has gone, has no such handler, or this is a handler that does not wait.
    #[inline]
    pub async fn notify<A: Arguments>(
        &self,
        notice: Notice<A>,
        arguments: A,
    ) -> Result<(), SendError> {
        let mut room = Room::new();
        self.send(notice, room.content(&arguments)).await
    }

    /// Sends a notice at once and without company, if there is a credit now and the place of the
    /// notice's handler is known. Whether both are so.
    ///
    /// # Errors
    /// As [`notify`](Self::notify).
    #[inline]
    pub(crate) fn try_notify<A: Arguments>(
        &self,
        notice: Notice<A>,
        arguments: &A,
    ) -> Result<bool, SendError> {
        let Some(place) = place(notice, &self.link) else { return Ok(false) };
        let mut room = Room::new();
        let content = room.content(arguments);
        let link = self.link.lane(content);
        link.allows(content)?;
        link.try_request_at_once(place, content)
    }

    /// Has the peer probed for signs of life until what this gives is dropped.
    pub(crate) fn watch(&self) -> Watch {
        self.link.begins_to_wait();
        Watch(self.link.clone())
    }

    /// Waits until the peer has handled all that was sent to it before, or has gone: for layers of
    /// this workspace that end, and whose last messages are to arrive.
    #[doc(hidden)]
    pub async fn settled(&self) {
        crate::links::settle(&self.link).await;
    }

    /// Demands a sign of life from the peer's NIC, or else the connection ends: for layers of this
    /// workspace that wait for a peer's messages and do not call it. To be repeated while they
    /// wait.
    #[doc(hidden)]
    pub fn probe(&self) {
        self.link.connection.probe();
    }

    /// Sends a notice with a payload beside the arguments, of which a copy is sent.
    ///
    /// # Errors
    /// As [`notify`](Self::notify), and when the peer does not take so long a payload.
    #[inline]
    pub async fn notify_with<A: Arguments>(
        &self,
        notice: Notice<A>,
        arguments: A,
        payload: impl AsRef<[u8]>,
    ) -> Result<(), SendError> {
        let mut room = Room::new();
        self.send(notice, room.content_with(&arguments, payload.as_ref())).await
    }

    /// Sends a request to a handler whose place the program has chosen, when there is a credit for
    /// it. This does not wait until the request is handled; what is replied runs a [reply
    /// handler](crate::Handlers::reply) here. It goes in company as [`notify`](Self::notify) does.
    ///
    /// # Errors
    /// When the peer has gone, or this is a handler that does not wait.
    #[inline]
    pub async fn request<A: Arguments>(
        &self,
        id: RequestId<A>,
        arguments: A,
    ) -> Result<(), SendError> {
        let mut room = Room::new();
        self.send(id, room.content(&arguments)).await
    }

    /// Sends a request with a payload beside the arguments, of which a copy is sent.
    ///
    /// # Errors
    /// As [`request`](Self::request), and when the peer does not take so long a payload.
    #[inline]
    pub async fn request_with<A: Arguments>(
        &self,
        id: RequestId<A>,
        arguments: A,
        payload: impl AsRef<[u8]>,
    ) -> Result<(), SendError> {
        let mut room = Room::new();
        self.send(id, room.content_with(&arguments, payload.as_ref())).await
    }

    #[inline]
    async fn send<K: OneWay>(&self, kind: K, content: Content<'_>) -> Result<(), SendError> {
        let place = self.place_for(kind).await?;
        let link = self.link.lane(content);
        link.allows(content)?;
        if link.try_request(place, content)? {
            return Ok(());
        }
        credit(link, &mut self.limit()).await?.send(place, content)
    }

    /// The place of the handler of a kind of message.
    #[inline]
    async fn place_for<K: OneWay>(&self, kind: K) -> Result<u16, SendError> {
        if let Some(place) = place(kind, &self.link) {
            return Ok(place);
        }
        let found = Box::pin(place_of(kind, &self.link, self.within)).await;
        found.map_err(|why| why.of_a_question(self.link.peer_text()))
    }

    /// Places data in the peer's segment, and runs a handler there behind it. What this gives may
    /// be awaited for the data's memory.
    ///
    /// Where there is a credit this is done at once, and other tasks are not let run. Nothing is
    /// copied: of registered memory name a [`Segment`](doorbell_verbs::Segment), which is to be
    /// left alone until then.
    ///
    /// # Errors
    /// When the data does not fit there, or there are more than sixteen words; the peer has gone,
    /// or this is a handler.
    pub async fn place<K: OneWay>(
        &self,
        kind: K,
        arguments: K::Arguments,
        offset: u64,
        data: impl Into<Data>,
    ) -> Result<Placing, SendError> {
        let mut room = Room::new();
        let words = room.content_with(&arguments, &[]).words;
        let place = self.place_for(kind).await?;
        self.link.allows(Content::encoded(&[]))?;
        if words.len() > MOST_WORDS {
            return Err(SendError::Words(words.len()));
        }
        /// The most that the NIC takes at once.
        const MOST: u64 = 1 << 31;
        let (data, link) = (data.into(), &self.link);
        if data.len() > MOST {
            return Err(SendError::Payload { len: data.len() as usize, most: MOST as usize });
        }
        if let Some(right) = link.carries() {
            link.locate(&link.out(), offset, data.len())?;
            let _right = right.lock().await;
            return carry(link, place, words, offset, data, self.within).await;
        }
        let source = match link.try_place(place, words, offset, data)? {
            Ok(source) => source,
            Err(placed) => {
                let credit = credit(link, &mut self.limit()).await?;
                credit.uses(|| link.place(&mut link.out(), place, words, placed))?
            }
        };
        Ok(Placing { link: link.clone(), coming: Coming::by(source), whole: None })
    }

    /// Waits for the right to have one more request under way, for no longer than
    /// [that](Self::within) if there is a bound.
    ///
    /// # Errors
    /// When the peer has gone, the time is over, or this is a handler.
    pub async fn credit(&self) -> Result<Credit<'_>, SendError> {
        if handles() {
            return Err(SendError::InHandler);
        }
        credit(&self.link, &mut self.limit()).await
    }

    /// The right to have one more request under way, if there is one now.
    ///
    /// # Errors
    /// When the peer has gone, or this is a handler.
    pub fn try_credit(&self) -> Result<Option<Credit<'_>>, SendError> {
        if handles() {
            return Err(SendError::InHandler);
        }
        let admitted = self.link.admit(&mut self.link.out())?;
        Ok(admitted.then(|| Credit { link: &self.link, used: false }))
    }
}

/// A call that was sent.
struct Begun {
    call: u16,
    /// What the link had changed before that, or an answer that comes at once would not be looked
    /// for.
    seen: u32,
}

impl Begun {
    /// Waits for the answer, which is put where the caller is to have it, if it comes in time.
    #[inline]
    fn answered<'l>(
        self,
        link: &'l Arc<Link>,
        answer: &mut Option<Answer>,
        limit: &mut Limit<'l>,
    ) -> impl Future<Output = ()> {
        let coming = Coming::<Answer>::by(self.call);
        found_since(link, Some(self.seen), coming, answer, limit)
    }
}

/// Sends a request that is answered by a link, if there is a credit.
#[inline]
fn begin(link: &Arc<Link>, handler: u16, content: Content<'_>) -> Result<Option<Begun>, SendError> {
    link.allows(content)?;
    let seen = link.changes();
    Ok(link.try_call(handler, content)?.map(|call| Begun { call, seen }))
}

/// Sends a request that is answered by a link when there is a credit.
async fn begin_later<'l>(
    link: &'l Arc<Link>,
    handler: u16,
    content: Content<'_>,
    limit: &mut Limit<'l>,
) -> Result<Begun, SendError> {
    let credit = credit(link, limit).await?;
    let seen = link.changes();
    Ok(Begun { call: credit.send_call(handler, content)?, seen })
}

/// Asks the endpoint at the other end of a link something, and waits for the answer: for so long,
/// or for as long as the peer is there.
pub(crate) async fn ask(
    link: &Arc<Link>,
    handler: u16,
    content: Content<'_>,
    within: Option<Duration>,
) -> Result<Reply, CallError> {
    let which = (None, "a question between endpoints");
    let (mut limit, mut answer) = (Limit::of(within), None);
    let begun = match begin(link, handler, content) {
        Ok(Some(begun)) => Ok(begun),
        Ok(None) => begin_later(link, handler, content, &mut limit).await,
        Err(why) => Err(why),
    };
    let begun = begun.map_err(|why| not_sent(link, which, why))?;
    begun.answered(link, &mut answer, &mut limit).await;
    let Some(answer) = answer else { return Err(too_late(link, which, &limit)) };
    answer.map_err(|why| undelivered(link, which, why))
}

/// The index of a handler, if the program has chosen it, and the name.
type Handler = (Option<u16>, &'static str);

/// The handler of a kind of message.
#[cold]
fn called<K: Kind>(kind: K) -> Handler {
    (kind.index(), kind.name())
}

/// The error of a call whose reply is no answer.
#[cold]
fn failed(link: &Arc<Link>, (index, name): Handler, failure: Failure) -> CallError {
    let call = Called::new(link.peer_text(), index, name);
    match failure {
        Failure::Handler(text) => CallError::Failed { call, text },
        Failure::Other => CallError::NoAnswer { call },
    }
}

/// The error of a call that was not sent.
#[cold]
fn not_sent(link: &Arc<Link>, (index, name): Handler, why: SendError) -> CallError {
    let call = Called::new(link.peer_text(), index, name);
    match why {
        SendError::NoCredit { within, credits, .. } => {
            let waited_for = WaitedFor::Credit(credits);
            CallError::Deadline { call, within, waited_for }
        }
        why => CallError::NotSent { call, why },
    }
}

/// The error of a call that was sent, and has no answer but a reason for that.
#[cold]
fn undelivered(link: &Arc<Link>, (index, name): Handler, why: Undeliverable) -> CallError {
    let call = Called::new(link.peer_text(), index, name);
    match link.ending() {
        Some(ending) if why == Undeliverable::PeerGone => CallError::PeerGone { call, ending },
        _ => CallError::Undeliverable { call, why },
    }
}

/// The error of a call that was sent, and whose time is over.
#[cold]
fn too_late(link: &Arc<Link>, (index, name): Handler, limit: &Limit<'_>) -> CallError {
    let call = Called::new(link.peer_text(), index, name);
    CallError::Deadline { call, within: limit.within(), waited_for: WaitedFor::Answer }
}

/// Waits for a credit.
async fn credit<'l>(link: &'l Arc<Link>, limit: &mut Limit<'l>) -> Result<Credit<'l>, SendError> {
    match found(link, Admission::default(), limit).await {
        Some(admitted) => admitted?,
        None => {
            let (peer, within) = (link.peer_text(), limit.within());
            let credits = link.out().who_has_credits();
            return Err(SendError::NoCredit { peer, within, credits });
        }
    }
    Ok(Credit { link, used: false })
}

/// Places data by messages.
async fn carry(
    link: &Arc<Link>,
    handler: u16,
    words: &[u64],
    offset: u64,
    data: Data,
    within: Option<Duration>,
) -> Result<Placing, SendError> {
    let place = [offset, data.len()];
    credit(link, &mut Limit::of(within)).await?.uses(|| link.carry(handler, words, place))?;
    let mut pieces = carried::pieces(&data, link.longest(), &link.buffers).peekable();
    let mut source = None;
    while let Some(piece) = pieces.next() {
        let is_last = pieces.peek().is_none();
        source = credit(link, &mut Limit::of(within))
            .await?
            .uses(|| link.carry_piece(piece, is_last))?;
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
            None => {
                let limit = &mut Limit::of(None);
                let found = found(&self.link, self.coming.hand_on(), limit).await;
                found.expect("its time is not bounded")?
            }
        };
        Ok(whole.unwrap_or(memory))
    }
}

impl fmt::Debug for Placing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Placing").field("peer", &self.link.peer_text()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Credit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credit").field("peer", &self.link.peer_text()).finish_non_exhaustive()
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
        let mut room = Room::new();
        let content = room.content(&arguments);
        self.link.allows(content)?;
        self.send(id.index(), content)
    }

    /// Sends a request, now, with a payload beside the arguments, of which a copy is sent.
    ///
    /// # Errors
    /// As [`request`](Self::request), and when the peer does not take so long a payload.
    pub fn request_with<A: Arguments>(
        self,
        id: RequestId<A>,
        arguments: A,
        payload: impl AsRef<[u8]>,
    ) -> Result<(), SendError> {
        let mut room = Room::new();
        let content = room.content_with(&arguments, payload.as_ref());
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
