//! A NIC, its connection manager, and what their events mean for queue pairs.
//!
//! Whoever has the NIC in hand has all of this, and nothing here waits.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use doorbell_core::cm::{self, ConnectionManager, Datagram};
use doorbell_core::connect::Route;
use doorbell_core::encap::{Path, PathId};
use doorbell_core::nic::{
    self, AddressId, Cause, Change, CompletionQueue, CompletionQueueId, Event, Nic, ResourceError,
    Seed, SharedReceiveQueueId,
};
use doorbell_core::time::Time;
use doorbell_core::wire::cm::RejectReason;
use doorbell_core::wire::{CaGuid, PathMtu, Qpn};
use doorbell_transports::Grant;
use doorbell_transports::sharing::{self, Membership};
use tokio::sync::broadcast;

use super::errands::{Errand, Errands, Leaving};
use super::grants::Grants;
use crate::adapter::Traffic;
use crate::completions::Bell;
use crate::connect::{Calls, Listeners, Listening, Private};
use crate::error::NicError;
use crate::events::AsyncEvent;
use crate::pair::{Ending, Link, Pair, Stand};

/// The way to a peer's host, which many connections share.
pub(crate) type Way = Arc<Route>;

/// The connection manager of a NIC.
pub(crate) type Manager = ConnectionManager<Way>;

/// A NIC, its connection manager, and what their events mean.
pub(crate) struct Control {
    pub nic: Nic,
    pub manager: Manager,
    pub sharing: Option<Membership>,
    pub mtu: PathMtu,
    /// For how long peers that do not answer are waited for.
    pub patience: Duration,
    /// For how long connections are asked for that nobody answers.
    pub connect_timeout: Duration,
    /// Whether programs may want something done.
    pub errands: Arc<Errands>,
    /// What has come between sleeps.
    pub traffic: Traffic,
    /// Of all queue pairs whose requests are futures.
    pub completions: (CompletionQueueId, CompletionQueue),
    pub pairs: HashMap<Qpn, Arc<Pair>>,
    pub links: HashMap<Qpn, Arc<Link>>,
    pub queues: HashMap<CompletionQueueId, Arc<Bell>>,
    pub calls: Calls,
    pub listeners: Listeners,
    pub events: broadcast::Sender<AsyncEvent>,
    /// Memory of peers that is mapped here, and who waits for some.
    pub grants: Grants,
    paths: Paths,
    /// Whether a peer is about to hear that a connection is over.
    pub parts: bool,
    /// Whether somebody was woken since this was last taken.
    pub woke: bool,
    /// When to hear the other processes of the interface next.
    shares_at: Time,
    /// What the NIC had no room for.
    waits: Option<Datagram<Way>>,
    /// Queue pairs that broke, whose peers are told when they had the NIC's own answer.
    broke: Vec<Arc<Link>>,
    /// Queue pairs whose programs have let go of them.
    leaving: Vec<Qpn>,
    /// Completion queues of which the same is true, until no queue pair ends there any more.
    left: Vec<(CompletionQueueId, CompletionQueue)>,
    /// And shared receive queues.
    left_shared: Vec<SharedReceiveQueueId>,
}

/// The most events that wait for a program that does not take them.
const EVENTS: usize = 1024;

/// How often the other processes of an interface are heard while turns are taken: it takes system
/// calls. Whoever sleeps is woken by them.
const SHARES_EVERY: Duration = Duration::from_millis(1);

/// The numbers of paths: packets of two queue pairs share a frame if theirs lead to the same host.
#[derive(Default)]
struct Paths {
    /// The number of each way, and how many queue pairs go it.
    known: HashMap<Way, (PathId, usize)>,
    last: u32,
    /// Which of the two numbers for lone datagrams the last one took: 0 or 1.
    alone: u32,
}

impl Paths {
    /// The first of the two numbers that paths of lone datagrams take in turn. The paths of queue
    /// pairs have the numbers below.
    const FIRST_ALONE: u32 = u32::MAX - 1;

    fn take(&mut self, way: &Way) -> Path {
        let (id, users) = self.known.entry(way.clone()).or_insert_with(|| {
            self.last = (self.last + 1) % Self::FIRST_ALONE;
            (PathId(self.last), 0)
        });
        *users += 1;
        way.path(*id)
    }

    /// Returns the path of a datagram that shares no frame with the packet sent before it: its
    /// number is no queue pair's, and not that of the last lone datagram, which may have gone to
    /// another host.
    fn alone(&mut self, way: &Way) -> Path {
        self.alone ^= 1;
        way.path(PathId(Self::FIRST_ALONE + self.alone))
    }

    fn give_back(&mut self, way: &Way) {
        let Some((_, users)) = self.known.get_mut(way) else { return };
        *users -= 1;
        if *users == 0 {
            self.known.remove(way);
        }
    }
}

/// What a NIC's device, and its program, say of it.
pub(crate) struct Setting {
    /// If the interface is shared.
    pub sharing: Option<Membership>,
    pub mtu: PathMtu,
    /// For how long peers that do not answer are waited for.
    pub patience: Duration,
    /// For how long connections are asked for that nobody answers.
    pub connect_timeout: Duration,
}

impl Control {
    pub fn new(
        nic: Nic,
        manager: Manager,
        completions: (CompletionQueueId, CompletionQueue),
        Setting { sharing, mtu, patience, connect_timeout }: Setting,
    ) -> Self {
        Self {
            nic,
            manager,
            sharing,
            mtu,
            patience,
            connect_timeout,
            errands: Arc::default(),
            traffic: Traffic::default(),
            completions,
            pairs: HashMap::new(),
            links: HashMap::new(),
            queues: HashMap::new(),
            calls: Calls::default(),
            listeners: Listeners::default(),
            events: broadcast::Sender::new(EVENTS),
            grants: Grants::default(),
            paths: Paths::default(),
            parts: false,
            woke: false,
            shares_at: Time::ZERO,
            waits: None,
            broke: Vec::new(),
            leaving: Vec::new(),
            left: Vec::new(),
            left_shared: Vec::new(),
        }
    }

    /// A NIC that has no connections, and no room for more than one.
    pub fn without_connections(mtu: PathMtu) -> Result<Self, NicError> {
        let seed = || Seed::from_number(0);
        let config = nic::Config { queue_pairs: 1, registrations: 1, ..nic::Config::default() };
        let mut nic = Nic::new(config, seed())?;
        let completions = nic.completion_queue(2)?;
        let manager = cm::Config { connections: 1, ..cm::Config::new(CaGuid(0)) };
        let manager = ConnectionManager::new(manager, seed())?;
        let (patience, connect_timeout) = (Duration::ZERO, Duration::ZERO);
        let setting = Setting { sharing: None, mtu, patience, connect_timeout };
        Ok(Self::new(nic, manager, completions, setting))
    }

    /// Tells the time, and does what it has come for.
    pub fn advance(&mut self, now: Time) {
        self.nic.advance(now);
        self.manager.advance(now);
        if self.sharing.is_some() && now >= self.shares_at {
            self.shares_at = now + SHARES_EVERY;
            self.hear_others();
        }
        if !self.is_clear() {
            self.clear();
        }
    }

    /// Has the other processes of the interface heard at the next look at the clock.
    pub fn share_soon(&mut self) {
        self.shares_at = Time::ZERO;
    }

    pub fn next_timeout(&self) -> Option<Time> {
        [self.nic.next_timeout(), self.manager.next_timeout()].into_iter().flatten().min()
    }

    /// Hands completions of requests that are futures to whoever awaits them. Whether somebody was
    /// woken.
    #[inline]
    pub fn dispatch(&mut self) -> bool {
        let mut woke = false;
        while let Some(done) = self.completions.1.poll_in_place() {
            // Of one that was dropped, nobody hears.
            if let Some(pair) = self.pairs.get(&done.qpn) {
                woke |= pair.complete(done);
            }
        }
        woke
    }

    /// Does what programs want done, and what the NIC, the manager and the other processes of the
    /// interface tell of.
    #[inline]
    pub fn attend(&mut self) {
        if self.errands.any() {
            self.run_errands();
        }
        if !self.broke.is_empty() {
            self.part();
        }
        while let Some(event) = self.nic.event() {
            self.hear(event);
        }
        self.manage();
    }

    pub fn granted(&mut self, grant: Grant) {
        self.grants.arrive(grant);
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Completion(queue) => {
                if let Some(bell) = self.queues.get(&queue) {
                    self.woke |= bell.ring();
                }
            }
            Event::Broken(qpn, cause) => self.broken(qpn, cause),
            Event::Established(qpn) => {
                if let Some(id) = self.links.get(&qpn).and_then(|link| link.ways(|ways| ways.id)) {
                    // One that stands already is not changed by it.
                    let _ = self.manager.arrived(id);
                }
            }
            // None is told to.
            Event::Drained(_) => {}
            Event::ReceivesLow(queue) => self.tell(AsyncEvent::ReceivesLow(queue)),
            Event::PathChanged(qpn) => self.tell(AsyncEvent::PathChanged(qpn)),
            Event::LastReceive(qpn) => {
                if self.links.get(&qpn).is_none_or(|link| link.now_had_last_receive()) {
                    self.tell(AsyncEvent::LastReceive(qpn));
                }
            }
        }
    }

    /// That nobody listens is no error.
    fn tell(&self, event: AsyncEvent) {
        let _ = self.events.send(event);
    }

    /// Whether there is more to [attend](Self::attend) to, when the NIC has sent what it owes.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.nic.has_events() || !self.broke.is_empty()
    }

    /// A queue pair is broken: the peer is told, for it may not know. But not yet: that would
    /// overtake the refusal of its request, by which it knows why.
    fn broken(&mut self, qpn: Qpn, cause: Cause) {
        let Some(link) = self.links.get(&qpn).cloned() else { return };
        if cause != Cause::Told {
            tracing::debug!(%qpn, %cause, "broke");
            let ends = link.end(Ending::Broken(cause));
            self.tell(AsyncEvent::Broken(qpn, cause));
            if ends {
                self.tell(AsyncEvent::Ended(qpn));
            }
        }
        self.broke.push(link);
    }

    #[cold]
    fn part(&mut self) {
        for link in std::mem::take(&mut self.broke) {
            // Whoever waits for messages has heard by now which receive it broke over, if one.
            if let Stand::Ended(_) = link.stand() {
                self.told_over(&link);
            }
            self.calls.give_up(&link, &mut self.manager);
        }
    }
}

/// Connections.
impl Control {
    /// Carries datagrams between the manager and the NIC, and does what the manager's events say.
    #[inline]
    pub fn manage(&mut self) {
        while let Some(received) = self.nic.management() {
            let way = self.way(Route::back(&received));
            self.manager.receive(&way, &received.bytes);
        }
        while let Some(event) = self.manager.event() {
            self.managed(event);
        }
        while let Some(datagram) = self.waits.take().or_else(|| self.manager.transmit()) {
            let path = self.paths.alone(&datagram.way);
            if self.nic.manage(path, datagram.bytes).is_err() {
                self.waits = Some(datagram);
                break;
            }
        }
    }

    #[cold]
    fn managed(&mut self, event: cm::Event<Way>) {
        match event {
            cm::Event::Asked { id, way, request, extensions, private } => {
                let asked =
                    crate::connect::Asked { id, way, request, extensions, private: private.into() };
                if let Err(reason) = self.listeners.ask(asked, self.mtu) {
                    // What was asked is there, and undecided.
                    let _ = self.manager.reject(id, reason, &[]);
                }
            }
            cm::Event::Replied { id, reply, extensions, private } => {
                crate::connect::replied(self, (id, &reply, extensions), private);
            }
            cm::Event::Established { id, private } => {
                crate::connect::established(self, id, private);
            }
            cm::Event::Failed { id, why } => {
                self.listeners.forget(id);
                self.calls.failed(id, why);
            }
            cm::Event::Ended { id, why } => {
                if let Some(link) = self.calls.link(id) {
                    self.end(&link, Ending::of(why));
                    let _ = self.nic.change(link.qpn, Change::Error);
                }
            }
            cm::Event::Claimed { id } => {
                if let Some(link) = self.calls.link(id) {
                    self.nic.probe(link.qpn);
                }
            }
            cm::Event::Newcomer { way, qpn } => self.nic.suspect(&way.path(PathId(0)), qpn),
            cm::Event::Released { id, .. } => {
                self.listeners.forget(id);
                self.released(id);
                self.clear();
            }
        }
    }

    /// A connection is over: whoever waits for its messages is told.
    pub fn end(&mut self, link: &Link, ending: Ending) {
        if link.end(ending) {
            self.tell(AsyncEvent::Ended(link.qpn));
        }
        self.told_over(link);
    }

    fn told_over(&mut self, link: &Link) {
        if let Some(pair) = self.pairs.get(&link.qpn) {
            pair.end();
        }
        self.woke = true;
    }

    /// A way to keep, once for all that go the very same.
    pub fn way(&self, route: Route) -> Way {
        let known = self.paths.known.get_key_value(&route).map(|(known, _)| known);
        match known.filter(|known| known.way() == route.way()) {
            Some(known) => known.clone(),
            None => Arc::new(route),
        }
    }

    /// The path of a queue pair to a peer, numbered.
    pub fn path(&mut self, link: &Link, way: &Way) -> Path {
        let path = self.paths.take(way);
        if let Some((old, _)) = link.ways(|ways| ways.path.replace((way.clone(), path.id()))) {
            self.paths.give_back(&old);
        }
        path
    }

    /// Keeps the way to where datagrams are sent.
    pub fn address(&mut self, way: &Way) -> Result<AddressId, ResourceError> {
        let path = self.paths.take(way);
        self.nic.address(path).inspect_err(|_| self.paths.give_back(way))
    }

    /// Hears the other processes of the interface.
    #[cold]
    pub fn hear_others(&mut self) {
        use sharing::Event::{
            BecameOwner, Granted, Joined, Left, Listens, StopsListening, Taken, Welcome,
        };
        while let Some(event) = self.sharing.as_mut().and_then(Membership::turn) {
            let noted = match event {
                Welcome => Ok(()),
                BecameOwner => {
                    self.manager.set_owner(true);
                    Ok(())
                }
                Joined(tag) => self.manager.set_vacant(tag, false),
                Left(tag) => self.manager.set_vacant(tag, true),
                Listens(service) => self.manager.others_listen(service, true),
                StopsListening(service) => self.manager.others_listen(service, false),
                Granted(service) => {
                    self.listeners.granted(service, &mut self.manager);
                    Ok(())
                }
                Taken(service) => {
                    self.listeners.taken(service, &mut self.manager);
                    Ok(())
                }
            };
            if let Err(why) = noted {
                tracing::warn!(%why, "what another process of the interface says is not noted");
            }
        }
    }
}

/// What programs want done, and what is taken down.
impl Control {
    #[cold]
    fn run_errands(&mut self) {
        for errand in self.errands.take() {
            match errand {
                Errand::Arm(queue) => self.arm(queue),
                Errand::Deregister(lkey) => drop(self.nic.deregister(lkey)),
                Errand::Probe(link) => {
                    link.probe_begins();
                    self.nic.probe(link.qpn);
                }
                Errand::Unmap(id) => drop(self.nic.unmap(id)),
                Errand::Leave(leaving) => self.leave(leaving),
                Errand::DropCompletions(queue, end) => {
                    self.queues.remove(&queue);
                    self.left.push((queue, end));
                }
                Errand::DropShared(queue) => self.left_shared.push(queue),
                Errand::Forget(address, way) => {
                    let _ = self.nic.drop_address(address);
                    self.paths.give_back(&way);
                }
                Errand::Refuse(id) => {
                    let _ = self.manager.reject(id, RejectReason::CONSUMER, &[]);
                }
                Errand::Stop(listening) => self.stop(&listening),
            }
        }
        self.clear();
    }

    /// Has the reader of a completion queue woken by the next completion; at once, if one came
    /// since it looked: it sleeps by now, perhaps.
    fn arm(&mut self, queue: CompletionQueueId) {
        if self.nic.arm(queue, nic::Notify::Any) == Ok(true)
            && let Some(bell) = self.queues.get(&queue)
        {
            bell.ring();
        }
    }

    fn stop(&mut self, listening: &Listening) {
        let is_free = self.listeners.stop(listening, &mut self.manager);
        if is_free && let Some(sharing) = &mut self.sharing {
            sharing.stop(listening.service);
        }
    }

    /// A program lets go of a queue pair: what is posted is flushed, the peer is told, and when the
    /// connection's numbers have rested nothing is left of it.
    fn leave(&mut self, Leaving { link, ends }: Leaving) {
        self.parts = true;
        let _ = self.nic.change(link.qpn, Change::Error);
        drop(ends);
        self.end(&link, Ending::Left { private: Private::default() });
        self.calls.give_up(&link, &mut self.manager);
        self.pairs.remove(&link.qpn);
        self.leaving.push(link.qpn);
    }

    /// Ends all connections, of which the peers are told, and those that are being made.
    #[cold]
    pub fn end_all(&mut self) {
        self.parts = true;
        let links: Vec<_> = self.links.values().cloned().collect();
        for link in links {
            let _ = self.nic.change(link.qpn, Change::Error);
            self.end(&link, Ending::Left { private: Private::default() });
            self.calls.give_up(&link, &mut self.manager);
        }
    }

    /// Takes down what was let go, as far as nothing of it is left.
    #[cold]
    fn clear(&mut self) {
        let Self { leaving, left, left_shared, nic, links, paths, events, .. } = self;
        // Who has let go of it polls no more.
        for (_, queue) in left.iter_mut() {
            while queue.poll_in_place().is_some() {}
        }
        leaving.retain(|qpn| {
            let Some(link) = links.get(qpn) else { return false };
            if link.ways(|ways| ways.id.is_some()) {
                return true;
            }
            if let Err(ResourceError::Outstanding { .. }) = nic.drop_queue_pair(*qpn) {
                return true;
            }
            if let Some((way, _)) = link.ways(|ways| ways.path.take()) {
                paths.give_back(&way);
            }
            // It may be taken down before the NIC has told of this.
            if link.terms.shares_receives && link.now_had_last_receive() {
                let _ = events.send(AsyncEvent::LastReceive(*qpn));
            }
            links.remove(qpn);
            false
        });
        left_shared.retain(|queue| {
            let dropped = nic.drop_shared_receive_queue(*queue);
            matches!(dropped, Err(ResourceError::SharedInUse { .. }))
        });
        left.retain(|(queue, _)| {
            matches!(nic.drop_completion_queue(*queue), Err(ResourceError::InUse { .. }))
        });
    }

    /// How many queue pairs that programs have let go of still take a place.
    pub fn leaving(&self) -> usize {
        self.leaving.len()
    }

    /// Whether nothing is left of what programs have let go of.
    pub fn is_clear(&self) -> bool {
        self.leaving.is_empty() && self.left.is_empty() && self.left_shared.is_empty()
    }
}
