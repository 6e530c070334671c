//! The state of an endpoint: its links, its translation table, and its receives.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use doorbell_verbs::floor::{StopListening, locked};
use doorbell_verbs::{
    Domain, Ending, Listener, Name, Private, RegisterError, Registered, Rights, ServiceId,
};
use tokio::sync::broadcast;

use super::event::Event;
use crate::config::{EndpointConfig, SegmentMemory};
use crate::credits::Starving;
use crate::error::{GivenUp, OpenError};
use crate::handlers::Tables;
use crate::link::{Link, LocalEndpoint, Owner};
use crate::progress::{Engine, Update};
use crate::proof::Challenges;
use crate::receives::Buffers;
use crate::shared::Tasks;
use crate::wire::{Admits, LISTED, buffer_len, pack};

/// The events that are kept for a program that does not take them.
const EVENTS: usize = 256;

/// The events that an endpoint keeps that maps few peers and does not listen.
const FEWEST_EVENTS: usize = 8;

/// The events that an endpoint keeps that is one of many. A program that misses some looks at its
/// few peers.
const EVENTS_OF_ONE_OF_MANY: usize = 4;

/// The most peers that are remembered as having died while requests to them were not answered.
const MOST_LOST: usize = 64;

/// The state of an endpoint.
pub(super) struct Core {
    pub engine: Arc<Engine>,
    /// The part of the state that the links see.
    pub local: Arc<LocalEndpoint>,
    /// The receives of links that carry messages of any size, or the longest.
    pub buffers: Arc<Buffers>,
    /// The receives of links that carry shorter messages, once there are such links.
    pub shorter: Mutex<[Option<Arc<Buffers>>; 2]>,
    pub domain: Domain,
    pub name: Name,
    /// The challenges that are posed to peers that are to show a tag.
    pub challenges: Challenges,
    /// The listing of the handlers whose places the program has chosen, in pieces that fit
    /// messages.
    pub listing: Vec<Vec<u8>>,
    /// The events of the endpoint, for programs that listen; none once its NIC is closed and all that
    /// has come is handled.
    events: Mutex<Option<broadcast::Sender<Event>>>,
    /// Whether the NIC was closed, and all links have ended by that.
    pub nic_closed: AtomicBool,
    /// The number of links that have ended, and messages of which may not be handled yet.
    pub departing: AtomicUsize,
    /// The count of requests of all links when it was last asked whether the endpoint is idle.
    pub requests_at_mark: AtomicU32,
    /// Whether receives are being recalled from idle peers.
    pub recalling: AtomicBool,
    /// Whether the endpoint accepts no further peers.
    pub shuts_down: AtomicBool,
    /// Whether the endpoint is closed because its runtime has ended.
    pub runtime_ended: AtomicBool,
    /// The peers that have died while requests to them were not answered, the first ones, for
    /// whoever closes the endpoint.
    lost: Mutex<Vec<GivenUp>>,
    /// Stops the listener, which a task of the endpoint has, if the endpoint listens.
    listening: Option<StopListening>,
    /// The translation table, each entry of which is a user of its link.
    translation: RwLock<Vec<Option<Arc<Link>>>>,
    /// The links of the endpoint, whichever side has mapped the other; `None` once it is closed.
    links: Mutex<Option<Vec<Arc<Link>>>>,
}

impl Core {
    /// Opens an endpoint, and tells the poller of it. Returns the listener for peers that map it,
    /// too, if the endpoint listens.
    pub async fn open(
        engine: Arc<Engine>,
        mut handlers: Tables,
        config: EndpointConfig,
    ) -> Result<(Arc<Self>, Option<Listener>), OpenError>
    where
        Self: Owner,
    {
        let domain = engine.nic.domain();
        let queue = engine.shared_receives(&domain, config.receives + config.peers)?;
        // At least as long as a packet, which several messages may share.
        let len = buffer_len(config.payload).max(pack::MOST);
        let spares = engine.spares.of(len);
        let service = config.service.unwrap_or_else(unguessable);
        let listener = match config.listens {
            true => Some(engine.nic.listen(ServiceId(service)).await?),
            false => None,
        };
        let segment = register(&domain, config.segment.as_ref())?;
        let (number, runtime) = (engine.next_number(), engine.runtime.clone());
        let tasks =
            Tasks::new(runtime.clone(), engine.counters.clone(), config.tasks, config.task_memory);
        let (digest, listing) = (handlers.digest(), handlers.listing(LISTED));
        let names = handlers.place_named();
        let core = Arc::new_cyclic(|core: &Weak<Self>| {
            let name = Name::at(engine.nic.address().to_string(), service);
            // Each peer that comes or goes is one event.
            let events = broadcast::Sender::new(match config.listens {
                true => EVENTS,
                false if config.is_one_of_many() => EVENTS_OF_ONE_OF_MANY,
                false => config.places.saturating_mul(4).clamp(FEWEST_EVENTS, EVENTS),
            });
            let limits = (config.receives, config.peers);
            let buffers = Arc::new(Buffers::new(queue, spares, limits, config.may_rest()));
            let local = LocalEndpoint {
                number,
                admits: Mutex::new(config.admits),
                config,
                nic: engine.nic.clone(),
                runtime,
                counters: engine.counters.clone(),
                signals: engine.signals.clone(),
                progress: engine.clone(),
                owner: core.clone(),
                tasks,
                digest,
                names,
                peer_names: Mutex::default(),
                segment,
                starving: Starving::default(),
            };
            Self {
                engine,
                local: Arc::new(local),
                buffers,
                shorter: Mutex::default(),
                domain,
                name,
                challenges: Challenges::default(),
                listing,
                events: Mutex::new(Some(events)),
                nic_closed: AtomicBool::new(false),
                departing: AtomicUsize::new(0),
                requests_at_mark: AtomicU32::new(0),
                recalling: AtomicBool::new(false),
                shuts_down: AtomicBool::new(false),
                runtime_ended: AtomicBool::new(false),
                lost: Mutex::default(),
                listening: listener.as_ref().map(Listener::stop),
                translation: RwLock::default(),
                links: Mutex::new(Some(Vec::new())),
            }
        });
        let owner: Weak<dyn Owner> = Arc::downgrade(&core) as _;
        core.engine.watched.add_owner(number, owner);
        core.engine.tell(Update::Endpoint(number, handlers));
        Ok((core, listener))
    }

    /// Changes which peers the endpoint admits.
    pub fn set_admits(&self, admits: Admits) {
        let mut now = locked(&self.local.admits);
        *now = admits;
        self.links().iter().for_each(|link| link.admission.decide(admits));
    }

    /// Returns the most receives that there ever were.
    pub fn most_receives(&self) -> usize {
        let shorter = locked(&self.shorter);
        self.buffers.most() + shorter.iter().flatten().map(|buffers| buffers.most()).sum::<usize>()
    }

    /// Sends an event to programs that listen, if any do.
    pub fn send_event(&self, event: Event) {
        if let Some(events) = self.event_sender() {
            let _ = events.send(event);
        }
    }

    pub fn event_sender(&self) -> Option<broadcast::Sender<Event>> {
        locked(&self.events).clone()
    }

    /// Subscribes to the events from here on.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        let events = self.event_sender();
        events.map_or_else(|| broadcast::channel(1).1, |events| events.subscribe())
    }

    /// Takes the sender of events, so that none comes any more, if the NIC is closed and all that
    /// has come is handled.
    pub fn take_events(&self) -> Option<broadcast::Sender<Event>> {
        let is_over =
            self.nic_closed.load(Ordering::SeqCst) && self.departing.load(Ordering::SeqCst) == 0;
        is_over.then(|| locked(&self.events).take()).flatten()
    }

    /// Returns all links of the endpoint.
    pub fn links(&self) -> Vec<Arc<Link>> {
        locked(&self.links).clone().unwrap_or_default()
    }

    /// Returns how many links the endpoint has.
    pub fn count_links(&self) -> usize {
        locked(&self.links).as_ref().map_or(0, Vec::len)
    }

    /// Returns the links of which something holds.
    pub fn links_that(&self, holds: impl Fn(&Arc<Link>) -> bool) -> Vec<Arc<Link>> {
        let links = locked(&self.links);
        links.iter().flatten().filter(|link| holds(link)).cloned().collect()
    }

    /// Adds a link, and runs `told` before anybody can say that the link or the endpoint is gone.
    pub fn add_link(&self, link: &Arc<Link>, told: impl FnOnce()) -> Result<(), OpenError> {
        let mut links = locked(&self.links);
        links.as_mut().ok_or_else(|| self.why_closed())?.push(link.clone());
        told();
        Ok(())
    }

    /// Removes a link that is over.
    pub fn remove_link(&self, link: &Arc<Link>) {
        self.engine.watched.remove_link(link);
        if let Some(links) = &mut *locked(&self.links) {
            links.retain(|there| !Arc::ptr_eq(there, link));
        }
    }

    /// Remembers a peer that has died while requests to it were not answered.
    pub fn note_lost(&self, lost: GivenUp) {
        let mut all = locked(&self.lost);
        if all.len() < MOST_LOST {
            all.push(lost);
        }
    }

    /// Takes the peers that have died while requests to them were not answered.
    pub fn take_lost(&self) -> Vec<GivenUp> {
        std::mem::take(&mut locked(&self.lost))
    }

    /// Refuses peers that would connect from here on.
    pub fn stop_listening(&self) {
        self.listening.iter().for_each(StopListening::stop);
    }

    /// Takes all links from the endpoint, which takes no more of them.
    pub fn take_links(&self) -> Vec<Arc<Link>> {
        self.stop_listening();
        locked(&self.links).take().unwrap_or_default()
    }

    pub fn is_closed(&self) -> bool {
        locked(&self.links).is_none()
    }

    /// Returns why the endpoint, which is closed, takes no links.
    #[cold]
    fn why_closed(&self) -> OpenError {
        match self.runtime_ended.load(Ordering::Acquire) {
            true => OpenError::RuntimeEnded,
            false => OpenError::Closed,
        }
    }

    /// Returns the link to the peer at a place of the translation table.
    #[inline]
    pub fn place(&self, index: usize) -> Option<Arc<Link>> {
        self.places().get(index)?.clone()
    }

    /// Locks the translation table for reading.
    #[inline]
    pub fn places(&self) -> RwLockReadGuard<'_, Vec<Option<Arc<Link>>>> {
        self.translation.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Locks the translation table for writing.
    pub fn places_mut(&self) -> RwLockWriteGuard<'_, Vec<Option<Arc<Link>>>> {
        self.translation.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Registers the segment of an endpoint, if it has one, so that peers may write it.
fn register(
    domain: &Domain,
    segment: Option<&SegmentMemory>,
) -> Result<Option<Registered>, RegisterError> {
    let registered = match segment {
        Some(SegmentMemory::Own(region)) => {
            domain.register(region.clone(), Rights::REMOTE_WRITE)?
        }
        Some(SegmentMemory::Shared(memory)) => {
            domain.register_shared(memory.clone(), Rights::REMOTE_WRITE)?
        }
        None => return Ok(None),
    };
    Ok(Some(registered))
}

/// Returns how a link ends that this side has ended.
pub(super) fn left() -> Ending {
    Ending::Left { private: Private::default() }
}

/// Returns a number that nobody can guess.
fn unguessable() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    // The standard library seeds the hasher from the system.
    RandomState::new().hash_one(0)
}
