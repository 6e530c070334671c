//! Endpoints: a process's places in virtual networks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use doorbell_verbs::{
    Domain, Ending, Incoming, Listener, Queues, QueuesConfig, Region, RegisterError, Registered,
    RemoteAddr, RemoteMemory, Rights, Rkey, ServiceId, Unconnected,
};
use tokio::task::AbortHandle;

use crate::buffers::{Buffers, locked};
use crate::bundle::{Bundle, Owner, Shared};
use crate::error::{CallError, MapError, OpenError, SendError};
use crate::handlers::{Handlers, RequestId};
use crate::handling::News;
use crate::link::Link;
use crate::listing::Difference;
use crate::message::Reply;
use crate::name::{Name, Tag};
use crate::peer::Peer;
use crate::tasks::Tasks;
use crate::wire::{Ask, Hello, MOST_CREDITS};
use crate::words::{Arguments, MOST_WORDS};

/// What an endpoint is to be like.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The number by which others know it at its NIC's address. One that nobody can guess, if none is
    /// said.
    pub service: Option<u64>,
    /// What peers must show.
    pub tag: Tag,
    /// The most requests that each peer may have under way to it: at least 1, at most 4095.
    pub credits: usize,
    /// The longest payload of a message that it takes: 512 at least.
    pub payload: usize,
    /// Memory in which peers may place payloads.
    pub segment: Option<Region>,
    /// The most asynchronous handlers that run at a time.
    pub tasks: usize,
    /// The most peers that it maps, and so the places of its translation table.
    pub places: usize,
    /// The most receives, which bounds what it holds, each as long as a payload and some. While half of
    /// them are free, a new peer has receives for all its [credits](Self::credits), and for as many
    /// answers; after that, for one request, and for more as it sends them.
    pub receives: usize,
    /// How long handlers of peers have to reply.
    pub patience: Duration,
}

impl Default for EndpointConfig {
    /// Eight credits, payloads of 4096 bytes, no segment, 64 asynchronous handlers, 1024 peers, half a
    /// minute.
    fn default() -> Self {
        Self {
            service: None,
            tag: Tag::ANY,
            credits: 8,
            payload: 4096,
            segment: None,
            tasks: 64,
            places: 1024,
            receives: 4096,
            patience: Duration::from_secs(30),
        }
    }
}

/// A place from which requests are sent, and to which they come.
///
/// Clones are handles to the same. When the last is dropped, it is closed, and its peers are told.
#[derive(Clone)]
pub struct Endpoint(Arc<Place>);

/// What closes an endpoint.
struct Place {
    core: Arc<Core>,
    accepts: Mutex<Option<AbortHandle>>,
    /// Behind the endpoint, the bundle may go.
    bundle: Arc<Owner>,
}

/// What an endpoint shares with its links.
pub(crate) struct Core {
    pub shared: Arc<Shared>,
    pub number: usize,
    pub config: EndpointConfig,
    pub buffers: Buffers,
    pub tasks: Tasks,
    tag: AtomicU64,
    domain: Domain,
    name: Name,
    digest: u64,
    /// What its handlers are, for others to compare.
    listing: Vec<Vec<u8>>,
    segment: Option<Registered>,
    translation: RwLock<Vec<Option<Arc<Link>>>>,
    /// All links, of those who mapped this, too.
    links: Mutex<Vec<Arc<Link>>>,
    /// Those that have credits, and no receive for an answer.
    starving: Mutex<Vec<Arc<Link>>>,
    any_starving: AtomicBool,
}

impl Core {
    #[inline]
    pub fn tag(&self) -> Tag {
        Tag(self.tag.load(Ordering::Relaxed))
    }

    /// What is said to whom it maps by a tag, or who maps it.
    fn hello(&self, tag: Tag, link: &Link) -> Hello {
        let nowhere = RemoteMemory::new(RemoteAddr(0), Rkey(0), 0);
        Hello {
            unique: self.config.service.is_none(),
            metadata: true,
            service: self.name.service().0,
            tag,
            credits: link.grants() as u16,
            payload: self.config.payload as u32,
            handlers: self.digest,
            patience: u32::try_from(self.config.patience.as_millis()).unwrap_or(u32::MAX),
            segment: self.segment.as_ref().map_or(nowhere, Registered::remote),
        }
    }

    /// A queue pair, and a link for it that its first messages find.
    fn prepare(
        self: &Arc<Self>,
        asked: bool,
    ) -> Result<(Unconnected<Queues>, Arc<Link>), OpenError> {
        let unconnected =
            self.shared.unconnected(&self.domain, &self.buffers, self.config.credits)?;
        let receives = self.receives()?;
        let link = Arc::new(Link::new(self.clone(), unconnected.qpn(), asked, receives));
        self.shared.tell(News::Link(link.clone()));
        locked(&self.links).push(link.clone());
        Ok((unconnected, link))
    }

    /// How many receives there are for a new link: for its peer's requests, and for the answers to its
    /// own. While there is plenty, as many as there may be; or else one, and more as it is used.
    fn receives(&self) -> Result<(usize, usize), OpenError> {
        let (buffers, most) = (&self.buffers, self.config.credits);
        let plenty = buffers.is_plenty(2 * most);
        let grants = buffers.promise_to_peer(if plenty { most } else { 1 });
        let lease = if plenty { buffers.promise_for_answers(most) } else { 0 };
        let found = self.config.receives;
        let expected = "one for each peer, at least, and one more";
        let none = OpenError::Config { what: "EndpointConfig::receives", found, expected };
        if grants == 0 { Err(none) } else { Ok((grants, lease)) }
    }

    /// How much room there is in the segment.
    pub fn room(&self) -> u64 {
        self.segment.as_ref().map_or(0, |segment| segment.region().len() as u64)
    }

    /// A link has credits, but no receive for an answer.
    pub fn starves(&self, link: Arc<Link>) {
        let mut starving = locked(&self.starving);
        if !starving.iter().any(|there| Arc::ptr_eq(there, &link)) {
            starving.push(link);
        }
        drop(starving);
        self.any_starving.store(true, Ordering::SeqCst);
    }

    /// There are receives again.
    pub fn feed(&self) {
        if self.any_starving.swap(false, Ordering::SeqCst) {
            let starving = std::mem::take(&mut *locked(&self.starving));
            starving.into_iter().for_each(|link| link.fed());
        }
    }

    /// The link's connection stands: until it ends, there are receives for it.
    fn opens(self: &Arc<Self>, link: &Arc<Link>, queues: Queues) {
        let connection = queues.connection.clone();
        link.opens(queues);
        self.shared.tell(News::Opened(link.clone()));
        let (core, link) = (self.clone(), link.clone());
        self.shared.runtime.spawn(async move {
            let ending = connection.ended().await;
            core.ends(&link, ending);
        });
    }

    /// A link is over, if it was not before.
    fn ends(&self, link: &Arc<Link>, ending: Ending) {
        let Some(lost) = link.ends(ending) else { return };
        locked(&self.links).retain(|there| !Arc::ptr_eq(there, link));
        self.shared.tell(News::LinkGone(link.clone(), lost));
        self.buffers.release(link.promised());
        self.feed();
    }

    async fn accept(self: Arc<Self>, incoming: Incoming) {
        let Some(hello) = Hello::from_bytes(incoming.private()) else {
            let _ = incoming.reject(b"no hello of Active Messages of this version");
            return;
        };
        let Ok((unconnected, link)) = self.prepare(false) else { return };
        // Whoever maps the peer from here on finds this, and no second connection is made.
        link.hears(hello);
        match unconnected.accept(incoming, &self.hello(Tag::NONE, &link).to_bytes()).await {
            Ok((queues, _)) => self.opens(&link, queues),
            Err(why) => {
                tracing::debug!(qpn = %link.qpn, %why, "a peer was not accepted");
                self.ends(&link, Ending::Forgotten);
            }
        }
    }

    async fn connect(self: &Arc<Self>, name: &Name, tag: Tag) -> Result<Arc<Link>, MapError> {
        let text = || name.to_string();
        let (unconnected, link) = self.prepare(true).map_err(|why| match why {
            OpenError::Resources(why) => MapError::Resources { name: text(), why },
            other => MapError::Receives { name: text(), why: other.to_string() },
        })?;
        let hello = self.hello(tag, &link).to_bytes();
        let found = match unconnected.connect(name.address(), name.service(), &hello).await {
            Ok((queues, private)) => match Hello::from_bytes(&private) {
                Some(hello) => {
                    link.hears(hello);
                    self.opens(&link, queues);
                    return Ok(link);
                }
                None => MapError::NoEndpoint(text()),
            },
            Err(why) => MapError::Connect { name: text(), why },
        };
        self.ends(&link, Ending::Forgotten);
        Err(found)
    }
}

impl Shared {
    fn unconnected(
        &self,
        domain: &Domain,
        buffers: &Buffers,
        credits: usize,
    ) -> Result<Unconnected<Queues>, OpenError> {
        let config = QueuesConfig { send_depth: 2 * credits, ..self.queues.clone() };
        Ok(domain.queues(&config.share(buffers.queue()))?)
    }
}

impl Endpoint {
    pub(crate) async fn open(
        bundle: Arc<Owner>,
        handlers: Handlers,
        config: EndpointConfig,
    ) -> Result<Self, OpenError> {
        check(&config)?;
        let payload = config.payload.max(LISTED).next_multiple_of(8);
        let config = EndpointConfig { payload, ..config };
        let shared = bundle.shared.clone();
        let domain = shared.nic.domain();
        let queue = shared.shared_receives(&domain, config.receives)?;
        // A packet's, so that it takes what shares one.
        let size = (8 * (MOST_WORDS + 2) + config.payload).max(PACKET);
        let buffers = Buffers::new(queue, size, config.receives);
        let service = config.service.unwrap_or_else(unguessable);
        let listener = shared.nic.listen(ServiceId(service)).await?;
        let segment = match &config.segment {
            Some(region) => Some(domain.register(region.clone(), Rights::REMOTE_WRITE)?),
            None => None,
        };
        let core = Arc::new(Core {
            number: shared.number(),
            tasks: Tasks::new(shared.runtime.clone(), config.tasks),
            listing: handlers.listing(LISTED),
            tag: AtomicU64::new(config.tag.0),
            name: Name::at(shared.nic.address().to_string(), service),
            digest: handlers.digest(),
            translation: RwLock::default(),
            links: Mutex::default(),
            starving: Mutex::default(),
            any_starving: AtomicBool::new(false),
            shared,
            config,
            buffers,
            domain,
            segment,
        });
        core.shared.tell(News::Endpoint(core.number, handlers));
        let accepts = core.shared.runtime.spawn(accept(core.clone(), listener)).abort_handle();
        let accepts = Mutex::new(Some(accepts));
        Ok(Self(Arc::new(Place { core, accepts, bundle })))
    }

    /// Its name, by which others map it.
    pub fn name(&self) -> &Name {
        &self.0.core.name
    }

    /// What peers must show.
    pub fn tag(&self) -> Tag {
        self.0.core.tag()
    }

    /// Changes what peers must show, from the next message on that is handled.
    pub fn set_tag(&self, tag: Tag) {
        self.0.core.tag.store(tag.0, Ordering::Relaxed);
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
        self.0.core.domain.register(region, Rights::LOCAL_WRITE)
    }

    /// How many receives it had at the most: never more than its peers may have requests under way to
    /// it, and it to them, and one.
    pub fn most_receives(&self) -> usize {
        self.0.core.buffers.most()
    }

    /// The memory in which peers may place payloads.
    pub fn segment(&self) -> Option<&Registered> {
        self.0.core.segment.as_ref()
    }

    /// Maps a peer at a place of the translation table: requests may be sent there from then on. Its
    /// endpoint must have the same handlers, as far as both have them.
    ///
    /// If the peer has mapped this endpoint before, the two have a connection, which serves both.
    ///
    /// # Errors
    /// When the peer is not reached, is no endpoint, or has other handlers; or something is mapped
    /// there already.
    pub async fn map(&self, index: usize, name: &Name, tag: Tag) -> Result<Peer, MapError> {
        let core = &self.0.core;
        let most = core.config.places;
        if index >= most {
            return Err(MapError::Place { index, most });
        }
        if core.place(index).is_some() {
            return Err(MapError::Taken(index));
        }
        let link = match core.link_of(name) {
            Some(link) => {
                let lost = |why| MapError::Lost { name: name.to_string(), why };
                core.shows(&link, tag).await.map_err(lost)?;
                link
            }
            None => core.connect(name, tag).await?,
        };
        core.compare(&link, name).await?;
        let mut table = core.translation.write().unwrap_or_else(PoisonError::into_inner);
        if table.len() <= index {
            table.resize(index + 1, None);
        }
        if table[index].is_some() {
            return Err(MapError::Taken(index));
        }
        table[index] = Some(link.clone());
        Ok(Peer::of(link))
    }

    /// Maps one peer after the other, at places in a row.
    ///
    /// # Errors
    /// As [`map`](Self::map). Those before are mapped then.
    pub async fn map_all<'n>(
        &self,
        from: usize,
        names: impl IntoIterator<Item = &'n Name>,
        tag: Tag,
    ) -> Result<(), MapError> {
        for (index, name) in (from..).zip(names) {
            self.map(index, name, tag).await?;
        }
        Ok(())
    }

    /// Takes a peer off the translation table, and ends the connection if this endpoint has asked for
    /// it. What is under way comes back.
    ///
    /// # Errors
    /// When none is mapped there.
    pub async fn unmap(&self, index: usize) -> Result<(), SendError> {
        let core = &self.0.core;
        let link = {
            let mut table = core.translation.write().unwrap_or_else(PoisonError::into_inner);
            table.get_mut(index).and_then(Option::take).ok_or(SendError::NotMapped(index))?
        };
        let other = |other: &Arc<Link>| Arc::ptr_eq(other, &link);
        let elsewhere = core.places().any(|there| other(&there));
        if let (true, false, Some(connection)) = (link.asked, elsewhere, link.connection()) {
            link.flush();
            let ended = connection.disconnect(&[]).await;
            let left = Ending::Left { private: Vec::new() };
            core.ends(&link, ended.unwrap_or(left));
        }
        Ok(())
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
        payload: &[u8],
    ) -> Result<(), SendError> {
        self.peer(to)?.request_with(id, arguments, payload).await
    }

    /// Calls a handler of the peer at a place: see [`Peer::call`].
    ///
    /// # Errors
    /// As there, and when none is mapped there.
    #[inline]
    pub async fn call<A: Arguments>(
        &self,
        to: usize,
        id: RequestId<A>,
        arguments: A,
    ) -> Result<Reply, CallError> {
        self.peer(to)?.call(id, arguments).await
    }
}

impl Core {
    #[inline]
    fn place(&self, index: usize) -> Option<Arc<Link>> {
        let table = self.translation.read().unwrap_or_else(PoisonError::into_inner);
        table.get(index)?.clone()
    }

    /// All that are mapped.
    fn places(&self) -> impl Iterator<Item = Arc<Link>> {
        let table = self.translation.read().unwrap_or_else(PoisonError::into_inner);
        table.iter().flatten().cloned().collect::<Vec<_>>().into_iter()
    }

    /// The link to an endpoint that has mapped this one, if nobody else can have its name.
    fn link_of(&self, name: &Name) -> Option<Arc<Link>> {
        let is = |hello: &Hello| hello.unique && hello.service == name.service().0;
        locked(&self.links).iter().find(|link| link.hello().is_some_and(is)).cloned()
    }

    /// Tells a peer by which tag it is called from now on.
    async fn shows(&self, link: &Arc<Link>, tag: Tag) -> Result<(), CallError> {
        let ask: RequestId<(u64, u64)> = RequestId::system();
        Peer::of(link.clone()).call(ask, (Ask::Show as u64, tag.0)).await.map(drop)
    }

    /// Makes sure that a peer has the same handlers, as far as both have them.
    async fn compare(&self, link: &Arc<Link>, name: &Name) -> Result<(), MapError> {
        if link.hello().is_some_and(|hello| hello.handlers == self.digest) {
            return Ok(());
        }
        let peer = Peer::of(link.clone());
        for piece in &self.listing {
            let ask: RequestId<u64> = RequestId::system();
            let answer = peer.call_with(ask, Ask::Compare as u64, piece).await;
            let lost = |why| MapError::Lost { name: name.to_string(), why };
            if let Some(found) = Difference::from_bytes(answer.map_err(lost)?.payload()) {
                let Difference { which, index, name: there } = found;
                return Err(MapError::Handlers { table: which.name(), index, there });
            }
        }
        Ok(())
    }
}

const PACKET: usize = 4096;

/// The bytes of a listing of handlers, of which one has a name of 255 at the most: every endpoint takes
/// payloads as long.
const LISTED: usize = 512;

/// Takes up whoever maps the endpoint.
async fn accept(core: Arc<Core>, mut listener: Listener) {
    loop {
        let incoming = listener.accept().await;
        core.shared.runtime.spawn(core.clone().accept(incoming));
    }
}

/// A number that nobody can guess.
fn unguessable() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    // What the standard library seeds from the system.
    RandomState::new().hash_one(0)
}

fn check(config: &EndpointConfig) -> Result<(), OpenError> {
    let &EndpointConfig { credits, payload, tasks, receives, .. } = config;
    let wrong = |what, found, expected| Err(OpenError::Config { what, found, expected });
    match () {
        () if !(1..=MOST_CREDITS).contains(&credits) => {
            wrong("EndpointConfig::credits", credits, "from 1 to 4095")
        }
        () if payload > 1 << 20 => wrong("EndpointConfig::payload", payload, "a MiB at the most"),
        () if tasks == 0 => wrong("EndpointConfig::tasks", tasks, "at least 1"),
        () if receives < 4 => wrong("EndpointConfig::receives", receives, "at least 4"),
        () => Ok(()),
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(accepts) = locked(&self.accepts).take() {
            accepts.abort();
        }
        let core = &self.core;
        core.shared.tell(News::EndpointGone(core.number));
        core.translation.write().unwrap_or_else(PoisonError::into_inner).clear();
        let links = locked(&core.links).clone();
        for link in links {
            link.flush();
            core.ends(&link, Ending::Left { private: Vec::new() });
        }
    }
}
