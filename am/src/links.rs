//! An endpoint, as its links see it: what it holds for them, and how they are prepared and end.

mod mapping;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use doorbell_verbs::floor::StopListening;
use doorbell_verbs::{
    AsyncEvent, ConnectionState, Domain, Ending, Listener, Private, Queues, QueuesConfig,
    Registered, RemoteAddr, RemoteMemory, ResourceError, Rights, Rkey, ServiceId, Unconnected,
};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::{Instant, timeout};

use crate::buffers::{Buffers, locked};
use crate::bundle::Shared;
use crate::content::Content;
use crate::endpoint::{EndpointConfig, Flow, SegmentMemory};
use crate::error::{CallError, OpenError};
use crate::event::Event;
use crate::handlers::Tables;
use crate::link::Link;
use crate::name::Name;
use crate::names::Names;
use crate::news::{News, Parting};
use crate::pack;
use crate::peer::{self, Peer};
use crate::recall::{BETWEEN_RECALLS, PATIENCE, recall};
use crate::sizes::Size;
pub(crate) use mapping::{accept, settle};

use crate::reply::Reply;
use crate::tag::{Admits, Tag};
use crate::tasks::Tasks;
use crate::wire::{Ask, MOST_CREDITS, SYSTEM};
use crate::words::MOST_WORDS;

/// How many events are kept for who listens.
const EVENTS: usize = 256;

/// How long a new link waits for a queue pair, while there are some whose numbers still rest.
const REST_PATIENCE: Duration = Duration::from_secs(5);

/// A zero-length remote memory, for endpoints that offer no segment.
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

/// A link whose connection is just being made. If that does not come about, the link is over.
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
        if !self.stays {
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
    /// Whom it admits, and the lock under which it is decided whether that is the peer of a link.
    admits: Mutex<Admits>,
    domain: Domain,
    /// Stops the listener that the task has which takes peers up.
    listening: StopListening,
    name: Name,
    digest: u64,
    /// What its handlers are whose places the program has chosen, for others to compare.
    listing: Vec<Vec<u8>>,
    /// What its named handlers are, for others to find.
    names: Vec<u8>,
    /// What the named handlers of its peers are: once for all that have the same.
    peer_names: Mutex<Vec<Weak<Names>>>,
    segment: Option<Registered>,
    /// Each entry is a user of its link.
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
    /// Whether the endpoint is closed because its runtime has ended.
    runtime_ended: AtomicBool,
}

impl Core {
    /// An endpoint's, which the poller knows from here on; and who maps it.
    pub async fn open(
        shared: Arc<Shared>,
        mut handlers: Tables,
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
            admits: Mutex::new(config.admits),
            domain,
            listening: listener.stop(),
            name: Name::at(shared.nic.address().to_string(), service),
            digest: handlers.digest(),
            listing: handlers.listing(LISTED),
            names: handlers.place_named(),
            peer_names: Mutex::default(),
            segment,
            translation: RwLock::default(),
            links: Mutex::new(Some(Vec::new())),
            starving: Mutex::default(),
            any_starving: AtomicBool::new(false),
            events: broadcast::Sender::new(EVENTS),
            recalling: AtomicBool::new(false),
            runtime_ended: AtomicBool::new(false),
            shared,
            config,
        };
        core.shared.tell(News::Endpoint(core.number, handlers));
        Ok((Arc::new(core), listener))
    }

    /// What tells its handlers from others, as far as the program has chosen their places.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// The listing of its named handlers.
    pub fn names(&self) -> &[u8] {
        &self.names
    }

    /// The named handlers of a peer, from its listing; `None` if that is none.
    pub fn names_of_peer(&self, listing: Vec<u8>) -> Option<Arc<Names>> {
        let mut known = locked(&self.peer_names);
        known.retain(|names| names.strong_count() > 0);
        let same = known.iter().filter_map(Weak::upgrade).find(|names| names.is(&listing));
        if let Some(names) = same {
            return Some(names);
        }
        let names = Arc::new(Names::of(listing)?);
        known.push(Arc::downgrade(&names));
        Some(names)
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

    pub fn admits(&self) -> Admits {
        *locked(&self.admits)
    }

    pub fn set_admits(&self, admits: Admits) {
        let mut now = locked(&self.admits);
        *now = admits;
        self.all().iter().for_each(|link| link.admission.decide(admits));
    }

    /// The peer of a link that this endpoint knows of shows a tag, or none.
    pub fn admits_as(&self, link: &Link, tag: Option<Tag>) {
        let admits = locked(&self.admits);
        link.admission.show(tag, *admits);
    }

    /// The peer of a link shows another tag, or none, from now on, if this endpoint admits that.
    /// Whether it does; if not, the peer goes on with what it showed before.
    pub fn admits_anew(&self, link: &Link, tag: Option<Tag>) -> bool {
        let admits = locked(&self.admits);
        let admitted = admits.admits(tag);
        if admitted {
            link.admission.show(tag, *admits);
        }
        admitted
    }

    /// Where the peer of a link may place payloads: nowhere, unless this endpoint admits it.
    pub fn segment_for(&self, link: &Link) -> RemoteMemory {
        let segment = self.segment.as_ref().filter(|_| link.is_admitted());
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
        // What there is no room for waits in the outbox. A NIC that loses nothing may say what it
        // has taken later than its program answers that: it does so when it has nothing else to do.
        let credits = size.first_credits(&self.config);
        let late = if self.shared.nic.capabilities().lossless { credits } else { 0 };
        let send_depth = (credits + late.saturating_sub(FEW)).max(2);
        let config = QueuesConfig { send_depth, ..self.shared.queues.clone() };
        let unconnected = match self.config.flow {
            Flow::Credits => self.queues(&config.share(buffers.queue())).await?,
            Flow::Nic { receives } => {
                let own = QueuesConfig { receive_depth: receives, ..config };
                let mut unconnected = self.queues(&own).await?;
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
        links.as_mut().ok_or_else(|| self.closed())?.push(link.clone());
        // Before anybody can say that it, or the endpoint, is gone.
        self.shared.tell_of(link);
        drop(links);
        Ok((unconnected, fresh))
    }

    /// A queue pair. If all are taken, some by connections that are over, this waits until the
    /// numbers of one have rested.
    async fn queues(&self, config: &QueuesConfig) -> Result<Unconnected<Queues>, OpenError> {
        let deadline = Instant::now() + REST_PATIENCE;
        let mut hope = true;
        loop {
            let full = match self.domain.queues(config) {
                Err(full @ ResourceError::QueuePairsFull(_)) => full,
                Err(ResourceError::QueueTooSmall { has, .. }) => {
                    return Err(OpenError::Completions { has });
                }
                found => return Ok(found?),
            };
            if !hope || Instant::now() >= deadline {
                return Err(full.into());
            }
            // Behind this is another try, for one may have become free since the last.
            let rests = self.shared.nic.resting_queue_pairs() > 0;
            hope = rests || self.all().iter().any(|link| link.leaves());
            if hope {
                tokio::time::sleep(BETWEEN_RECALLS).await;
            }
        }
    }

    /// The receives of a new link, for which others may have to give up some, or to be done with
    /// theirs.
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
                return Err(OpenError::Receives(self.config.receives));
            }
            // It goes on to its end, whatever becomes of who waits for it.
            let (core, buffers) = (self.clone(), buffers.clone());
            let recalled = async move { recall(&core, &buffers, true).await };
            hope = self.shared.runtime.spawn(recalled).await.unwrap_or(false);
        }
    }

    /// How many receives there are for a new link: for its peer's requests, and for the answers to
    /// its own. While there is plenty, as many as a new peer is to have; or else one, and more as
    /// it is used. `None` if there is none.
    fn receives(&self, buffers: &Buffers, size: Size) -> Option<(usize, usize)> {
        if self.config.flow != Flow::Credits {
            return Some((MOST_CREDITS, size.credits(&self.config)));
        }
        let first = size.first_credits(&self.config);
        let plenty = buffers.is_plenty(2 * first);
        let grants = buffers.promise_to_peer(if plenty { first } else { 1 });
        let lease = if plenty { buffers.promise_for_answers(first) } else { 0 };
        (grants > 0).then_some((grants, lease))
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
            && let ConnectionState::Ended(ending) = link.connection.state()
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
        let admitted = link.is_admitted();
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

    /// Why the endpoint, which is closed, takes no links.
    #[cold]
    fn closed(&self) -> OpenError {
        match self.runtime_ended.load(Ordering::Acquire) {
            true => OpenError::RuntimeEnded,
            false => OpenError::Closed,
        }
    }

    /// The endpoint is closed: all links end, and none is made any more. Another endpoint may have
    /// its number.
    pub fn close(&self) {
        self.listening.stop();
        let links = locked(&self.links).take();
        self.shared.tell(News::EndpointGone(self.number));
        links.into_iter().flatten().for_each(|link| self.ends(&link, left()));
        self.translation.write().unwrap_or_else(PoisonError::into_inner).clear();
        // They would keep this.
        let starving = std::mem::take(&mut *locked(&self.starving));
        drop(starving);
    }
}

/// Asks the endpoint at the other end of a link, and waits for the answer as long as the link
/// stands.
pub(crate) async fn ask(
    link: &Arc<Link>,
    words: &[u64],
    payload: &[u8],
) -> Result<Reply, CallError> {
    ask_within(link, words, payload, None).await
}

/// Asks the endpoint at the other end of a link, and waits for the answer no longer than that.
pub(crate) async fn ask_within(
    link: &Arc<Link>,
    words: &[u64],
    payload: &[u8],
    within: Option<Duration>,
) -> Result<Reply, CallError> {
    peer::ask(link, SYSTEM, Content { words, payload }, within).await
}

/// The bytes of a listing of handlers, of which one has a name of 255 at the most: every endpoint
/// takes payloads as long.
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

/// Closes an endpoint when the runtime ends that has run the endpoint's tasks: nobody would notice
/// any more that a peer has gone, and requests would run no asynchronous handlers.
struct ClosesWithRuntime(Arc<Core>);

impl Drop for ClosesWithRuntime {
    fn drop(&mut self) {
        let core = &self.0;
        if locked(&core.links).is_some() {
            core.runtime_ended.store(true, Ordering::Release);
            core.close();
        }
    }
}

/// Sees to it that links end with their connections.
pub(crate) fn watch(
    core: Arc<Core>,
    mut events: broadcast::Receiver<AsyncEvent>,
) -> impl Future<Output = ()> {
    // Made here, so that it is there for a task that never runs, too.
    let closes = ClosesWithRuntime(core);
    async move {
        let core = &closes.0;
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
}
