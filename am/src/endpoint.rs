//! Endpoints: a process's places in virtual networks.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorbell_verbs::{Region, RegisterError, Registered, Rights, SharedMemory};
use tokio::sync::broadcast;
use tokio::task::JoinSet;

use crate::arguments::Arguments;
use crate::builder::EndpointBuilder;
use crate::bundle::{Bundle, Owner};
use crate::error::{CallError, Called, MapError, OpenError, SendError};
use crate::event::Event;
use crate::handlers::{Handlers, RequestId, Tables};
use crate::kinds::{Callable, Notice};
use crate::links::{Core, accept, watch};
use crate::name::{Name, NameError};
use crate::peer::Peer;
use crate::tag::{Admits, Tag};

/// How the messages that an endpoint sends are carried.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Policy {
    /// Short messages to one peer that have company share a send; and what is placed is told of by
    /// the write itself, in metadata, where the peer takes that, there are no words, and it is a
    /// packet.
    #[default]
    Together,
    /// Each message is a send of its own, and what is placed is told of by one: as the third
    /// version of AMVIA had it, of Begel, Buonadonna, Culler and Gay. To compare.
    Apart,
    /// The same, but short messages, longer ones and the longest have a connection each, with
    /// receives and credits of their own: of the short ones as many as configured, of the others
    /// half and a quarter as many. So shorter ones may overtake longer ones. A
    /// [credit](Peer::credit) is for the longest. A reply, or a request to who has sent one, goes
    /// by the connection by which that came, and may be no longer than it allows: 64 bytes, 512, or
    /// the most. What is placed goes in messages, of buffers in copies, and the other side copies
    /// it where it belongs, one thing after the other; of what is given up meanwhile a part. Both
    /// endpoints are to have this policy. As AMVIA's first version had it. To compare.
    PerSize,
}

/// Who sees to it that what peers send finds a receive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Flow {
    /// The endpoint, which gives credits for what it has posted: nothing ever finds none.
    #[default]
    Credits,
    /// The NIC. Peers may have as many requests under way as they like, and each has this many
    /// receives, in a queue of its own. How many are left its NIC is told with each
    /// acknowledgement, and what finds none all the same is refused, and sent again some time
    /// later. To compare.
    Nic {
        /// How many each peer has.
        receives: usize,
    },
}

/// Memory in which peers may place payloads.
#[derive(Clone, Debug)]
pub enum SegmentMemory {
    /// Of this process alone: peers write there by NICs.
    Own(Region),
    /// Shared: peers on the same machine that are [admitted](EndpointConfig::admits) map it when
    /// they first place something, and what they place is one copy from then on. Each of them can
    /// read and alter all of it, for as long as it likes, whatever becomes of the tag: it is for
    /// peers that are trusted like oneself. See
    /// [`Connection::grant`](doorbell_verbs::Connection::grant).
    Shared(Arc<SharedMemory>),
}

impl SegmentMemory {
    /// The memory.
    pub fn region(&self) -> &Region {
        match self {
            Self::Own(region) => region,
            Self::Shared(memory) => memory.region(),
        }
    }
}

impl From<Region> for SegmentMemory {
    fn from(region: Region) -> Self {
        Self::Own(region)
    }
}

impl From<SharedMemory> for SegmentMemory {
    fn from(memory: SharedMemory) -> Self {
        Self::Shared(Arc::new(memory))
    }
}

/// What an endpoint is to be like.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The number by which others know it at its NIC's address. One that nobody can guess, if none
    /// is said.
    pub service: Option<u64>,
    /// Whom it admits: everybody, peers that show a [tag](Tag), or nobody. A [`map`](Endpoint::map)
    /// by others fails unless they are admitted.
    pub admits: Admits,
    /// The tag that it shows to the peers that it [connects](Endpoint::connect) to, if any.
    pub shows: Option<Tag>,
    /// The most requests that each peer may have under way to it: at least 1, at most 4095.
    pub credits: usize,
    /// How many of its [credits](Self::credits) a new peer has: at least 1. A peer that uses them
    /// gets another with each answer, up to all, as long as there are [receives](Self::receives):
    /// twice as many each time that all of them come back; and twice as many a tenth of a second
    /// after calls of most of them were left unanswered. The queue for what is sent to a peer is as
    /// deep as this, too; who streams payloads of kilobytes wants it to be as many as the credits.
    pub first_credits: usize,
    /// The longest payload of a message that it takes: from 512 bytes, which is what endpoints say
    /// to each other when they meet, to a MiB. It takes up to seven bytes more, for buffers are
    /// multiples of eight.
    pub payload: usize,
    /// Memory in which peers may place payloads.
    pub segment: Option<SegmentMemory>,
    /// The most asynchronous handlers that run at a time: at least 1.
    pub tasks: usize,
    /// The most peers that it maps, and so the places of its translation table: none for an
    /// endpoint that others map and that maps nobody.
    pub places: usize,
    /// The most receives, which bounds what it holds, each as long as a payload and some: at least
    /// 4. While half of them are free, a new peer has receives for its [first
    /// credits](Self::first_credits), and for as many answers; after that, for one request, and for
    /// more as it sends them. By [`Policy::PerSize`] there are so many for messages of each size.
    pub receives: usize,
    /// How long handlers of peers have to reply to what this endpoint sends: the peers see to it,
    /// and send back what is not answered by then, as [`NoReply`](crate::Undeliverable::NoReply).
    /// So a handler that is stuck holds no credit for ever. Callers that have less time have a
    /// [deadline](Self::deadline).
    pub patience: Duration,
    /// How long a call of this endpoint's waits for its answer, and whoever waits for a credit,
    /// unless [`Peer::within`] says otherwise. Without it a call waits until the
    /// [`patience`](Self::patience) is over, which is all the time that handlers have.
    pub deadline: Option<Duration>,
    /// How messages are carried.
    pub policy: Policy,
    /// Who sees to it that peers do not send too much.
    pub flow: Flow,
}

impl Default for EndpointConfig {
    /// Eight credits at first and up to 256, payloads of 4096 bytes, no segment, 64 asynchronous
    /// handlers, 1024 peers, half a minute of patience, no deadline.
    fn default() -> Self {
        Self {
            service: None,
            admits: Admits::Everybody,
            shows: None,
            credits: 256,
            first_credits: 8,
            payload: 4096,
            segment: None,
            tasks: 64,
            places: 1024,
            receives: 4096,
            patience: Duration::from_secs(30),
            deadline: None,
            policy: Policy::Together,
            flow: Flow::Credits,
        }
    }
}

/// A place from which requests are sent, and to which they come.
///
/// Clones are handles to the same. When the last is dropped, it is closed, and its peers are told.
/// What was sent and is not answered is lost then, if it was no farther:
/// [`unmap_all`](Self::unmap_all) waits for it.
///
/// An endpoint is closed, too, when the runtime ends in which its bundle was made.
#[derive(Clone)]
pub struct Endpoint(Arc<Place>);

/// What closes an endpoint.
struct Place {
    core: Arc<Core>,
    /// The tasks that end with the endpoint.
    _tasks: JoinSet<()>,
    /// Behind the endpoint, the bundle may go.
    bundle: Arc<Owner>,
}

impl Endpoint {
    /// Opens an endpoint of its own: a NIC on a device, and a bundle of that, as
    /// [configured](Self::builder) by default. When the last handle to the endpoint and to its
    /// [bundle](Self::bundle) is dropped, the device is closed, and its address can be opened again
    /// at once; only a handler, which may have the NIC in hand, leaves that to the runtime.
    ///
    /// The device is `shm` for processes of the same machine, `udp:192.0.2.7` or a host's name for
    /// any network, `packet:eth0` or `packet-v2:eth0` for raw Ethernet: see
    /// [`Nic::open`](doorbell_verbs::Nic::open).
    ///
    /// ```
    /// use doorbell::am::{Call, Endpoint, Handlers};
    ///
    /// const ADD: Call<(u64, u64), u64> = Call::new("add");
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let adds = Handlers::new().on(ADD, |_, (a, b)| a + b);
    /// let server = Endpoint::open("shm", adds).await?;
    /// let client = Endpoint::open("shm", Handlers::new()).await?;
    /// let peer = client.connect(server.name()).await?;
    /// assert_eq!(peer.call(ADD, (2, 3)).await?, 5);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the device can't be opened.
    pub async fn open<S>(device: &str, handlers: Handlers<S>) -> Result<Self, OpenError> {
        Self::builder().open(device, handlers).await
    }

    /// What an endpoint can be configured to be, from its credits to its NIC.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::default()
    }

    pub(crate) async fn open_in(
        bundle: Arc<Owner>,
        handlers: Tables,
        config: EndpointConfig,
    ) -> Result<Self, OpenError> {
        config.check()?;
        let payload = config.payload.next_multiple_of(8);
        let config = EndpointConfig { payload, ..config };
        let (core, listener) = Core::open(bundle.shared.clone(), handlers, config).await?;
        let (runtime, mut tasks) = (&core.shared.runtime, JoinSet::new());
        tasks.spawn_on(watch(core.clone(), core.shared.nic.events()), runtime);
        tasks.spawn_on(accept(core.clone(), listener), runtime);
        Ok(Self(Arc::new(Place { core, _tasks: tasks, bundle })))
    }

    /// Its name, by which others map it.
    pub fn name(&self) -> &Name {
        self.0.core.name()
    }

    /// Whom it admits.
    pub fn admits(&self) -> Admits {
        self.0.core.admits()
    }

    /// Changes whom it admits, from the next message on that is handled: what comes from peers that
    /// are not admitted any more goes back to them as [`WrongTag`](crate::Undeliverable::WrongTag).
    /// A peer that was told where the [segment](EndpointConfig::segment) is goes on writing there.
    /// What has come of a peer that has gone by now is handled as it was admitted then.
    pub fn set_admits(&self, admits: impl Into<Admits>) {
        self.0.core.set_admits(admits.into());
    }

    /// What happens to it from here on: peers that come and go. Of a program that does not take
    /// them, the oldest of 256 are lost.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.0.core.events.subscribe()
    }

    /// The NIC that the endpoint's bundle is on. For layers of this workspace that stand on Active
    /// Messages.
    #[doc(hidden)]
    pub fn nic(&self) -> &doorbell_verbs::Nic {
        &self.0.core.shared.nic
    }

    /// The bundle that serves it.
    pub fn bundle(&self) -> Bundle {
        Bundle::of(self.0.bundle.clone())
    }

    /// Registers memory, parts of which can then be [placed](Peer::place) at peers without a copy.
    ///
    /// # Errors
    /// When there are as many registrations as the NIC has room for.
    pub fn register(&self, region: Region) -> Result<Registered, RegisterError> {
        self.0.core.domain().register(region, Rights::LOCAL_WRITE)
    }

    /// How many receives it had at the most: never more than its peers may have requests under way
    /// to it, and it to them, and one.
    pub fn most_receives(&self) -> usize {
        self.0.core.most_receives()
    }

    /// The memory in which peers may place payloads.
    pub fn segment(&self) -> Option<&Registered> {
        self.0.core.segment()
    }

    /// Maps a peer at a place of the translation table: requests may be sent there until that place
    /// is [unmapped](Self::unmap) or the peer is gone, whatever is mapped and unmapped elsewhere
    /// meanwhile. The peer's endpoint must have the same handlers, as far as both have them.
    ///
    /// If there is a connection to the peer, because the peer has mapped this endpoint, or this
    /// endpoint maps the peer by the same tag elsewhere, the connection serves all of them.
    /// Otherwise a new one is made. If the NIC has no queue pair left because the numbers of
    /// connections that are over [rest](doorbell_verbs::Config::time_wait), this waits until one
    /// has rested, for up to 5 s.
    ///
    /// A future that is dropped has mapped nothing, and takes nothing from others.
    ///
    /// The tag is what the peer [admits](EndpointConfig::admits) this endpoint by: a [`Tag`], or
    /// `None` for an endpoint that admits everybody. It is shown with every message that is sent
    /// there.
    ///
    /// # Errors
    /// When the peer is not reached, is no endpoint, does not admit the tag, or has other handlers;
    /// or something is mapped there already.
    pub async fn map(
        &self,
        index: usize,
        name: &Name,
        tag: impl Into<Option<Tag>>,
    ) -> Result<Peer, MapError> {
        self.0.core.map(index, name, tag.into()).await.map(Peer::of)
    }

    /// Connects to a peer: maps it at the first place of the translation table that is free, and
    /// learns which handlers it has. A peer that is connected already is not connected to again; it
    /// stays so until [`Peer::disconnect`] or until the endpoint is dropped, whatever handles to it
    /// are. It shows the tag that the endpoint is [configured](EndpointConfig::shows) to show, if
    /// any.
    ///
    /// The name is what the peer's [`name`](Self::name) says, as a [`Name`] or as text.
    ///
    /// ```no_run
    /// # use doorbell::am::{Endpoint, MapError};
    /// # async fn connects(endpoint: Endpoint) -> Result<(), MapError> {
    /// let peer = endpoint.connect("udp:node7:5000#2a").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`map`](Self::map), and when the name is none.
    pub async fn connect<N>(&self, name: N) -> Result<Peer, MapError>
    where
        N: TryInto<Name>,
        N::Error: Into<NameError>,
    {
        let name = name.try_into().map_err(|why| MapError::Name(why.into()))?;
        let tag = self.0.core.config.shows;
        self.0.core.map_anywhere(&name, tag).await.map(Peer::of)
    }

    /// Maps one peer after the other, at places in a row.
    ///
    /// # Errors
    /// As [`map`](Self::map). Those before are mapped then.
    pub async fn map_all<'n>(
        &self,
        from: usize,
        names: impl IntoIterator<Item = &'n Name>,
        tag: impl Into<Option<Tag>>,
    ) -> Result<(), MapError> {
        let tag = tag.into();
        for (index, name) in (from..).zip(names) {
            self.map(index, name, tag).await?;
        }
        Ok(())
    }

    /// Takes a peer off the translation table, and waits until it has handled what was sent there
    /// before, as long as its handlers take. If the peer is mapped at no other place, and has not
    /// mapped this endpoint either, the connection ends, and what handles to the peer that were
    /// kept send meanwhile comes back.
    ///
    /// Whoever has less time than that drops the future: the unmap goes on in the background.
    ///
    /// # Errors
    /// When none is mapped there.
    pub async fn unmap(&self, index: usize) -> Result<(), SendError> {
        self.0.core.unmap(index).await
    }

    /// Takes all peers off, one after the other: so whoever is to end leaves nothing behind.
    pub async fn unmap_all(&self) {
        self.0.core.unmap_all().await;
    }

    /// The peer that is mapped at a place.
    ///
    /// # Errors
    /// When there is none.
    #[inline]
    pub fn peer(&self, index: usize) -> Result<Peer, SendError> {
        self.0.core.place(index).map(Peer::of).ok_or(SendError::NotMapped(index))
    }

    /// Sends a request to the peer at a place: see [`Peer::request`].
    ///
    /// # Errors
    /// As there, and when none is mapped there.
    #[inline]
    pub async fn request<A: Arguments>(
        &self,
        to: usize,
        id: RequestId<A>,
        arguments: A,
    ) -> Result<(), SendError> {
        self.peer(to)?.request(id, arguments).await
    }

    /// Sends a request with a payload to the peer at a place: see [`Peer::request_with`].
    ///
    /// # Errors
    /// As there, and when none is mapped there.
    #[inline]
    pub async fn request_with<A: Arguments>(
        &self,
        to: usize,
        id: RequestId<A>,
        arguments: A,
        payload: impl AsRef<[u8]>,
    ) -> Result<(), SendError> {
        self.peer(to)?.request_with(id, arguments, payload).await
    }

    /// Sends a notice to the peer at a place: see [`Peer::notify`].
    ///
    /// # Errors
    /// As there, and when none is mapped there.
    #[inline]
    pub async fn notify<A: Arguments>(
        &self,
        to: usize,
        notice: Notice<A>,
        arguments: A,
    ) -> Result<(), SendError> {
        self.peer(to)?.notify(notice, arguments).await
    }

    /// Calls a handler of the peer at a place: see [`Peer::call`].
    ///
    /// # Errors
    /// As there, and when none is mapped there.
    #[inline]
    pub async fn call<K: Callable>(
        &self,
        to: usize,
        kind: K,
        arguments: K::Arguments,
    ) -> Result<K::Answer, CallError> {
        match self.peer(to) {
            Ok(peer) => peer.call(kind, arguments).await,
            Err(why) => {
                let call = Called::new(format!("place {to}").into(), kind.index(), kind.name());
                Err(CallError::NotSent { call, why })
            }
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("name", &format_args!("{}", self.name())).finish()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.core.close();
    }
}
