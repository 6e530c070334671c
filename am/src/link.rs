//! A link: what there is between two endpoints, its credits, and its calls.
//!
//! Whoever sends a request gives a credit for it, and gets it back with what answers it. So what comes
//! to an endpoint is bounded: by the credits that it gave, and by the requests that it sent. It posts
//! as many receives.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::task::Waker;
use std::time::Duration;

use doorbell_verbs::{
    Buf, Connection, Data, Ending, Memory, Qpn, Queues, Registered, RemoteMemory, Send, Write,
};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::buffers::{Buffers, locked};
use crate::carried::{Carried, Carrying};
use crate::costs::{Cost, span};
use crate::endpoint::{Flow, Policy};
use crate::error::{SendError, Undeliverable};
use crate::event::Event;
use crate::expected::Expected;
use crate::handling::{handles, handles_several};
use crate::kept::{KeptId, KeptRequests};
use crate::links::{Core, NOWHERE, left, room};
use crate::message::{Arrival, Reply};
use crate::name::Tag;
use crate::outbox::{Content, Outbox};
use crate::pack;
use crate::peer::Peer;
use crate::receives::OwnReceives;
use crate::sizes::Size;
use crate::wire::{Header, Hello, Kind, MOST_CREDITS, Placement};
use crate::words::{MOST_WORDS, put_words};

/// What answers a call.
pub(crate) type Answer = Result<Reply, Undeliverable>;

pub(crate) struct Link {
    pub endpoint: Arc<Core>,
    pub qpn: Qpn,
    /// Which messages it is for.
    pub size: Size,
    /// The receives of such, and buffers as long.
    pub buffers: Arc<Buffers>,
    /// What there is besides, if sizes have their own.
    lanes: OnceLock<Lanes>,
    /// The one that this stands beside, if it is for shorter messages.
    main: OnceLock<Weak<Link>>,
    /// What the peer is just placing by messages; only the poller takes it up.
    carrying: Mutex<Carrying>,
    /// What the peer said of itself, when the link is open.
    hello: OnceLock<Hello>,
    /// The tag that the peer shows.
    shown: AtomicU64,
    open: AtomicBool,
    /// How many requests of this side's there are receives for the answers of, if it is not asked to
    /// give them up; at least one, even if that has to be waited for.
    limit: usize,
    /// How many requests the peer may have under way: no more receives are promised for them.
    grants: AtomicUsize,
    /// Requests that came, which only the poller counts, and those of them that are answered, which
    /// whoever has `out` does.
    came: AtomicU32,
    answered: AtomicU32,
    /// How many had come when it was last asked whether any do.
    marked: AtomicU32,
    /// Whether credits are being recalled.
    recalled: AtomicBool,
    /// Counts what may end somebody's waiting: answers, credits, the end.
    changes: AtomicU32,
    out: Mutex<Out>,
    /// The peer's receives, if it has its own.
    own: Option<OwnReceives>,
}

/// What of a link is for whoever sends.
pub(crate) struct Out {
    /// There while the link is open.
    outbox: Option<Outbox>,
    /// Why it is over.
    ending: Option<Ending>,
    /// Where the peer lets payloads be placed.
    pub segment: RemoteMemory,
    /// How many requests the peer has receives for, beside those under way.
    credits: usize,
    /// Requests under way: those that are no calls, and all, with those that may be sent now.
    plain: usize,
    taken: usize,
    /// Receives that are promised for their answers: so many at least, and as many as that.
    lease: usize,
    leases: usize,
    /// Requests that are done, without a reply, and the peer was not told of.
    owed: usize,
    /// Answers to calls.
    pub calls: Expected<Answer>,
    /// Memory that is being placed: no more than there are credits, and completions that nobody has
    /// looked at.
    pub sources: Expected<Memory>,
    pub kept: KeptRequests,
    /// What sees to it that their time ends, if something does.
    timed: Option<AbortHandle>,
    /// Who waits for a credit, longest first.
    waiting: VecDeque<(u64, Waker)>,
    next_place: u64,
}

/// What a link has besides, whose peer has one for each size of messages.
struct Lanes {
    /// The others.
    shorter: [Arc<Link>; 2],
    /// Whoever places something by messages has it.
    carries: tokio::sync::Mutex<()>,
}

/// What is to be placed.
pub(crate) struct Placed {
    pub offset: u64,
    pub data: Data,
    /// Where: as much as the data.
    pub memory: RemoteMemory,
}

/// Which handler a request or reply is for, and which call it is of.
#[derive(Clone, Copy)]
pub(crate) struct To {
    pub handler: u16,
    pub call: u16,
}

impl Link {
    /// With so many receives for the peer's requests, and for the answers to this side's.
    pub fn new(
        endpoint: Arc<Core>,
        qpn: Qpn,
        (size, buffers): (Size, Arc<Buffers>),
        (grants, lease): (usize, usize),
    ) -> Self {
        let own = (endpoint.config.flow != Flow::Credits).then(OwnReceives::default);
        Self {
            own,
            size,
            buffers,
            lanes: OnceLock::new(),
            main: OnceLock::new(),
            carrying: Mutex::default(),
            limit: lease.max(1),
            endpoint,
            qpn,
            hello: OnceLock::new(),
            shown: AtomicU64::new(Tag::NONE.0),
            open: AtomicBool::new(false),
            grants: AtomicUsize::new(grants),
            came: AtomicU32::new(0),
            answered: AtomicU32::new(0),
            marked: AtomicU32::new(0),
            recalled: AtomicBool::new(false),
            changes: AtomicU32::new(0),
            out: Mutex::new(Out {
                outbox: None,
                ending: None,
                segment: NOWHERE,
                credits: 0,
                plain: 0,
                taken: 0,
                lease,
                leases: lease,
                owed: 0,
                calls: Expected::default(),
                sources: Expected::default(),
                kept: KeptRequests::default(),
                timed: None,
                waiting: VecDeque::new(),
                next_place: 0,
            }),
        }
    }

    /// The peer has said what it is.
    pub fn hears(&self, hello: Hello) {
        self.shows(hello.tag);
        self.out().segment = hello.segment;
        let _ = self.hello.set(hello);
    }

    /// The connection stands. Whether the link does, too.
    pub fn opens(&self, queues: Queues) -> bool {
        let Queues { send, receive, connection } = queues;
        let mut out = self.out();
        if out.ending.is_some() {
            return false;
        }
        if let Some(own) = &self.own {
            own.open(receive);
        }
        out.credits = self.hello().map_or(0, |hello| hello.credits.into());
        out.outbox = Some(Outbox::new(send, connection));
        self.changed();
        let credits = out.credits;
        out.wake(credits);
        true
    }

    /// Whether the poller has heard that it is open: what came before is handled first.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    pub fn set_open(&self) {
        self.open.store(true, Ordering::Relaxed);
    }

    pub fn hello(&self) -> Option<&Hello> {
        self.hello.get()
    }

    pub fn connection(&self) -> Option<Connection> {
        self.out().outbox.as_ref().map(|outbox| outbox.connection.clone())
    }

    /// Posts a buffer that was received into, or one in its place.
    #[inline]
    pub fn post(&self, buffer: Buf) {
        match &self.own {
            None => self.buffers.post(buffer),
            Some(own) => own.post(buffer),
        }
    }

    /// Takes a buffer back for which nothing comes any more. One that is to be posted, if it is not lost
    /// to others.
    pub fn flushed(&self, buffer: Buf) -> Option<Buf> {
        if self.own.is_none() {
            return Some(buffer);
        }
        self.buffers.give(buffer);
        None
    }

    /// How many requests it will have under way, as far as that is certain: the peer tells of a quarter of
    /// them that are done, or all receives for answers could be held by what it did not tell of.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Whether it is over, and nothing is promised for it any more.
    pub fn is_over(&self) -> bool {
        self.grants() == 0
    }

    /// How many requests the peer may have under way.
    pub fn grants(&self) -> usize {
        self.grants.load(Ordering::Relaxed)
    }

    /// Messages to the same peer that are shorter go by others from here on.
    pub fn has_lanes(self: &Arc<Self>, shorter: [Arc<Self>; 2]) {
        for lane in &shorter {
            let _ = lane.main.set(Arc::downgrade(self));
        }
        let _ = self.lanes.set(Lanes { shorter, carries: Default::default() });
    }

    /// Those that end with it.
    pub fn beside(&self) -> Vec<Arc<Self>> {
        let main = self.main.get().and_then(Weak::upgrade);
        self.lanes().iter().cloned().chain(main).collect()
    }

    /// Whether there is another for the rest of the messages, for which this stands.
    pub fn is_for_shorter(&self) -> bool {
        Size::LESS.contains(&self.size)
    }

    /// Those for shorter messages.
    pub fn lanes(&self) -> &[Arc<Self>] {
        self.lanes.get().map_or(&[], |lanes| &lanes.shorter)
    }

    /// The right to carry something there, if that is how it is placed: one thing after the other.
    pub fn carries(&self) -> Option<&tokio::sync::Mutex<()>> {
        self.lanes.get().map(|lanes| &lanes.carries)
    }

    /// Says what is to be carried, for which there was a credit.
    pub fn carry(
        self: &Arc<Self>,
        handler: u16,
        words: &[u64],
        [offset, len]: [u64; 2],
    ) -> Result<(), SendError> {
        let mut out = self.out();
        out.stands()?;
        out.plain += 1;
        let mut bytes = [0; 8 * MOST_WORDS];
        let payload = &mut bytes[..8 * words.len()];
        put_words(words, payload);
        let words = Kind::Carried.own_words() + words.len();
        let header = Header { kind: Kind::Carried, words, handler, call: 0 };
        self.send(&mut out, header, Content { words: &[offset, len], payload }, true);
        Ok(())
    }

    /// Sends a piece of it, for which there was a credit. If it is the last, which one it is of those that
    /// wait for their memory to come back.
    pub fn carry_piece(&self, piece: Send, is_last: bool) -> Result<Option<u16>, SendError> {
        let header = Header { kind: Kind::Carried, words: 0, handler: 0, call: 0 };
        let out = &mut *self.out();
        out.stands()?;
        out.plain += 1;
        let source = is_last.then(|| out.sources.begin());
        let piece = piece.imm(header.imm()).id(source.map_or(0, u64::from));
        if let Some(outbox) = &mut out.outbox {
            outbox.flush();
            outbox.post(piece);
        }
        Ok(source)
    }

    /// Takes what the peer carries here, if it shows the tag.
    pub fn carried(&self, arrival: &mut Arrival) -> Carried {
        let core = &self.endpoint;
        let admitted = core.tag().admits(self.shown());
        let segment = core.segment().map(Registered::region);
        locked(&self.carrying).take(arrival, admitted, segment)
    }

    /// The one by which a request goes: that of its size, if sizes have their own.
    #[inline]
    pub fn lane(self: &Arc<Self>, content: Content<'_>) -> &Arc<Self> {
        let takes = |lane: &&Arc<Self>| lane.takes(content).is_ok();
        self.lanes().iter().find(takes).unwrap_or(self)
    }

    /// The longest payload of what comes.
    #[inline]
    pub fn payload(&self) -> usize {
        self.size.payload(&self.endpoint.config)
    }

    /// The most requests that either side may have under way.
    #[inline]
    pub fn credits(&self) -> usize {
        self.size.credits(&self.endpoint.config)
    }

    /// The longest payload that a message takes there.
    #[inline]
    pub fn longest(&self) -> usize {
        let own = self.payload();
        self.hello.get().map_or(0, |hello| own.min(hello.payload as usize))
    }

    /// The tag that the peer shows.
    #[inline]
    pub fn shown(&self) -> Tag {
        Tag(self.shown.load(Ordering::Relaxed))
    }

    pub fn shows(&self, tag: Tag) {
        self.shown.store(tag.0, Ordering::Relaxed);
    }

    #[inline]
    pub fn changes(&self) -> u32 {
        self.changes.load(Ordering::Acquire)
    }

    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Release);
    }

    #[inline]
    pub fn out(&self) -> MutexGuard<'_, Out> {
        locked(&self.out)
    }

    /// Whether a request of this may be sent from here.
    #[inline]
    pub fn allows(&self, content: Content<'_>) -> Result<(), SendError> {
        let _semantics = span(Cost::Semantics);
        if handles() {
            return Err(SendError::InHandler);
        }
        self.takes(content)
    }

    /// Whether the peer takes this in a message.
    #[inline]
    pub fn takes(&self, Content { words, payload }: Content<'_>) -> Result<(), SendError> {
        // Words beyond the first take the place of payload, and so does their number.
        let count = words.len();
        let beyond = if count > MOST_WORDS { 8 * (count - MOST_WORDS + 1) } else { 0 };
        let len = payload.len() + beyond;
        if len > 0 && len > self.longest() {
            return Err(SendError::Payload { len, most: self.longest() });
        }
        Ok(())
    }

    /// Sends a request, if there is a credit. Whether there was.
    #[inline]
    pub fn try_request(
        self: &Arc<Self>,
        handler: u16,
        content: Content<'_>,
    ) -> Result<bool, SendError> {
        let mut out = self.out();
        let admitted = self.admit(&mut out)?;
        if admitted {
            self.request(&mut out, handler, content)?;
        }
        Ok(admitted)
    }

    /// Sends a request whose answer is kept for who waits for it, if there is a credit. Which call it
    /// is.
    #[inline]
    pub fn try_call(
        self: &Arc<Self>,
        handler: u16,
        content: Content<'_>,
    ) -> Result<Option<u16>, SendError> {
        let mut out = self.out();
        let admitted = self.admit(&mut out)?;
        if admitted { self.call(&mut out, handler, content).map(Some) } else { Ok(None) }
    }

    /// Sends a request for which there was a credit.
    #[inline]
    pub fn request(
        self: &Arc<Self>,
        out: &mut Out,
        handler: u16,
        content: Content<'_>,
    ) -> Result<(), SendError> {
        out.stands()?;
        out.plain += 1;
        self.send_request(out, To { handler, call: 0 }, content);
        Ok(())
    }

    /// Sends a request for which there was a credit, and whose answer is kept. Which call it is.
    #[inline]
    pub fn call(
        self: &Arc<Self>,
        out: &mut Out,
        handler: u16,
        content: Content<'_>,
    ) -> Result<u16, SendError> {
        out.stands()?;
        let call = out.calls.begin();
        self.send_request(out, To { handler, call }, content);
        Ok(call)
    }

    /// One that nothing is under way beside is alone, and goes at once.
    #[inline]
    fn send_request(self: &Arc<Self>, out: &mut Out, to: To, content: Content<'_>) {
        let alone = out.taken == 1;
        let words = content.words.len();
        let header = Header { kind: Kind::Request, words, handler: to.handler, call: to.call };
        self.send(out, header, content, alone);
    }

    /// Places data in the peer's segment, for which there was a credit, and has a request run behind
    /// that. Which one it is of those that wait for their memory to come back.
    pub fn place(
        self: &Arc<Self>,
        out: &mut Out,
        handler: u16,
        words: &[u64],
        placed: Placed,
    ) -> Result<u16, SendError> {
        /// The most bytes of one. Metadata makes the last packet of several longer than the others, which a
        /// run of them may not have: it would end there, and the next begin.
        const ONE_PACKET: u64 = 4096;
        out.stands()?;
        let Placed { offset, data, memory } = placed;
        let (source, len) = (out.sources.begin(), data.len());
        let by_metadata = words.is_empty()
            && len <= ONE_PACKET
            && self.goes_together()
            && self.hello().is_some_and(|hello| hello.metadata);
        out.plain += 1;
        let alone = out.taken == 1;
        let Some(outbox) = &mut out.outbox else { return Ok(source) };
        let kind = if by_metadata { Kind::Request } else { Kind::Placed };
        let count = words.len() + kind.own_words();
        let header = Header { kind, words: count, handler, call: 0 };
        let write = Write::new(data, memory).expect("it was measured").id(source.into());
        let first = if by_metadata {
            outbox.put(write.metadata(Placement { header, offset }.metadata()), len)
        } else {
            let mut bytes = [0; 8 * MOST_WORDS];
            let bytes = &mut bytes[..8 * words.len()];
            put_words(words, bytes);
            let content = Content { words: &[offset, len], payload: bytes };
            outbox.put_told((write, len), (header, content), &self.buffers)
        };
        if alone || !self.goes_together() {
            outbox.flush();
        } else if first {
            self.endpoint.shared.holds(self.clone());
        }
        Ok(source)
    }

    /// A request has come. Whether its peer had the credit.
    #[inline]
    pub fn comes(&self) -> bool {
        let came = self.came.load(Ordering::Relaxed).wrapping_add(1);
        self.came.store(came, Ordering::Relaxed);
        let open = came.wrapping_sub(self.answered.load(Ordering::Relaxed));
        let grants = self.grants();
        // There are none when it is over; what had come before is handled.
        open as usize <= grants || grants == 0
    }

    /// Whether messages may share a send.
    #[inline]
    fn goes_together(&self) -> bool {
        self.endpoint.config.policy == Policy::Together && self.size == Size::Any
    }

    /// Whether credits may be recalled from the peer: not while it is being asked.
    pub fn can_be_recalled(&self) -> bool {
        self.is_open() && self.grants() > 1 && !self.recalled.load(Ordering::Relaxed)
    }

    pub fn set_recalled(&self, recalled: bool) {
        self.recalled.store(recalled, Ordering::Relaxed);
    }

    /// Whether no request has come since this was asked before.
    pub fn is_idle(&self) -> bool {
        let came = self.came.load(Ordering::Relaxed);
        self.marked.swap(came, Ordering::Relaxed) == came
    }

    /// The peer gives up so many of its credits. How many it had beside one.
    pub fn gives_up(self: &Arc<Self>, count: usize) -> usize {
        let mut given = 0;
        let _ = self.grants.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |grants| {
            given = count.min(grants.saturating_sub(1));
            Some(grants - given)
        });
        let mut out = self.out();
        if out.owed > 0 {
            // What was not worth telling of before may be all that is under way now.
            self.tells(&mut out);
        }
        given
    }

    /// Gives receives up that were promised for answers, and that nothing under way needs. How many.
    pub fn yields_leases(&self) -> usize {
        let out = &mut *self.out();
        // As many are kept as the peer may have answered without telling.
        out.lease = out.lease.min((self.limit / 4).max(1));
        let unused = out.leases.saturating_sub(out.taken.max(out.lease));
        out.leases -= unused;
        unused
    }

    /// The peer does not keep to the rules, and would use up what others need.
    #[cold]
    pub fn overrun(self: &Arc<Self>) {
        tracing::warn!(qpn = %self.qpn, "a peer sends more requests than it may: its link is ended");
        self.endpoint.tell(Event::Overrun(Peer::of(self.clone())));
        self.endpoint.ends(self, left());
    }

    /// Answers a request.
    #[inline]
    pub fn reply(self: &Arc<Self>, to: To, content: Content<'_>) {
        let words = content.words.len();
        let header = Header { kind: Kind::Reply, words, handler: to.handler, call: to.call };
        if self.takes(content).is_err() {
            return self.give_back(header, Undeliverable::LongReply, &[]);
        }
        self.answer(&mut self.out(), header, content);
    }

    /// Sends a request back, of which this is the data.
    #[cold]
    pub fn give_back(self: &Arc<Self>, request: Header, why: Undeliverable, data: &[u8]) {
        let carried = if data.is_empty() { 0 } else { request.words };
        let header = Header { kind: Kind::Returned, words: 1 + carried, ..request };
        let content = Content { words: &[why.code()], payload: data };
        self.answer(&mut self.out(), header, content);
    }

    /// A request is done, and nothing was replied.
    #[inline]
    pub fn done(self: &Arc<Self>, call: u16) {
        let mut out = self.out();
        if call == 0 {
            out.owed += 1;
            return self.tells(&mut out);
        }
        let header = Header { kind: Kind::Unanswered, words: 0, handler: 0, call };
        self.answer(&mut out, header, Content::encoded(&[]));
    }

    /// Tells of requests that are done, if they are a quarter of all that the peer may have under way.
    #[inline]
    fn tells(self: &Arc<Self>, out: &mut Out) {
        let limit = self.hello.get().map_or(1, |hello| hello.limit.into());
        if out.owed >= (self.grants().min(limit) / 4).max(1) {
            let count = std::mem::take(&mut out.owed) as u16;
            let header = Header { kind: Kind::Done, words: 0, handler: 0, call: count };
            self.answer(out, header, Content::encoded(&[]));
        }
    }

    /// Answers a request. A peer that has fewer credits than it may have gets one more with each
    /// answer, as long as there are receives: so idle peers hold few, and busy ones many.
    #[inline]
    fn answer(self: &Arc<Self>, out: &mut Out, header: Header, content: Content<'_>) {
        if out.outbox.is_none() {
            return;
        }
        let answers = if header.kind == Kind::Done { header.call.into() } else { 1 };
        let answered = self.answered.load(Ordering::Relaxed).wrapping_add(answers);
        self.answered.store(answered, Ordering::Relaxed);
        let full = self.grants() >= self.credits();
        // More credits share a send with an answer, or there would be no receive for them.
        if full || pack::size(header, content) + pack::HEAD > self.shared() {
            return self.send(out, header, content, !handles_several());
        }
        self.answer_and_grant(out, header, content, answers as usize);
    }

    /// In one send, for which the peer has the receive that it has for the answer.
    #[cold]
    fn answer_and_grant(
        self: &Arc<Self>,
        out: &mut Out,
        header: Header,
        content: Content<'_>,
        answers: usize,
    ) {
        let room = self.credits().saturating_sub(self.grants());
        let more = self.buffers.promise_more(room.min(answers));
        if more == 0 {
            self.endpoint.wants_receives(&self.buffers);
            return self.send(out, header, content, !handles_several());
        }
        let Some(outbox) = &mut out.outbox else { return };
        self.grants.fetch_add(more, Ordering::Relaxed);
        // What is held may be so much that the two would go apart.
        outbox.flush();
        let grant = Header { kind: Kind::Grant, words: 0, handler: 0, call: more as u16 };
        let all = (&*self.buffers, usize::MAX);
        outbox.hold(header, content, all);
        outbox.hold(grant, Content::encoded(&[]), all);
        if !self.goes_together() {
            return outbox.flush();
        }
        self.endpoint.shared.holds(self.clone());
    }

    /// How many bytes of messages may share a send.
    fn shared(&self) -> usize {
        match self.size {
            Size::Any => pack::LONGEST,
            _ => room(self.longest()),
        }
    }

    /// Sends a message: at once if it is alone, or else with others that go soon. What is held goes
    /// when somebody waits for something of the bundle, when the messages are handled that it
    /// answers, when it is much; and else as soon as whoever sent it lets other tasks run.
    #[inline]
    fn send(self: &Arc<Self>, out: &mut Out, header: Header, content: Content<'_>, alone: bool) {
        let _semantics = span(Cost::Semantics);
        let Some(outbox) = &mut out.outbox else { return };
        let packed = (self.credits() / 4).max(2);
        if alone && !outbox.holds() || !self.goes_together() {
            outbox.send(header, content, &self.buffers);
        } else if outbox.hold(header, content, (&self.buffers, packed)) {
            self.endpoint.shared.holds(self.clone());
        }
    }

    /// Sends what is held.
    #[inline]
    pub fn flush(&self) {
        if let Some(outbox) = &mut self.out().outbox {
            outbox.flush();
        }
    }

    /// A handler keeps a request, for as long as its sender waits for the answer.
    pub fn keep(self: &Arc<Self>, header: Header) -> KeptId {
        let patience = self.hello.get().map_or(0, |hello| hello.patience);
        let until = Instant::now() + Duration::from_millis(patience.into());
        let mut out = self.out();
        if out.timed.is_none() {
            let task = self.endpoint.shared.runtime.spawn(time_out(self.clone()));
            out.timed = Some(task.abort_handle());
        }
        out.kept.keep(header, until)
    }

    /// A send is complete, or failed: then all that waits for it hears that the link is over. Whether
    /// somebody was woken.
    #[inline]
    pub fn sent(&self, source: u64, memory: Memory, failed: bool) -> bool {
        let mut out = self.out();
        if let Some(outbox) = &mut out.outbox {
            outbox.sent();
        }
        match (memory, source) {
            (Memory::Buf(buffer), 0) => self.buffers.give(buffer),
            (memory, 1..) if !failed => {
                let woke = out.sources.came(source as u16, memory).unwrap_or(false);
                drop(out);
                self.changed();
                return woke;
            }
            _ => {}
        }
        false
    }

    /// Credits come back with an answer. Whether somebody was woken.
    #[inline]
    pub fn credited(&self, count: usize) -> bool {
        let mut out = self.out();
        let count = count.min(out.plain);
        out.plain -= count;
        out.credits += count;
        self.come_back(out, count)
    }

    /// More requests may be under way than before. Whether somebody was woken.
    #[cold]
    pub fn granted(&self, count: usize) -> bool {
        let mut out = self.out();
        out.credits = (out.credits + count).min(MOST_CREDITS - out.taken);
        let woke = out.wake(count);
        drop(out);
        self.changed();
        woke
    }

    /// An answer to a call, and with it its credit. Whether somebody was woken.
    #[inline]
    pub fn answered(&self, call: u16, answer: Answer) -> bool {
        let mut out = self.out();
        let Some(woke) = out.calls.came(call, answer) else { return false };
        out.credits += 1;
        woke | self.come_back(out, 1)
    }

    /// So many requests are answered, or were not sent. Whether somebody was woken.
    #[inline]
    fn come_back(&self, mut out: MutexGuard<'_, Out>, count: usize) -> bool {
        let _flow = span(Cost::FlowControl);
        if out.ending.is_some() {
            return false;
        }
        out.taken -= count;
        let more = out.leases - out.lease.max(out.taken.min(out.leases));
        out.leases -= more;
        let woke = out.wake(count);
        drop(out);
        self.changed();
        self.gives_back(more);
        woke
    }

    /// So many receives are promised no more: whoever waits for one is told.
    pub fn gives_back(&self, count: usize) {
        if count > 0 {
            self.buffers.release(count);
            self.endpoint.feed();
        }
    }

    /// Gives a credit back that was not used.
    pub fn put_back(&self) {
        let mut out = self.out();
        out.credits += 1;
        self.come_back(out, 1);
    }

    /// Takes a credit, if there is one, and a receive for the answer. Whether there were.
    #[inline]
    pub fn admit(self: &Arc<Self>, out: &mut Out) -> Result<bool, SendError> {
        let _flow = span(Cost::FlowControl);
        out.stands()?;
        let admitted = out.credits > 0 && (out.taken < out.leases || self.leases(out));
        if admitted {
            out.credits -= 1;
            out.taken += 1;
        }
        Ok(admitted)
    }

    /// Looks for a receive for one more answer, or has this be told when there may be one.
    #[cold]
    fn leases(self: &Arc<Self>, out: &mut Out) -> bool {
        if out.leases >= self.credits() {
            return false;
        }
        let mut found = self.buffers.promise_for_answers(1);
        if found == 0 {
            self.endpoint.starves(self.clone());
            // What was released before that was known has told nobody.
            found = self.buffers.promise_for_answers(1);
        }
        out.leases += found;
        found > 0
    }

    /// There may be a receive for one more answer.
    pub fn fed(&self) {
        self.out().wake(1);
        self.changed();
    }

    /// How many receives are promised for it. It needs none any more.
    pub fn promised(&self) -> usize {
        let out = &mut *self.out();
        out.lease = 0;
        let all = self.grants.swap(0, Ordering::Relaxed) + std::mem::take(&mut out.leases);
        if self.own.is_some() { 0 } else { all }
    }

    /// The link is over: all who wait are told. How many requests are lost of which nobody waits for
    /// the answer; none if it was over before.
    #[cold]
    pub fn ends(&self, ending: Ending) -> Option<usize> {
        let mut out = self.out();
        if out.ending.is_some() {
            return None;
        }
        out.ending = Some(ending);
        let lost = std::mem::take(&mut out.plain);
        // The queue pair goes with its queue.
        let outbox = out.outbox.take();
        let waiting = std::mem::take(&mut out.waiting);
        let timed = out.timed.take();
        out.calls.end();
        out.sources.end();
        drop(out);
        drop(outbox);
        timed.iter().for_each(AbortHandle::abort);
        self.own.iter().for_each(OwnReceives::close);
        self.changed();
        waiting.into_iter().for_each(|(_, waker)| waker.wake());
        Some(lost)
    }

    pub fn ending(&self) -> Option<Ending> {
        self.out().ending.clone()
    }
}

/// Sends requests back that handlers have kept too long, until none is kept.
async fn time_out(link: Arc<Link>) {
    loop {
        let next = {
            let mut out = link.out();
            let next = out.kept.next().filter(|_| out.ending.is_none());
            if next.is_none() {
                out.timed = None;
            }
            next
        };
        let Some(next) = next else { return };
        tokio::time::sleep_until(next).await;
        loop {
            let overdue = link.out().kept.overdue(Instant::now());
            let Some(header) = overdue else { break };
            link.give_back(header, Undeliverable::NoReply, &[]);
        }
    }
}

impl Out {
    /// That the link is over, if it is.
    pub fn gone(&self) -> Option<SendError> {
        self.ending.clone().map(SendError::Gone)
    }

    #[inline]
    fn stands(&self) -> Result<(), SendError> {
        self.gone().map_or(Ok(()), Err)
    }

    /// Gives up all credits but one, which are wanted elsewhere. How many those were.
    pub fn yields(&mut self) -> usize {
        let kept = usize::from(self.taken == 0);
        let given = self.credits.saturating_sub(kept);
        self.credits -= given;
        given
    }

    /// Has the waker called when there is a credit.
    pub fn wait(&mut self, place: &mut Option<u64>, waker: &Waker) {
        let number = *place.get_or_insert_with(|| {
            self.next_place += 1;
            self.next_place
        });
        match self.waiting.iter_mut().find(|(place, _)| *place == number) {
            Some((_, there)) => there.clone_from(waker),
            None => self.waiting.push_back((number, waker.clone())),
        }
    }

    /// Waits no more. If it was called and did not come, another is called.
    pub fn leave(&mut self, place: u64) {
        let before = self.waiting.len();
        self.waiting.retain(|(number, _)| *number != place);
        if self.waiting.len() == before && self.credits > 0 {
            self.wake(1);
        }
    }

    /// Calls so many who wait.
    #[inline]
    fn wake(&mut self, count: usize) -> bool {
        let count = count.min(self.waiting.len());
        self.waiting.drain(..count).for_each(|(_, waker)| waker.wake());
        count > 0
    }
}
