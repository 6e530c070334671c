//! An endpoint's links: made, found, and ended.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use doorbell_verbs::{
    AsyncEvent, Domain, Ending, Incoming, Listener, Private, Queues, QueuesConfig, Registered,
    RemoteAddr, RemoteMemory, Rights, Rkey, ServiceId, Stand, Unconnected,
};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::{Instant, timeout};

use crate::buffers::{Buffers, locked};
use crate::bundle::Shared;
use crate::endpoint::{EndpointConfig, Flow, Policy, SegmentMemory};
use crate::error::{CallError, MapError, OpenError, SendError};
use crate::event::Event;
use crate::handlers::Handlers;
use crate::link::Link;
use crate::listing::Difference;
use crate::message::Reply;
use crate::name::{Name, Tag};
use crate::news::{News, Parting};
use crate::outbox::Content;
use crate::pack;
use crate::peer::{self, Peer};
use crate::recall::{BETWEEN_RECALLS, PATIENCE, recall};
use crate::sizes::Size;
use crate::tasks::Tasks;
use crate::wire::{Ask, Hello, MOST_CREDITS, Nature, SYSTEM};
use crate::words::MOST_WORDS;

/// How many events are kept for who listens.
const EVENTS: usize = 256;

/// No memory.
pub(crate) const NOWHERE: RemoteMemory = RemoteMemory::new(RemoteAddr(0), Rkey(0), 0);

/// Memory as a message's words, and back.
pub(crate) fn words(memory: RemoteMemory) -> [u64; 3] {
    [memory.address().0, memory.rkey().0.into(), memory.len()]
}

fn memory(mut words: impl Iterator<Item = u64>) -> Option<RemoteMemory> {
    let (address, rkey, len) = (words.next()?, words.next()?, words.next()?);
    if words.next().is_some() {
        return None;
    }
    Some(RemoteMemory::new(RemoteAddr(address), Rkey(rkey.try_into().ok()?), len))
}

/// That this side has ended a link.
pub(crate) fn left() -> Ending {
    Ending::Left { private: Private::default() }
}

/// A link that is just being made: if nobody has it stay, it is over.
struct Fresh {
    link: Arc<Link>,
    stays: bool,
}

impl Fresh {
    fn stays(mut self) -> Arc<Link> {
        self.stays = true;
        self.link.clone()
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // Another may have found it, and mapped it meanwhile.
        if !self.stays && !self.link.endpoint.maps(&self.link) {
            self.link.endpoint.ends(&self.link, left());
        }
    }
}

/// What an endpoint shares with its links.
pub(crate) struct Core {
    pub shared: Arc<Shared>,
    pub number: usize,
    pub config: EndpointConfig,
    /// Receives of those links whose messages may be as long as they like, and of shorter ones.
    buffers: Arc<Buffers>,
    shorter: Mutex<[Option<Arc<Buffers>>; 2]>,
    pub tasks: Tasks,
    tag: AtomicU64,
    domain: Domain,
    name: Name,
    digest: u64,
    /// What its handlers are, for others to compare.
    listing: Vec<Vec<u8>>,
    segment: Option<Registered>,
    translation: RwLock<Vec<Option<Arc<Link>>>>,
    /// All links, of those who mapped this, too; none when it is closed.
    links: Mutex<Option<Vec<Arc<Link>>>>,
    /// Those that have credits, and no receive for an answer.
    starving: Mutex<Vec<Arc<Link>>>,
    any_starving: AtomicBool,
    /// What happens, for whoever listens.
    pub events: broadcast::Sender<Event>,
    /// Whether credits are just being recalled.
    recalling: AtomicBool,
}

impl Core {
    /// An endpoint's, which the poller knows from here on; and who maps it.
    pub async fn open(
        shared: Arc<Shared>,
        handlers: Handlers,
        config: EndpointConfig,
    ) -> Result<(Arc<Self>, Listener), OpenError> {
        let domain = shared.nic.domain();
        let queue = shared.shared_receives(&domain, config.receives)?;
        // A packet's, so that it takes what shares one.
        let len = room(config.payload).max(pack::MOST);
        let service = config.service.unwrap_or_else(unguessable);
        let listener = shared.nic.listen(ServiceId(service)).await?;
        let segment = match &config.segment {
            Some(SegmentMemory::Own(region)) => {
                Some(domain.register(region.clone(), Rights::REMOTE_WRITE)?)
            }
            Some(SegmentMemory::Shared(memory)) => {
                Some(domain.register_shared(memory.clone(), Rights::REMOTE_WRITE)?)
            }
            None => None,
        };
        let core = Self {
            number: shared.number(),
            buffers: Arc::new(Buffers::new(queue, len, config.receives)),
            shorter: Mutex::default(),
            tasks: Tasks::new(shared.runtime.clone(), config.tasks, most_requests(&config)),
            tag: AtomicU64::new(config.tag.0),
            domain,
            name: Name::at(shared.nic.address().to_string(), service),
            digest: handlers.digest(),
            listing: handlers.listing(LISTED),
            segment,
            translation: RwLock::default(),
            links: Mutex::new(Some(Vec::new())),
            starving: Mutex::default(),
            any_starving: AtomicBool::new(false),
            events: broadcast::Sender::new(EVENTS),
            recalling: AtomicBool::new(false),
            shared,
            config,
        };
        core.shared.tell(News::Endpoint(core.number, handlers));
        Ok((Arc::new(core), listener))
    }

    pub fn name(&self) -> &Name {
        &self.name
    }

    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    pub fn segment(&self) -> Option<&Registered> {
        self.segment.as_ref()
    }

    #[inline]
    pub fn tag(&self) -> Tag {
        Tag(self.tag.load(Ordering::Relaxed))
    }

    pub fn set_tag(&self, tag: Tag) {
        self.tag.store(tag.0, Ordering::Relaxed);
    }

    /// What is said to whom it maps by a tag, or who maps it.
    fn hello(&self, tag: Tag, link: &Link) -> Hello {
        let nature = Nature {
            // By one that is for some messages only, the other way is not for all.
            unique: self.config.service.is_none() && link.size == Size::Any,
            metadata: true,
            service: self.name.service().0,
            credits: link.grants() as u16,
            limit: link.limit() as u16,
            payload: link.payload() as u32,
            handlers: self.digest,
            patience: u32::try_from(self.config.patience.as_millis()).unwrap_or(u32::MAX),
        };
        Hello { size: link.size, tag, segment: self.segment_for(link), nature }
    }

    /// Where a peer may place payloads: nowhere, unless it shows the tag.
    pub fn segment_for(&self, link: &Link) -> RemoteMemory {
        let segment = self.segment.as_ref().filter(|_| self.tag().admits(link.shown()));
        segment.map_or(NOWHERE, Registered::remote)
    }

    /// The receives of messages of a size, and buffers as long.
    fn buffers(&self, size: Size) -> Result<Arc<Buffers>, OpenError> {
        let Some(at) = Size::LESS.iter().position(|less| *less == size) else {
            return Ok(self.buffers.clone());
        };
        if let Some(there) = &locked(&self.shorter)[at] {
            return Ok(there.clone());
        }
        // While the poller is waited for, whose handlers may wait for the lock.
        let queue = self.shared.shared_receives(&self.domain, self.config.receives)?;
        let (len, most) = (room(size.payload(&self.config)), self.config.receives);
        let new = || Arc::new(Buffers::new(queue, len, most));
        Ok(locked(&self.shorter)[at].get_or_insert_with(new).clone())
    }

    /// The most receives that there ever were.
    pub fn most_receives(&self) -> usize {
        let shorter = locked(&self.shorter);
        self.buffers.most() + shorter.iter().flatten().map(|buffers| buffers.most()).sum::<usize>()
    }

    /// A queue pair, and a link for it that its first messages find.
    async fn prepare(
        self: &Arc<Self>,
        size: Size,
    ) -> Result<(Unconnected<Queues>, Fresh), OpenError> {
        let buffers = self.buffers(size)?;
        /// Fewer requests than that are not worth more room to peers who are idle.
        const FEW: usize = 8;
        // What there is no room for waits in the outbox. A NIC that loses nothing may say what it has
        // taken later than its program answers that: it does so when it has nothing else to do.
        let credits = size.credits(&self.config);
        let late = if self.shared.nic.capabilities().lossless { credits } else { 0 };
        let send_depth = (credits + late.saturating_sub(FEW)).max(2);
        let config = QueuesConfig { send_depth, ..self.shared.queues.clone() };
        let unconnected = match self.config.flow {
            Flow::Credits => self.domain.queues(&config.share(buffers.queue()))?,
            Flow::Nic { receives } => {
                let own = QueuesConfig { receive_depth: receives, ..config };
                let mut unconnected = self.domain.queues(&own)?;
                for _ in 0..receives {
                    let posted = unconnected.post_receive(0, buffers.take());
                    debug_assert!(posted.is_ok(), "it has room for so many");
                }
                unconnected
            }
        };
        let receives = self.receives_in_time(&buffers, size).await?;
        let own = (size, buffers);
        let link =
            Arc::new(Link::new(self.clone(), unconnected.connection().clone(), own, receives));
        let fresh = Fresh { link: link.clone(), stays: false };
        let mut links = locked(&self.links);
        links.as_mut().ok_or(OpenError::Closed)?.push(link.clone());
        // Before anybody can say that it, or the endpoint, is gone.
        self.shared.tell_of(link);
        drop(links);
        Ok((unconnected, fresh))
    }

    /// The receives of a new link, for which others may have to give up some, or to be done with theirs.
    async fn receives_in_time(
        self: &Arc<Self>,
        buffers: &Arc<Buffers>,
        size: Size,
    ) -> Result<(usize, usize), OpenError> {
        let deadline = Instant::now() + PATIENCE;
        let mut hope = true;
        loop {
            if let Some(found) = self.receives(buffers, size) {
                return Ok(found);
            }
            if !hope || Instant::now() >= deadline {
                return Err(self.no_receives());
            }
            // It goes on to its end, whatever becomes of who waits for it.
            let (core, buffers) = (self.clone(), buffers.clone());
            let recalled = async move { recall(&core, &buffers, true).await };
            hope = self.shared.runtime.spawn(recalled).await.unwrap_or(false);
        }
    }

    /// How many receives there are for a new link: for its peer's requests, and for the answers to its
    /// own. While there is plenty, as many as there may be; or else one, and more as it is used. None if
    /// there is none.
    fn receives(&self, buffers: &Buffers, size: Size) -> Option<(usize, usize)> {
        let most = size.credits(&self.config);
        if self.config.flow != Flow::Credits {
            return Some((MOST_CREDITS, most));
        }
        let plenty = buffers.is_plenty(2 * most);
        let grants = buffers.promise_to_peer(if plenty { most } else { 1 });
        let lease = if plenty { buffers.promise_for_answers(most) } else { 0 };
        (grants > 0).then_some((grants, lease))
    }

    fn no_receives(&self) -> OpenError {
        let expected = "one for each peer, at least, and one more";
        OpenError::Config {
            what: "EndpointConfig::receives",
            found: self.config.receives,
            expected,
        }
    }

    /// A peer could use more receives than there are: perhaps others do not need theirs.
    #[cold]
    pub fn wants_receives(self: &Arc<Self>, receives: &Arc<Buffers>) {
        if !self.recalling.load(Ordering::Relaxed) && !self.recalling.swap(true, Ordering::Relaxed)
        {
            let (core, receives) = (self.clone(), receives.clone());
            self.shared.runtime.spawn(async move {
                recall(&core, &receives, false).await;
                tokio::time::sleep(BETWEEN_RECALLS).await;
                core.recalling.store(false, Ordering::Relaxed);
            });
        }
    }

    /// All links there are.
    pub fn all(&self) -> Vec<Arc<Link>> {
        locked(&self.links).clone().unwrap_or_default()
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
        if !link.opens(queues) {
            return;
        }
        self.shared.tell(News::Opened(link.clone()));
        if !link.is_for_shorter() {
            self.tell(Event::Linked(Peer::of(link.clone())));
        }
        link.out().announced = true;
        // It may have ended before.
        self.checks(link);
    }

    /// That nobody listens is no error.
    pub fn tell(&self, event: Event) {
        let _ = self.events.send(event);
    }

    /// Whether a link is over may have changed.
    fn checks(&self, link: &Arc<Link>) {
        if link.out().announced
            && let Stand::Ended(ending) = link.connection.stand()
        {
            self.ends(link, ending);
        }
    }

    /// A link is over, if it was not before.
    pub fn ends(&self, link: &Arc<Link>, ending: Ending) {
        let Some(lost) = link.ends(ending.clone()) else { return };
        let promised = link.promised();
        link.buffers.retire(promised);
        if !link.is_for_shorter() {
            self.tell(Event::Gone(Peer::of(link.clone()), ending.clone()));
        }
        if let Some(links) = &mut *locked(&self.links) {
            links.retain(|there| !Arc::ptr_eq(there, link));
        }
        self.shared.tell(News::LinkGone(Parting::new(link.clone(), lost, promised)));
        // Without one of them the others are of no use.
        link.beside().iter().for_each(|other| self.ends(other, ending.clone()));
    }

    /// Lets the peer at the end of a link map the segment, if it may. Whether it may.
    pub fn lends(&self, link: &Arc<Link>) -> bool {
        let shared = matches!(self.config.segment, Some(SegmentMemory::Shared(_)));
        let admitted = self.tag().admits(link.shown());
        let segment = self.segment.clone().filter(|_| shared && admitted && self.shared.maps());
        let Some(segment) = segment else { return false };
        let connection = link.connection.clone();
        if link.out().lends() {
            // Who handles a message may have the NIC in hand.
            self.shared.runtime.spawn(async move {
                if let Err(why) = connection.grant(&segment) {
                    tracing::debug!(qpn = %connection.qpn(), %why, "a segment was not granted");
                }
            });
        }
        true
    }

    /// Maps the segment at the other end of a link, if that lends it.
    pub fn borrows(&self, link: Arc<Link>) {
        self.shared.runtime.spawn(async move {
            let answer = ask(&link, &[Ask::Lend as u64], &[]).await;
            let lent = answer.is_ok_and(|reply| reply.words().eq([1]));
            if !lent {
                return;
            }
            let segment = link.out().segment;
            // Whoever waits for a grant has the device asked for one again and again.
            if let Ok(Ok(mapped)) = timeout(PATIENCE, link.connection.map(segment)).await {
                link.out().maps(mapped);
            }
        });
    }

    /// The endpoint is closed: all links end, and none is made any more.
    pub fn close(&self) {
        let links = locked(&self.links).take();
        self.shared.tell(News::EndpointGone(self.number));
        self.translation.write().unwrap_or_else(PoisonError::into_inner).clear();
        links.into_iter().flatten().for_each(|link| self.ends(&link, left()));
        // They would keep this.
        let starving = std::mem::take(&mut *locked(&self.starving));
        drop(starving);
    }

    async fn accept(self: Arc<Self>, incoming: Incoming) {
        let Some(hello) = Hello::from_bytes(incoming.private()) else {
            let _ = incoming.reject(b"no hello of Active Messages of this version");
            return;
        };
        if (hello.size == Size::Any) == (self.config.policy == Policy::PerSize) {
            let _ =
                incoming.reject(b"of connections per size, both or neither is to have a policy");
            return;
        }
        let Ok((unconnected, fresh)) = self.prepare(hello.size).await else { return };
        // Whoever maps the peer from here on finds this, and no second connection is made.
        fresh.link.hears(hello);
        let hello = self.hello(Tag::NONE, &fresh.link).to_bytes();
        match unconnected.accept(incoming, &hello).await {
            Ok((queues, _)) => self.opens(&fresh.stays(), queues),
            Err(why) => tracing::debug!(qpn = %fresh.link.qpn(), %why, "a peer was not accepted"),
        }
    }

    async fn connect(
        self: &Arc<Self>,
        name: &Name,
        tag: Tag,
        size: Size,
    ) -> Result<Fresh, MapError> {
        let text = || name.to_string();
        let (unconnected, fresh) = self.prepare(size).await.map_err(|why| match why {
            OpenError::Resources(why) => MapError::Resources { name: text(), why },
            other => MapError::Receives { name: text(), why: other.to_string() },
        })?;
        let hello = self.hello(tag, &fresh.link).to_bytes();
        let connected = unconnected.connect(name.address(), name.service(), &hello).await;
        let refused = |why| MapError::Connect { name: text(), why };
        let (queues, private) = connected.map_err(refused)?;
        let hello = Hello::from_bytes(&private).filter(|hello| hello.size == size);
        let hello = hello.ok_or_else(|| MapError::NoEndpoint(text()))?;
        fresh.link.hears(hello);
        fresh.link.is_to(name);
        self.opens(&fresh.link, queues);
        Ok(fresh)
    }

    /// Maps a peer at a place: by the connection that there is, or by a new one.
    pub async fn map(
        self: &Arc<Self>,
        index: usize,
        name: &Name,
        tag: Tag,
    ) -> Result<Arc<Link>, MapError> {
        let most = self.config.places;
        if index >= most {
            return Err(MapError::Place { index, most });
        }
        if self.is_taken(index) {
            return Err(MapError::Taken(index));
        }
        if self.config.policy == Policy::PerSize {
            return self.map_per_size(index, name, tag).await;
        }
        if let Some(link) = self.link_of(name) {
            link.is_to(name);
            let lost = |why| MapError::Lost { name: name.to_string(), why };
            self.shows(&link, tag).await.map_err(lost)?;
            self.compare(&link, name).await?;
            return self.put(index, link);
        }
        let fresh = self.connect(name, tag, Size::Any).await?;
        self.compare(&fresh.link, name).await?;
        self.put(index, fresh.link.clone())?;
        Ok(fresh.stays())
    }

    /// By three new connections, in any case.
    async fn map_per_size(
        self: &Arc<Self>,
        index: usize,
        name: &Name,
        tag: Tag,
    ) -> Result<Arc<Link>, MapError> {
        let fresh = self.connect(name, tag, Size::Long).await?;
        self.compare(&fresh.link, name).await?;
        let [short, medium] = Size::LESS;
        let short = self.connect(name, tag, short).await?;
        let medium = self.connect(name, tag, medium).await?;
        fresh.link.has_lanes([short.link.clone(), medium.link.clone()]);
        self.put(index, fresh.link.clone())?;
        short.stays();
        medium.stays();
        Ok(fresh.stays())
    }

    /// Takes a peer off its place. If that leaves it mapped by neither side, the connection ends.
    pub async fn unmap(self: &Arc<Self>, index: usize) -> Result<(), SendError> {
        let link = {
            let mut table = self.translation.write().unwrap_or_else(PoisonError::into_inner);
            table.get_mut(index).and_then(Option::take).ok_or(SendError::NotMapped(index))?
        };
        if !self.maps(&link) {
            // It goes on to its end, whatever becomes of who waits for it.
            let _ = self.shared.runtime.spawn(self.clone().leaves(link)).await;
        }
        Ok(())
    }

    /// Takes all peers off. That others take one off meanwhile is all the same.
    pub async fn unmap_all(self: &Arc<Self>) {
        let places = self.translation.read().unwrap_or_else(PoisonError::into_inner).len();
        for index in 0..places {
            let _ = self.unmap(index).await;
        }
    }

    /// Ends the connection to a peer that is not mapped any more, if that does not map this either. What
    /// was sent there before is handled then, for it answers in turn.
    async fn leaves(self: Arc<Self>, link: Arc<Link>) {
        let all = || link.lanes().iter().chain([&link]);
        for link in all() {
            let answer = ask(link, &[Ask::Leave as u64], &[]).await;
            if answer.is_ok_and(|reply| reply.words().eq([1])) {
                return;
            }
        }
        for link in all() {
            let ended = link.connection.disconnect(&[]).await;
            self.ends(link, ended.unwrap_or(left()));
        }
    }

    fn put(&self, index: usize, link: Arc<Link>) -> Result<Arc<Link>, MapError> {
        let mut table = self.translation.write().unwrap_or_else(PoisonError::into_inner);
        if table.len() <= index {
            table.resize(index + 1, None);
        }
        match &mut table[index] {
            Some(there) if there.ending().is_none() => Err(MapError::Taken(index)),
            free => Ok(free.insert(link).clone()),
        }
    }

    /// Whether there is somebody at a place who has not gone.
    fn is_taken(&self, index: usize) -> bool {
        self.place(index).is_some_and(|link| link.ending().is_none())
    }

    /// Whether that peer is mapped.
    pub fn maps(&self, link: &Arc<Link>) -> bool {
        let table = self.translation.read().unwrap_or_else(PoisonError::into_inner);
        table.iter().flatten().any(|there| Arc::ptr_eq(there, link))
    }

    /// Whom a message to a place goes to.
    #[inline]
    pub fn place(&self, index: usize) -> Option<Arc<Link>> {
        let table = self.translation.read().unwrap_or_else(PoisonError::into_inner);
        table.get(index)?.clone()
    }

    /// The link to an endpoint that has mapped this one, if nobody else can have its name.
    fn link_of(&self, name: &Name) -> Option<Arc<Link>> {
        let is = |peer: &Nature| peer.unique && peer.service == name.service().0;
        let there = |link: &&Arc<Link>| link.peer().is_some_and(is) && link.ending().is_none();
        locked(&self.links).iter().flatten().find(there).cloned()
    }

    /// Tells a peer by which tag it is called from now on, and hears where payloads may be placed.
    async fn shows(&self, link: &Arc<Link>, tag: Tag) -> Result<(), CallError> {
        let reply = ask(link, &[Ask::Show as u64, tag.0], &[]).await?;
        link.out().segment = memory(reply.words()).unwrap_or(NOWHERE);
        Ok(())
    }

    /// Makes sure that a peer has the same handlers, as far as both have them.
    async fn compare(&self, link: &Arc<Link>, name: &Name) -> Result<(), MapError> {
        if link.peer().is_some_and(|peer| peer.handlers == self.digest) {
            return Ok(());
        }
        for piece in &self.listing {
            let answer = ask(link, &[Ask::Compare as u64], piece).await;
            let lost = |why| MapError::Lost { name: name.to_string(), why };
            if let Some(found) = Difference::from_bytes(answer.map_err(lost)?.payload()) {
                let Difference { which, index, name: there } = found;
                return Err(MapError::Handlers { table: which.name(), index, there });
            }
        }
        Ok(())
    }
}

/// Asks the endpoint at the other end of a link.
pub(crate) async fn ask(
    link: &Arc<Link>,
    words: &[u64],
    payload: &[u8],
) -> Result<Reply, CallError> {
    peer::ask(link, SYSTEM, Content { words, payload }).await
}

/// The bytes of a listing of handlers, of which one has a name of 255 at the most: every endpoint takes
/// payloads as long.
pub(crate) const LISTED: usize = 512;

/// How many requests peers may have under way to an endpoint, all together.
fn most_requests(config: &EndpointConfig) -> usize {
    match config.flow {
        Flow::Credits => 3 * config.receives,
        Flow::Nic { .. } => config.places.saturating_mul(MOST_CREDITS),
    }
}

/// How long a buffer is that takes such payloads.
pub(crate) fn room(payload: usize) -> usize {
    8 * (MOST_WORDS + 2) + payload
}

/// A number that nobody can guess.
fn unguessable() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    // What the standard library seeds from the system.
    RandomState::new().hash_one(0)
}

/// Sees to it that links end with their connections.
pub(crate) async fn watch(core: Arc<Core>, mut events: broadcast::Receiver<AsyncEvent>) {
    loop {
        match events.recv().await {
            Ok(AsyncEvent::Ended(qpn)) => {
                let is = |link: &&Arc<Link>| link.qpn() == qpn;
                let found = locked(&core.links).iter().flatten().find(is).cloned();
                found.iter().for_each(|link| core.checks(link));
            }
            // What came by it may be all handled by now.
            Ok(AsyncEvent::LastReceive(_)) => core.shared.stir(),
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => {
                core.all().iter().for_each(|link| core.checks(link));
                core.shared.stir();
            }
            Err(RecvError::Closed) => return,
        }
    }
}

/// Takes up whoever maps the endpoint.
pub(crate) async fn accept(core: Arc<Core>, mut listener: Listener) {
    loop {
        let incoming = listener.accept().await;
        core.shared.runtime.spawn(core.clone().accept(incoming));
    }
}
