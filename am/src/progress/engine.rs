//! The progress engine of a bundle: one poller behind a lock, and what wakes whoever waits.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError, Weak};
use std::task::Waker;

use doorbell_verbs::floor::{HeldNic, Look, Precedence, locked};
use doorbell_verbs::{Domain, Nic, QueuesConfig, ResourceError, SharedReceiveQueue};
use tokio::runtime::Handle;

use super::companions::{Companions, Served};
use super::poller::Poller;
use super::resting::Resting;
use super::side_tasks::Runners;
use super::updates::{Inbox, Update};
use super::watched::Watched;
use crate::config::BundleConfig;
use crate::costs::{Cost, span};
use crate::dispatch::{Looked, Looking};
use crate::link::{Awaiting, Link, Owner, Progress};
use crate::receives::SparesBySize;
use crate::shared::{
    Counters, Deferral, Deferring, Gauge, Signals, handles, wake_later, wake_without_nic,
    yield_to_any,
};

/// The progress engine of a bundle.
pub(crate) struct Engine {
    pub nic: Nic,
    pub counters: Arc<Counters>,
    /// The runtime of the bundle's tasks.
    pub runtime: Handle,
    /// The configuration that queue pairs of the bundle start from.
    pub queues: QueuesConfig,
    pub signals: Arc<Signals<Link>>,
    pub(super) companions: Companions,
    pub(super) runners: Runners,
    /// The spare buffers of the endpoints.
    pub spares: SparesBySize,
    /// The endpoints and links that are told when connections end.
    pub watched: Watched,
    /// The endpoints whose receives rest once they are idle.
    pub(super) resting: Resting,
    poller: Mutex<Poller>,
    inbox: Arc<Inbox>,
    /// The wakers of tasks that wait until a message was handled.
    waiting: Mutex<Vec<Waker>>,
    any_waiting: AtomicBool,
    /// The number of the next endpoint.
    endpoints: AtomicUsize,
    closed: AtomicBool,
}

impl Engine {
    /// Makes the engine of a bundle, with completion queues on the NIC.
    pub fn new(nic: &Nic, config: &BundleConfig, runtime: Handle) -> Result<Self, ResourceError> {
        let receives = nic.growing_completion_queue(config.receives)?;
        let sends = nic.growing_completion_queue(config.sends)?;
        let counters = Arc::new(Counters::default());
        let inbox = Arc::new(Inbox::default());
        Ok(Self {
            nic: nic.clone(),
            counters: counters.clone(),
            runtime,
            queues: QueuesConfig::new(&sends).receives_to(&receives),
            signals: Arc::new(Signals::new([Gauge::of(&receives), Gauge::of(&sends)])),
            companions: Companions::default(),
            runners: Runners::default(),
            spares: SparesBySize::default(),
            watched: Watched::default(),
            resting: Resting::default(),
            poller: Mutex::new(Poller::new([receives, sends], inbox.clone(), counters)),
            inbox,
            waiting: Mutex::default(),
            any_waiting: AtomicBool::new(false),
            endpoints: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        })
    }

    /// Returns the number of a new endpoint.
    pub fn next_number(&self) -> usize {
        self.endpoints.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes a queue of receives that complete here.
    pub fn shared_receives(
        &self,
        domain: &Domain,
        depth: usize,
    ) -> Result<SharedReceiveQueue, ResourceError> {
        let queue = locked(&self.poller).shared_receives(domain, depth);
        self.close_if_closed();
        queue
    }

    /// Tells the poller of a change of endpoints or links.
    pub fn tell(&self, update: Update) {
        self.inbox.put(update);
        // A closed engine takes in no updates, of links that were being made, for example.
        if self.closed.load(Ordering::Acquire) {
            drop(self.inbox.take());
        }
        self.signals.stir();
    }

    /// Has the receives of an endpoint rest once the endpoint is idle.
    pub fn rest_when_idle(&self, owner: Weak<dyn Owner>) {
        self.resting.when_idle(owner, &self.runtime);
    }

    /// Runs `does` while no message is handled, unless a thread holds the poller. Returns whether it
    /// ran.
    pub fn between_messages(&self, does: impl FnOnce()) -> bool {
        let _deferral = Deferral::new();
        let Ok(poller) = self.poller.try_lock() else { return false };
        does();
        drop(poller);
        self.close_if_closed();
        true
    }

    /// Has the poller drop the handlers of an endpoint that was closed, unless a thread holds the
    /// poller, which does so then. The handlers may own what keeps the bundle, and nobody looks at
    /// a bundle any more whose runtime has ended.
    #[cold]
    pub fn drop_closed(&self) {
        let _deferral = Deferral::new();
        let mut poller = match self.poller.try_lock() {
            Ok(poller) => poller,
            Err(TryLockError::WouldBlock) => return,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        };
        while poller.take_in_quietly() {}
        drop(poller);
        self.close_if_closed();
    }

    /// Tells the poller of a link that is being made. No completion so far is the link's own.
    pub fn tell_of_link(&self, link: Arc<Link>) {
        self.watched.add_link(&link);
        let since = self.signals.gauges.each_ref().map(Gauge::came);
        self.tell(Update::Link(link, since));
    }

    /// Returns how many messages this bundle and those united with it have ever handled.
    pub(super) fn handled_by_all(&self) -> u64 {
        self.counters.handled() + self.companions.handled()
    }

    /// Handles what has come to this bundle, and to those that it is united with.
    #[inline]
    pub fn look<'r>(
        &self,
        requests: bool,
        nic: HeldNic<'r>,
        awaits: Option<Awaiting<'r>>,
    ) -> Looked {
        let is_held = nic.is_held();
        let mut looked = self.look_alone(requests, nic, awaits);
        if self.companions.are_there() {
            let beyond = self.companions.look(requests);
            looked.handled += beyond.handled;
            looked.woke |= beyond.woke;
        }
        if looked.woke && !is_held {
            wake_without_nic();
        }
        looked
    }

    /// Handles what has come to this bundle, unless another thread does so. Fast path: most looks
    /// find nothing, which is seen without a lock.
    #[inline]
    fn look_alone<'r>(
        &self,
        requests: bool,
        nic: HeldNic<'r>,
        awaits: Option<Awaiting<'r>>,
    ) -> Looked {
        if self.signals.are_quiet_alone() {
            return Looked::default();
        }
        self.handle(requests, Looking::new(nic, awaits))
    }

    fn handle(&self, requests: bool, looking: Looking<'_>) -> Looked {
        let _notification = span(Cost::Notification);
        // Ends behind the poller's lock.
        let _deferral = Deferral::new();
        let mut poller = match self.poller.try_lock() {
            Ok(poller) => poller,
            Err(TryLockError::WouldBlock) => {
                self.flush();
                return Looked::default();
            }
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        };
        self.signals.begin_look();
        let mut looked = poller.look(requests, looking);
        for (gauge, taken) in self.signals.gauges.iter().zip(poller.taken()) {
            gauge.set_taken(taken);
        }
        if poller.goes_on() {
            self.signals.stir_again();
        }
        drop(poller);
        self.flush();
        self.close_if_closed();
        if looked.handled > 0 && self.signals.take_woken() {
            looked.woke = true;
        }
        if looked.handled > 0 && self.any_waiting.load(Ordering::Acquire) {
            looked.woke |= self.wake_all();
        }
        looked
    }

    /// Sends what links hold, unless this is a handler, behind which it leaves.
    #[inline]
    fn flush(&self) {
        if self.signals.any_holding() && !handles() {
            self.signals.flush_with(Link::flush);
        }
    }

    /// Closes a closed engine once more, for a thread that held the poller when it was closed.
    #[inline]
    fn close_if_closed(&self) {
        if self.closed.load(Ordering::Acquire) {
            self.close();
        }
    }

    /// Closes the engine, and drops what would keep it. A thread that holds the poller meanwhile
    /// does so when it is done.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.drop_all();
    }

    #[cold]
    fn drop_all(&self) {
        self.signals.clear();
        match self.poller.try_lock() {
            Ok(mut poller) => poller.close(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().close(),
            Err(TryLockError::WouldBlock) => {}
        }
        // What handlers own may put updates when it is dropped.
        drop(self.inbox.take());
    }

    /// Has all tasks that [wait](crate::Bundle::wait_until) try their conditions again, since
    /// something has changed that is not a handler's doing.
    pub fn wake_waiting(&self) {
        // With the lock, so that a task that registers behind this sees what has changed.
        self.wake_all();
    }

    /// Wakes all tasks that wait for a handler's doing, outside of all locks. Returns whether there
    /// were any.
    #[cold]
    fn wake_all(&self) -> bool {
        let _deferral = Deferral::new();
        self.any_waiting.store(false, Ordering::SeqCst);
        let waiting = std::mem::take(&mut *locked(&self.waiting));
        let any = !waiting.is_empty();
        waiting.into_iter().for_each(wake_later);
        any
    }

    /// Serves the bundle for as long as it lives, and does the work of layers above.
    pub(super) async fn serve(&self) {
        /// How many turns after such work other tasks run, if nothing comes.
        const TURNS: [u32; 2] = [256, 16];
        /// After how much work without a pause other tasks run.
        const MOST_AT_ONCE: u32 = 64;
        let (mut turns_to_yield, mut at_once) = (None, 0);
        loop {
            let driver = Driver { engine: self, woke: false, turns_to_yield };
            Deferring(self.nic.wait_for(driver)).await;
            self.signals.take_ready();
            let woke = self.runners.run();
            turns_to_yield = Some(TURNS[usize::from(woke)]);
            at_once += 1;
            if at_once == MOST_AT_ONCE {
                at_once = 0;
                yield_to_any().await;
            }
        }
    }

    /// Has the waker woken when a completion comes, or a link holds something.
    fn arm(&self, waker: &Waker) {
        self.signals.set_driver(waker);
        match self.poller.try_lock() {
            Ok(mut poller) => poller.arm(waker),
            // The thread that holds the poller may be done before anything else comes.
            Err(_) => wake_later(waker.clone()),
        }
        self.close_if_closed();
    }
}

impl Progress for Engine {
    fn look<'r>(&self, nic: HeldNic<'r>, awaits: Option<Awaiting<'r>>) -> bool {
        Self::look(self, true, nic, awaits).woke
    }
}

impl Served for Engine {
    fn has_cheap_turns(&self) -> bool {
        self.nic.capabilities().mapping
    }

    fn is_stirred(&self) -> bool {
        self.signals.is_stirred()
    }

    fn look(&self, requests: bool, turn: bool) -> Looked {
        if !turn {
            return self.look_alone(requests, HeldNic::none(), None);
        }
        let mut looked = Looked::default();
        self.nic.turn_and_find(|nic| {
            looked = self.look_alone(requests, nic, None);
            (looked.handled > 0).then_some(())
        });
        looked
    }

    fn wake_behind_handlers(&self, waker: &Waker) {
        let mut waiting = locked(&self.waiting);
        if !waiting.iter().any(|there| there.will_wake(waker)) {
            drop(waiting);
            let waker = waker.clone();
            waiting = locked(&self.waiting);
            waiting.push(waker);
        }
        self.any_waiting.store(true, Ordering::Release);
    }

    fn handled(&self) -> u64 {
        self.counters.handled()
    }
}

/// The task that serves a bundle when nobody else does, for as long as the bundle lives. The wait
/// ends when layers above have work for the task.
pub(super) struct Driver<'e> {
    pub engine: &'e Engine,
    pub woke: bool,
    /// After how many turns other tasks are let run, if some may have been woken.
    pub turns_to_yield: Option<u32>,
}

impl Look for Driver<'_> {
    type Output = ();

    #[inline]
    fn look(&mut self, nic: HeldNic<'_>) -> Option<()> {
        self.woke |= self.engine.look(true, nic, None).woke;
        self.engine.signals.is_ready().then_some(())
    }

    fn precedence(&self) -> Precedence {
        Precedence::Serves
    }

    fn register(&mut self, waker: &Waker) {
        self.engine.arm(waker);
    }

    #[inline]
    fn woke(&mut self) -> bool {
        if let Some(turns) = &mut self.turns_to_yield {
            *turns = turns.saturating_sub(1);
            if *turns == 0 {
                self.turns_to_yield = None;
                return true;
            }
        }
        std::mem::take(&mut self.woke)
    }
}

/// A wait for what a condition gives, which is tried behind what handlers do.
pub(super) struct Conditional<'e, C, A> {
    pub engine: &'e Engine,
    pub condition: C,
    /// Has a waker woken by what else the condition depends on.
    pub arm: A,
    pub woke: bool,
}

impl<T, C: FnMut() -> Option<T>, A: FnMut(&Waker)> Look for Conditional<'_, C, A> {
    type Output = T;

    #[inline]
    fn look(&mut self, nic: HeldNic<'_>) -> Option<T> {
        self.woke |= self.engine.look(true, nic, None).woke;
        (self.condition)()
    }

    #[inline]
    fn peek(&mut self) -> Option<T> {
        (self.condition)()
    }

    fn register(&mut self, waker: &Waker) {
        self.engine.wake_behind_handlers(waker);
        self.engine.companions.register(waker);
        (self.arm)(waker);
    }

    fn woke(&mut self) -> bool {
        std::mem::take(&mut self.woke)
    }
}

/// A wait for what a condition gives, by whose waker the task is woken when it does. Handlers that
/// have nothing to do with the condition wake nobody, so thousands of tasks may wait.
pub(super) struct Armed<'e, C, A> {
    pub engine: &'e Engine,
    pub condition: C,
    /// Has a waker woken when the condition gives something.
    pub arm: A,
    pub woke: bool,
}

impl<T, C: FnMut() -> Option<T>, A: FnMut(&Waker)> Look for Armed<'_, C, A> {
    type Output = T;

    #[inline]
    fn look(&mut self, nic: HeldNic<'_>) -> Option<T> {
        self.woke |= self.engine.look(true, nic, None).woke;
        (self.condition)()
    }

    #[inline]
    fn peek(&mut self) -> Option<T> {
        (self.condition)()
    }

    fn register(&mut self, waker: &Waker) {
        (self.arm)(waker);
    }

    fn woke(&mut self) -> bool {
        std::mem::take(&mut self.woke)
    }
}
