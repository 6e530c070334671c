//! A link: what there is between two endpoints, its credits, and its calls.
//!
//! Whoever sends a request gives a credit for it, and gets it back with what answers it. So what
//! comes to an endpoint is bounded: by the credits that it gave, and by the requests that it sent.
//! It posts as many receives.

mod alive;
mod answers;
mod credits;
mod kept;
mod requests;

use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::task::Waker;

use doorbell_verbs::floor::HeldNic;
use doorbell_verbs::{
    Buf, Connection, ConnectionState, Data, Ending, Mapped, Memory, Qpn, Queues, RemoteMemory,
};
use tokio::task::AbortHandle;

use crate::buffers::{Buffers, locked};
use crate::carried::Carrying;
use crate::content::Content;
use crate::costs::{Cost, span};
use crate::endpoint::{Flow, Policy};
use crate::error::{SendError, Undeliverable};
use crate::expected::Expected;
use crate::kept::KeptRequests;
use crate::life::Life;
use crate::links::{Core, NOWHERE};
use crate::name::Name;
use crate::names::Names;
use crate::outbox::Outbox;
use crate::proofs::Taken;
use crate::receives::OwnReceives;
use crate::reply::Reply;
use crate::sizes::Size;
use crate::tag::Admission;
use crate::wire::{Header, Hello, MOST_CREDITS, Nature};

/// What answers a call.
pub(crate) type Answer = Result<Reply, Undeliverable>;

pub(crate) struct Link {
    pub endpoint: Arc<Core>,
    pub connection: Connection,
    /// Which messages it is for.
    pub size: Size,
    /// The receives of such, and buffers as long.
    pub buffers: Arc<Buffers>,
    /// Who uses the link on this side, and whether it may end.
    pub life: Life,
    /// What there is besides, if sizes have their own.
    beside: OnceLock<Box<Beside>>,
    /// What the peer is just placing by messages; only the poller takes it up.
    carrying: OnceLock<Box<Mutex<Carrying>>>,
    /// What the peer said of itself, when the link is open.
    peer: OnceLock<Nature>,
    /// Whether the peer's handlers are the endpoint's, as far as programs have chosen their places.
    same_handlers: AtomicBool,
    /// What the peer's named handlers are, if one was ever called.
    names: OnceLock<Arc<Names>>,
    /// The tag that the peer shows, and whether the endpoint admits it.
    pub admission: Admission,
    open: AtomicBool,
    /// Whether it was cut off, and nothing is handled any more.
    cut_off: AtomicBool,
    /// How many requests of this side's there are receives for the answers of, if it is not asked
    /// to give them up; at least one, even if that has to be waited for.
    limit: u16,
    /// How many requests the peer may have under way: no more receives are promised for them.
    grants: AtomicU16,
    /// Requests that came, which only the poller counts, and those of them that are answered, which
    /// whoever has `out` does.
    came: AtomicU32,
    answered: AtomicU32,
    /// How many had come when it was last asked whether any do.
    marked: AtomicU32,
    /// Whether credits are being recalled.
    recalled: AtomicBool,
    /// Messages that came, and what the peer last said, and before that, to have taken; only the
    /// poller writes these.
    taken: AtomicU16,
    heard: AtomicU16,
    proved: AtomicU16,
    /// With how many more the latter is worth it; `None` where it never is.
    worth: Option<NonZeroU16>,
    /// Counts what may end somebody's waiting: answers, credits, the end.
    changes: AtomicU32,
    /// How many sleep until the peer does something, and whether it is asked for signs of life
    /// meanwhile.
    waiters: AtomicU32,
    probed: AtomicBool,
    /// The address in the peer's name, where this side has mapped it: shared with the name that the
    /// program has.
    address: OnceLock<Arc<str>>,
    out: Mutex<Out>,
    /// The peer's receives, if it has its own.
    own: Option<Box<OwnReceives>>,
}

/// What of a link is for whoever sends.
pub(crate) struct Out {
    /// There while the link is open.
    outbox: Option<Outbox>,
    /// Why it is over; apart, for while it stands there is no reason.
    ending: Option<Box<Ending>>,
    /// Whether all are told that it is open: that its connection is over ends it only then, or what
    /// came by it would be of none that ever was.
    pub announced: bool,
    /// Where the peer lets payloads be placed.
    pub segment: RemoteMemory,
    /// The same memory, when it is mapped; whether the peer was asked for it, and was lent this
    /// side's.
    mapped: Option<Box<Mapped>>,
    asked: bool,
    lent: bool,
    /// How many requests the peer has receives for, beside those under way; no more than
    /// [`MOST_CREDITS`](crate::wire::MOST_CREDITS), as are those that follow.
    credits: u16,
    /// Requests under way: those that are no calls, and all, with those that may be sent now.
    plain: u16,
    taken: u16,
    /// Receives that are promised for their answers: so many at least, and as many as that.
    lease: u16,
    leases: u16,
    /// Requests that are done, without a reply, and the peer was not told of.
    owed: u16,
    /// Answers to calls.
    pub calls: Expected<Answer>,
    /// Memory that is being placed: no more than there are credits, and completions that nobody has
    /// looked at.
    pub sources: Option<Box<Expected<Memory>>>,
    /// What handlers keep. Both are apart, for most peers never had either; once there, they stay.
    pub kept: Option<Box<KeptRequests>>,
    /// The tasks that wait for a credit. They are allocated apart, since most links never have any.
    waiting: Option<Box<Waiting>>,
}

/// The tasks that wait for a credit of a link.
#[derive(Default)]
struct Waiting {
    /// The tasks, with the number by which each knows its place; who has waited for longest is
    /// first.
    queue: VecDeque<(u64, Waker)>,
    /// The number that was given last.
    last: u64,
}

/// What there is beside a link whose peer has one for each size of messages.
enum Beside {
    Lanes {
        /// The others.
        shorter: [Arc<Link>; 2],
        /// Whoever places something by messages has it.
        carries: tokio::sync::Mutex<()>,
    },
    /// The one for the rest, if this is for shorter messages.
    Main(Weak<Link>),
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
        connection: Connection,
        (size, buffers): (Size, Arc<Buffers>),
        (grants, lease): (usize, usize),
    ) -> Self {
        let own = (endpoint.config.flow != Flow::Credits).then(Box::default);
        // Where the NIC sees to receives, nothing else bounds what is under way; and a device that
        // loses nothing says itself how far the peer has come.
        let credits = size.credits(&endpoint.config);
        let asks = own.is_none() && !endpoint.shared.nic.capabilities().lossless;
        let first = size.first_credits(&endpoint.config);
        let worth = (asks && credits <= Taken::MOST_CREDITS).then(|| (first / 4).max(1) as u16);
        let worth = worth.and_then(NonZeroU16::new);
        Self {
            own,
            size,
            buffers,
            life: Life::default(),
            beside: OnceLock::new(),
            carrying: OnceLock::new(),
            limit: lease.max(1) as u16,
            endpoint,
            connection,
            peer: OnceLock::new(),
            same_handlers: AtomicBool::new(false),
            names: OnceLock::new(),
            admission: Admission::default(),
            open: AtomicBool::new(false),
            cut_off: AtomicBool::new(false),
            // No more than credits, of which there are few enough.
            grants: AtomicU16::new(grants as u16),
            came: AtomicU32::new(0),
            answered: AtomicU32::new(0),
            marked: AtomicU32::new(0),
            recalled: AtomicBool::new(false),
            taken: AtomicU16::new(0),
            heard: AtomicU16::new(0),
            proved: AtomicU16::new(0),
            worth,
            changes: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
            probed: AtomicBool::new(false),
            address: OnceLock::new(),
            out: Mutex::new(Out {
                outbox: None,
                ending: None,
                announced: false,
                segment: NOWHERE,
                mapped: None,
                asked: false,
                lent: false,
                credits: 0,
                plain: 0,
                taken: 0,
                // No more than credits, of which there are few enough.
                lease: lease as u16,
                leases: lease as u16,
                owed: 0,
                calls: Expected::default(),
                sources: None,
                kept: None,
                waiting: None,
            }),
        }
    }

    /// The peer has said what it is.
    pub fn hears(&self, hello: Hello) {
        self.endpoint.admits_as(self, hello.tag);
        let same = hello.handlers == self.endpoint.digest();
        self.same_handlers.store(same, Ordering::Relaxed);
        self.out().segment = hello.segment;
        let _ = self.peer.set(hello.nature);
    }

    /// The connection stands. Whether the link does, too.
    pub fn opens(&self, queues: Queues) -> bool {
        let Queues { send, receive, .. } = queues;
        let mut out = self.out();
        if out.ending.is_some() {
            return false;
        }
        if let Some(own) = &self.own {
            own.open(receive);
        }
        out.credits = self.peer().map_or(0, |peer| peer.credits);
        let lossless = self.endpoint.shared.nic.capabilities().lossless;
        // A peer that leaves receives to its NIC grants all that can be granted, and has fewer
        // receives.
        let counts = usize::from(out.credits) < MOST_CREDITS;
        let copies = self.own.is_none() && counts && lossless;
        out.outbox = Some(Outbox::new(send, copies));
        self.changed(&mut out);
        let credits = out.credits;
        out.wake(credits.into());
        true
    }

    /// Whether the poller has heard that it is open: what came before is handled first.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    pub fn set_open(&self, open: bool) {
        self.open.store(open, Ordering::Relaxed);
    }

    /// Nothing that is behind what is handled now will be.
    pub fn cut_off(&self) {
        self.cut_off.store(true, Ordering::Relaxed);
        self.set_open(false);
    }

    pub fn is_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn peer(&self) -> Option<&Nature> {
        self.peer.get()
    }

    /// Whether the peer's handlers are the endpoint's, as far as programs have chosen their places.
    pub fn has_same_handlers(&self) -> bool {
        self.same_handlers.load(Ordering::Relaxed)
    }

    /// What the peer's named handlers are, once it was [asked](Self::learns).
    #[inline]
    pub fn names(&self) -> Option<&Names> {
        self.names.get().map(Arc::as_ref)
    }

    /// The peer has told what its named handlers are.
    pub fn learns(&self, names: Arc<Names>) {
        let _ = self.names.set(names);
    }

    /// As much of a text as the peer takes in a message.
    pub fn shortened<'t>(&self, text: &'t str) -> &'t [u8] {
        let most = text.floor_char_boundary(self.longest());
        &text.as_bytes()[..most]
    }

    /// The number of its queue pair, which another's may be when it is over.
    #[inline]
    pub fn qpn(&self) -> Qpn {
        self.connection.qpn()
    }

    /// It is this endpoint that is at the other end.
    pub fn is_to(&self, name: &Name) {
        self.address.get_or_init(|| name.shared_address().clone());
    }

    /// Whether the peer was mapped by this name.
    pub fn is_named(&self, name: &Name) -> bool {
        let service = self.peer().map(|peer| peer.service);
        service == Some(name.service().0) && self.address.get() == Some(name.shared_address())
    }

    /// The peer, for errors: by its name, or, if it has only mapped this endpoint, by its number.
    #[cold]
    pub fn peer_text(&self) -> Box<str> {
        if let Some(name) = self.name() {
            return name.to_string().into();
        }
        let service = self.peer().map_or(0, |peer| peer.service);
        format!("the endpoint #{service:016x}, which has mapped this one").into()
    }

    /// The peer's name, if this side has mapped it.
    pub fn name(&self) -> Option<Name> {
        let service = self.peer()?.service;
        self.address.get().map(|address| Name::at(address.clone(), service))
    }

    /// Whether no message takes one of the endpoint's receives by it any more, and all that did are
    /// in their queue.
    pub fn takes_no_more(&self) -> bool {
        self.own.is_some() || self.connection.had_last_receive()
    }

    /// Posts a buffer that was received into, or one in its place.
    #[inline]
    pub fn post(&self, buffer: Buf) {
        match &self.own {
            None => self.buffers.post(buffer),
            Some(own) => own.post(buffer),
        }
    }

    /// Takes a buffer back for which nothing comes any more. One that is to be posted, if it is not
    /// lost to others.
    pub fn flushed(&self, buffer: Buf) -> Option<Buf> {
        if self.own.is_none() {
            return Some(buffer);
        }
        self.buffers.give(buffer);
        None
    }

    /// How many requests it will have under way, as far as that is certain: the peer tells of a
    /// quarter of them that are done, or all receives for answers could be held by what it did not
    /// tell of.
    pub fn limit(&self) -> usize {
        self.limit.into()
    }

    /// Whether the link is ending, or may be soon: then the receives that are promised for it will
    /// be others'.
    pub fn leaves(&self) -> bool {
        // Nothing is promised for a link that is over.
        let ended =
            self.grants() == 0 || matches!(self.connection.state(), ConnectionState::Ended(_));
        ended || !self.life.is_open()
    }

    /// How many requests the peer may have under way.
    pub fn grants(&self) -> usize {
        self.grants.load(Ordering::Relaxed).into()
    }

    /// Messages to the same peer that are shorter go by others from here on.
    pub fn has_lanes(self: &Arc<Self>, shorter: [Arc<Self>; 2]) {
        for lane in &shorter {
            let _ = lane.beside.set(Box::new(Beside::Main(Arc::downgrade(self))));
        }
        let _ = self.beside.set(Box::new(Beside::Lanes { shorter, carries: Default::default() }));
    }

    /// Those that end with it.
    pub fn beside(&self) -> Vec<Arc<Self>> {
        match self.beside.get().map(Box::as_ref) {
            Some(Beside::Lanes { shorter, .. }) => shorter.to_vec(),
            Some(Beside::Main(main)) => main.upgrade().into_iter().collect(),
            None => Vec::new(),
        }
    }

    /// Whether there is another for the rest of the messages, for which this stands.
    pub fn is_for_shorter(&self) -> bool {
        Size::LESS.contains(&self.size)
    }

    /// Those for shorter messages.
    pub fn lanes(&self) -> &[Arc<Self>] {
        match self.beside.get().map(Box::as_ref) {
            Some(Beside::Lanes { shorter, .. }) => shorter,
            _ => &[],
        }
    }

    /// The right to carry something there, if that is how it is placed: one thing after the other.
    pub fn carries(&self) -> Option<&tokio::sync::Mutex<()>> {
        match self.beside.get().map(Box::as_ref) {
            Some(Beside::Lanes { carries, .. }) => Some(carries),
            _ => None,
        }
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
        self.peer().map_or(0, |peer| own.min(peer.payload as usize))
    }

    /// Whether the endpoint admits the tag that the peer shows.
    #[inline]
    pub fn is_admitted(&self) -> bool {
        self.admission.is_admitted()
    }

    #[inline]
    pub fn changes(&self) -> u32 {
        self.changes.load(Ordering::Acquire)
    }

    /// Something of it is other than it was: whoever waits looks again.
    #[inline]
    fn changed(&self, _out: &mut Out) {
        let changes = self.changes.load(Ordering::Relaxed).wrapping_add(1);
        self.changes.store(changes, Ordering::Release);
    }

    #[inline]
    pub fn out(&self) -> MutexGuard<'_, Out> {
        locked(&self.out)
    }

    /// Whether messages may share a send.
    #[inline]
    fn goes_together(&self) -> bool {
        self.endpoint.config.policy == Policy::Together && self.size == Size::Any
    }

    /// Sends a message: at once if it is alone, by what there is at hand then, or else with others
    /// that go soon. What is held goes when somebody waits for something of the bundle, when the
    /// messages are handled that it answers, when it is much; and else as soon as whoever sent it
    /// lets other tasks run.
    #[inline]
    fn send(
        self: &Arc<Self>,
        out: &mut Out,
        header: Header,
        content: Content<'_>,
        at_once: Option<HeldNic<'_>>,
    ) {
        let _semantics = span(Cost::Semantics);
        let granted = out.credits + out.taken;
        let Some(outbox) = self.outbox(out) else { return };
        let alone = at_once.is_some() && !outbox.holds();
        if alone || !self.goes_together() {
            let nic = at_once.unwrap_or(HeldNic::none());
            return outbox.send(header, content, &self.buffers, nic);
        }
        // A quarter of what either side may have under way now, so that both have something to do.
        let packed = (self.grants().max(granted.into()) / 4).max(2);
        if outbox.hold(header, content, (&self.buffers, packed)) {
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

    /// Where messages leave, which say from here on what has come so far.
    #[inline]
    fn outbox<'o>(&self, out: &'o mut Out) -> Option<&'o mut Outbox> {
        let outbox = out.outbox.as_mut()?;
        outbox.taken = Taken::of(self.taken.load(Ordering::Relaxed));
        Some(outbox)
    }

    /// Something has come. What was heard before that, and not used, is not used any more: who does
    /// not know how old a number is does not know what it means.
    #[inline]
    pub fn takes_one(&self) {
        self.taken.store(self.taken.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.heard.store(self.proved.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The peer says what it has taken.
    #[inline]
    pub fn hears_of(&self, taken: Taken) {
        self.heard.store(taken.0, Ordering::Relaxed);
    }

    /// Whether what the peer has taken since that was last looked at is worth it: before so much is
    /// under way that acknowledgements are asked for.
    #[inline]
    pub fn proves(&self) -> bool {
        let [heard, proved] =
            [&self.heard, &self.proved].map(|count| Taken::of(count.load(Ordering::Relaxed)));
        self.worth.is_some_and(|worth| heard.beyond(proved) >= worth.get())
    }

    /// Takes what the peer said that it has for acknowledged, if that is still what it said last.
    pub fn prove(&self, mut nic: HeldNic<'_>) {
        if !self.proves() {
            return;
        }
        let heard = self.heard.load(Ordering::Relaxed);
        self.proved.store(heard, Ordering::Relaxed);
        if let Some(outbox) = &mut self.out().outbox {
            outbox.proved(Taken::of(heard), &mut nic);
        }
    }

    /// A send is complete, or failed: then all that waits for it hears that the link is over.
    /// Whether somebody was woken.
    #[inline]
    pub fn sent(&self, source: u64, memory: Memory, failed: bool) -> bool {
        let mut out = self.out();
        if let Some(outbox) = &mut out.outbox {
            outbox.sent();
        }
        match (memory, source) {
            (Memory::Buf(buffer), 0) => self.buffers.give(buffer),
            (memory, 1..) if !failed => {
                let woke = out.sources.as_mut().and_then(|all| all.came(source as u16, memory));
                self.changed(&mut out);
                return woke.unwrap_or(false);
            }
            _ => {}
        }
        false
    }

    /// The link is over: all who wait are told. How many requests are lost of which nobody waits
    /// for the answer; none if it was over before.
    #[cold]
    pub fn ends(&self, ending: Ending) -> Option<usize> {
        let mut out = self.out();
        if out.ending.is_some() {
            return None;
        }
        out.ending = Some(Box::new(ending));
        let lost = std::mem::take(&mut out.plain);
        // The queue pair goes with its queue.
        let outbox = out.outbox.take();
        let mapped = out.mapped.take();
        let waiting = std::mem::take(&mut out.waiting);
        out.calls.end();
        out.sources.iter_mut().for_each(|sources| sources.end());
        let tasks = out.kept.as_mut().map(|kept| kept.end());
        self.changed(&mut out);
        drop(out);
        drop((outbox, mapped));
        tasks.iter().flatten().for_each(AbortHandle::abort);
        self.own.iter().for_each(|own| own.close());
        let queue = waiting.into_iter().flat_map(|waiting| waiting.queue);
        queue.for_each(|(_, waker)| waker.wake());
        Some(lost.into())
    }

    pub fn ending(&self) -> Option<Ending> {
        self.out().ending.as_deref().cloned()
    }

    /// That the peer has gone, if it has.
    #[cold]
    pub fn gone(&self, out: &Out) -> Option<SendError> {
        let ending = out.ending.as_deref().cloned()?;
        Some(SendError::Gone { peer: self.peer_text(), ending })
    }

    #[inline]
    fn stands(&self, out: &Out) -> Result<(), SendError> {
        if out.ending.is_none() { Ok(()) } else { self.gone(out).map_or(Ok(()), Err) }
    }

    /// Where so much is placed at an offset of the peer's segment.
    #[inline]
    pub fn locate(&self, out: &Out, offset: u64, len: u64) -> Result<RemoteMemory, SendError> {
        out.segment.at(offset, len).map_err(|_| {
            let (peer, room) = (self.peer_text(), out.segment.len());
            SendError::Segment { peer, offset, len, room }
        })
    }
}

impl Out {
    /// Whether the link is not over.
    pub fn stands(&self) -> bool {
        self.ending.is_none()
    }

    /// This side's segment is to be lent to the peer. Whether it was not before.
    pub fn lends(&mut self) -> bool {
        !std::mem::replace(&mut self.lent, true)
    }

    /// The peer's segment is mapped, as long as the link stands.
    pub fn maps(&mut self, mapped: Mapped) {
        if self.ending.is_none() {
            self.mapped = Some(Box::new(mapped));
        }
    }
}
