//! A link: one connection to a peer's endpoint, with its credits, calls and retained requests.
//!
//! A request costs its sender a credit, which comes back with the answer. So the messages that can
//! come to an endpoint are bounded, by the credits that the endpoint granted and by the requests
//! that it sent itself, and the endpoint posts as many receives.
//!
//! The folder is told what programs send and what the NIC delivers, and turns both into posted
//! work, credits and woken tasks. Whatever needs more than one link, it leaves to the traits
//! [`Owner`] and [`Progress`], which the endpoint and the progress engine implement.

mod alive;
mod answers;
mod closing;
mod closing_counts;
mod credits;
mod identity;
mod lanes;
mod late;
mod opening;
mod outbox;
mod placing;
mod requests;
mod resting;
mod retained;
mod sends;

use std::num::NonZeroU16;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use doorbell_verbs::floor::{HeldNic, Prober};
use doorbell_verbs::{Connection, Data, Ending, Mapped, Memory, Nic, Registered, RemoteMemory};
use tokio::runtime::Handle;

use crate::config::EndpointConfig;
use crate::credits::{LateAnswers, PendingTable, RetainedRequests, Starving, Usage, Waiters};
use crate::error::{SendError, Undeliverable};
use crate::kinds::{Names, Reply};
use crate::receives::{Buffers, OwnReceives, Reassembly};
use crate::shared::{Counters, Deferral, Signals, Tasks};
use crate::wire::{Admission, Admits, Meeting, Nature, Size};
use closing_counts::ClosingCounts;
use outbox::Outbox;
pub(crate) use placing::fragments;

/// The answer to a call, or why there is none.
pub(crate) type Answer = Result<Reply, Undeliverable>;

/// The local endpoint as its links see it: configuration, resources, and ways to ask for more.
pub(crate) struct LocalEndpoint {
    /// The endpoint's number in its bundle.
    pub number: usize,
    pub config: EndpointConfig,
    pub nic: Nic,
    pub runtime: Handle,
    pub counters: Arc<Counters>,
    pub signals: Arc<Signals<Link>>,
    pub progress: Arc<dyn Progress>,
    pub owner: Weak<dyn Owner>,
    pub tasks: Arc<Tasks>,
    /// The rule by which the endpoint admits peers. The lock is held while a link's admission is
    /// decided.
    pub admits: Mutex<Admits>,
    /// The digest of the handlers whose places the program has chosen.
    pub digest: u64,
    /// The listing of the named handlers, which peers ask for.
    pub names: Vec<u8>,
    /// The named handlers of peers, once for all peers that have the same.
    pub peer_names: Mutex<Vec<Weak<Names>>>,
    /// The memory in which peers may place payloads.
    pub segment: Option<Registered>,
    /// Links that have credits, and no receive for an answer.
    pub starving: Starving<Link>,
}

/// The endpoint that owns a link, as far as the link asks it for anything.
pub(crate) trait Owner: Send + Sync {
    /// Ends a link if its connection has ended.
    fn check(&self, link: &Arc<Link>);

    /// Closes the endpoint because the runtime has ended that runs its tasks. Without these, nobody
    /// would notice that a peer has gone, and requests would run no asynchronous handlers.
    fn close_with_runtime(&self);

    /// Ends the endpoint's events, once all that has come is handled, because its NIC was closed and
    /// all links have ended by that.
    fn end_with_nic(&self);

    /// Takes receives back from idle peers, since a peer could use more than there are.
    fn recall_receives(self: Arc<Self>, receives: &Arc<Buffers>);

    /// Has the endpoint's receives rest once it is idle.
    fn rest_when_idle(self: Arc<Self>);

    /// Has the endpoint's receives rest, if no message has come or gone since this was called
    /// before. Returns whether they do.
    fn rests(&self) -> bool;

    /// Asks the link's peer to share its segment, and maps the segment if the peer does.
    fn map_segment(&self, link: Arc<Link>);

    /// Ends a link whose peer has sent more requests than it has credits for.
    fn end_overrun(&self, link: &Arc<Link>);

    /// Ends a link to make room for others. What was sent goes on to the peer for as long as the
    /// endpoint lingers.
    fn give_up(&self, link: &Arc<Link>);

    /// Has the program told that a link is over, all of whose messages are handled. Whoever listens
    /// is woken by a task, since the caller may hold locks.
    fn tell_departed(&self, link: &Arc<Link>);

    /// Takes the link's peer off the endpoint's translation table.
    fn disconnect<'l>(self: Arc<Self>, link: &'l Arc<Link>) -> Disconnecting<'l>;
}

/// A peer being taken off the translation table.
pub(crate) type Disconnecting<'l> =
    Pin<Box<dyn Future<Output = Result<(), SendError>> + Send + 'l>>;

/// The progress engine, as far as a waiting task asks it for anything.
pub(crate) trait Progress: Send + Sync {
    /// Handles what has come to the bundle. Returns whether a task was woken by that.
    fn look<'r>(&self, nic: HeldNic<'r>, awaits: Option<Awaiting<'r>>) -> bool;
}

/// The call whose answer the looking task waits for. The answer is put right there, and not into
/// the link's reply table.
pub(crate) struct Awaiting<'r> {
    pub link: &'r Arc<Link>,
    pub call: u16,
    pub answer: &'r mut Option<Answer>,
}

/// A connection to a peer's endpoint, with all that belongs to it.
pub(crate) struct Link {
    pub endpoint: Arc<LocalEndpoint>,
    pub connection: Connection,
    /// The size class of messages that the link carries.
    pub size: Size,
    /// The receives for this size class, and buffers of the same length.
    pub buffers: Arc<Buffers>,
    /// The users of the link on this side, and whether it may end.
    pub usage: Usage,
    /// The parts that only links of some policies have. Allocated apart, since most links have none
    /// of them.
    rare: OnceLock<Box<Rare>>,
    /// The properties of the peer from its greeting, once the link is open.
    peer: OnceLock<Nature>,
    /// The greetings and queue pairs of both sides, which proofs over this connection are about. Set
    /// before the peer's properties.
    meeting: OnceLock<Meeting>,
    /// Whether both sides have the same handlers at the places that programs have chosen.
    same_handlers: AtomicBool,
    /// The peer's named handlers, once one of them was called.
    names: OnceLock<Arc<Names>>,
    /// The tag that the peer shows, and whether the endpoint admits it.
    pub admission: Admission,
    /// How the poller handles the link's messages: a [`Stage`](resting::Stage).
    stage: AtomicU8,
    /// Whether the link was cut off, so that nothing more of it is handled.
    cut_off: AtomicBool,
    /// Whether the link is over, and all its messages are handled.
    departed: AtomicBool,
    /// The number by which a layer above knows the peer; 0 if it has given none.
    noted: AtomicU64,
    /// The requests of this side that have a receive for their answer, unless that is recalled. At
    /// least one, for which this side may have to wait.
    own_limit: u16,
    /// The credits that are granted to the peer. No more receives are promised for its requests.
    grants: AtomicU16,
    /// The count of received requests, which only the poller writes.
    received: AtomicU32,
    /// The count of answered requests, written under the lock of the sending side.
    answered: AtomicU32,
    /// The count of requests that are done without a reply, and that the peer was not told of yet:
    /// no more than the peer may have under way.
    unreported: AtomicU16,
    /// The count of received requests when it was last asked whether the link is idle.
    received_at_mark: AtomicU32,
    /// Whether credits are being recalled from the peer.
    recalled: AtomicBool,
    /// The count of received messages, which this side's messages acknowledge. Only the poller
    /// writes it.
    messages: AtomicU16,
    /// The piggybacked acknowledgement heard last. Only the poller writes it.
    ack_heard: AtomicU16,
    /// The piggybacked acknowledgement used last. Only the poller writes it.
    ack_used: AtomicU16,
    /// By how many messages an acknowledgement must be ahead to be used; `None` where
    /// acknowledgements are not piggybacked.
    ack_step: Option<NonZeroU16>,
    /// Counts what may end a task's waiting: answers, credits, the end.
    changes: AtomicU32,
    /// The number of tasks that sleep until the peer does something.
    sleepers: AtomicU32,
    /// The task that asks the peer for signs of life.
    prober: Prober,
    /// The address in the peer's name, where this side has mapped the peer.
    address: OnceLock<Arc<str>>,
    sending: Mutex<SendSide>,
    /// The link's own receive queue, where receives are not shared by all links.
    own_receives: Option<Box<OwnReceives>>,
}

/// The sending side of a link, under its lock.
pub(crate) struct SendSide {
    /// The send queue, while the link is open.
    outbox: Option<Outbox>,
    /// Why the link is over, if it is.
    ending: Option<Box<Ending>>,
    /// Whether the poller and the program know that the link is open. Only then may the end of the
    /// connection end the link, or messages that came first would belong to no known link.
    pub announced: bool,
    /// The peer's segment, as the peer offers it.
    pub segment: RemoteMemory,
    /// The peer's segment, mapped into this process.
    mapped: Option<Box<Mapped>>,
    /// Whether the peer was asked to share its segment.
    asked_to_map: bool,
    /// Whether the endpoint's segment was shared with the peer.
    granted_segment: bool,
    /// The credits that are left for answers to requests that have given their credits back: one, as
    /// long as there are such requests, if this side has more than one.
    left_for_answers: u16,
    /// Whether a task waits for a credit, or a message to the peer's endpoint does.
    awaits_credit: bool,
    /// The credits that are left. Like the counts that follow, no more than
    /// [`MOST_CREDITS`](crate::wire::MOST_CREDITS).
    credits: u16,
    /// Requests under way that are no calls.
    one_way: u16,
    /// Requests under way, and those that a credit was taken for.
    under_way: u16,
    /// The least receives that stay promised for answers.
    least_leases: u16,
    /// Receives that are promised for answers.
    leases: u16,
    /// How many messages have gone and come that cost more while the receives rest, since these
    /// went to rest.
    uses: u8,
    /// The count of received requests when a request that is no call was sent last.
    heard: u32,
    /// The count of requests, which a credit was taken for. It wraps around, and there are never as
    /// many under way.
    asked: u16,
    /// The counts of requests at which each side began to end the connection. Allocated apart, since
    /// most links are not being closed.
    closing: Option<Box<ClosingCounts>>,
    /// Calls under way, and answers that have come.
    pub calls: PendingTable<Answer>,
    /// Requests that the peer answers late. Allocated apart, since most peers answer soon.
    late: Option<Box<LateAnswers<Answer>>>,
    /// Memory that is being placed. Allocated apart, since most peers never place anything.
    pub placements: Option<Box<PendingTable<Memory>>>,
    /// Requests that handlers have retained. Allocated apart, since most peers never have any.
    pub retained: Option<Box<RetainedRequests>>,
    /// Tasks that wait for a credit. Allocated apart, since most links never have any.
    waiters: Option<Box<Waiters>>,
}

/// The lock of a link's sending side, while a thread holds it. Tasks that are woken under the lock
/// are woken behind it: the fields are dropped in their order.
pub(crate) struct Sending<'l> {
    out: MutexGuard<'l, SendSide>,
    _deferral: Deferral,
}

impl Deref for Sending<'_> {
    type Target = SendSide;

    #[inline]
    fn deref(&self) -> &SendSide {
        &self.out
    }
}

impl DerefMut for Sending<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut SendSide {
        &mut self.out
    }
}

/// The parts of a link that only links of some policies have.
#[derive(Default)]
struct Rare {
    /// The siblings of the link, where each size class has a link of its own.
    siblings: OnceLock<Siblings>,
    /// A payload that the peer places by messages. Only the poller touches it.
    reassembly: Mutex<Reassembly>,
}

/// The siblings of a link: the links to the same peer for other size classes.
enum Siblings {
    /// The link is the one for the longest messages.
    Lanes {
        /// The links for shorter messages, the shortest first.
        shorter: [Arc<Link>; 2],
        /// Held while a payload is placed by messages, so that one follows another.
        placing: tokio::sync::Mutex<()>,
    },
    /// The link is for shorter messages, and the given one for the longest.
    Main(Weak<Link>),
}

/// Data to be placed in the peer's segment.
pub(crate) struct Placed {
    pub offset: u64,
    pub data: Data,
    /// The part of the peer's segment that the data goes to.
    pub memory: RemoteMemory,
}

/// The handler that a request or reply is for, and the call that it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct To {
    pub handler: u16,
    pub call: u16,
}
