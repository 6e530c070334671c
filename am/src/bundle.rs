//! Bundles: a NIC's endpoints, which one poll serves.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError, Weak};
use std::task::Waker;
use std::thread::JoinHandle;

use doorbell_verbs::floor::{CompletionGauge, HeldNic, Look, Precedence};
use doorbell_verbs::{
    CompletionQueue, Domain, Nic, QueuesConfig, ResourceError, SharedReceiveQueue,
};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::buffers::locked;
use crate::companions::Companions;
use crate::costs::{Cost, span};
use crate::endpoint::{Endpoint, EndpointConfig};
use crate::error::OpenError;
use crate::handlers::Handlers;
use crate::handling::{Counters, handles};
use crate::link::Link;
use crate::news::{Inbox, News};
use crate::poller::{Awaiting, Looked, Looking, Poller};

/// How large a bundle is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BundleConfig {
    /// Receives that may be done and not handled yet, of all endpoints together: as many as they
    /// have receives, or peers are held up. At least 4, and one for each peer of the endpoints.
    pub receives: usize,
    /// Sends that may be done and not looked at: at least 1.
    pub sends: usize,
}

impl Default for BundleConfig {
    /// Room for 4096 of each.
    fn default() -> Self {
        Self { receives: 4096, sends: 4096 }
    }
}

/// The endpoints of a NIC that are served together: by whoever waits for something of one of them,
/// by [polling](Self::poll), and when nobody does either, by a task of the runtime that it was made
/// in.
///
/// Clones are handles to the same. When the last is dropped, and all its endpoints, it is gone.
#[derive(Clone)]
pub struct Bundle(Arc<Owner>);

/// What a bundle has counted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Statistics {
    /// Requests that came.
    pub requests: u64,
    /// Replies that came.
    pub replies: u64,
    /// Requests that were sent, and came back.
    pub returned: u64,
    /// Requests that were sent back, and replies that nobody handles.
    pub undelivered: u64,
    /// What came and is no message.
    pub malformed: u64,
    /// Handlers that panicked.
    pub panics: u64,
    /// Answers that handlers gave when their time was over.
    pub late: u64,
}

/// What ends a bundle.
pub(crate) struct Owner {
    pub shared: Arc<Shared>,
    /// Whether the NIC was opened for the bundle, and so ends with it.
    owns_nic: bool,
}

pub(crate) struct Shared {
    pub nic: Nic,
    pub counters: Arc<Counters>,
    pub runtime: Handle,
    /// What queue pairs of it are like.
    pub queues: QueuesConfig,
    poller: Mutex<Poller>,
    /// What came to the poller's completion queues, and how much of it was taken.
    gauges: [Gauge; 2],
    /// Whether there is anything else to do than to take it.
    stirred: AtomicBool,
    /// Whether a handler has woken tasks since the bundle was looked at.
    woken_by_handlers: AtomicBool,
    /// How often the bundle was looked at when something had come.
    looks: AtomicU64,
    inbox: Arc<Inbox>,
    companions: Companions,
    /// Links that hold what goes soon.
    holding: Mutex<Vec<Arc<Link>>>,
    any_holding: AtomicBool,
    /// Whom to wake so that it does.
    drive: Mutex<Option<Waker>>,
    /// The wakers of tasks that wait until a message was handled.
    waiting: Mutex<Vec<Waker>>,
    any_waiting: AtomicBool,
    endpoints: AtomicUsize,
    closed: AtomicBool,
    driver: Mutex<Option<AbortHandle>>,
    thread: Mutex<Option<Thread>>,
}

/// Of a completion queue, how many completions there were, and how many of them were taken.
struct Gauge {
    came: CompletionGauge,
    taken: AtomicUsize,
}

impl Gauge {
    fn of(queue: &CompletionQueue) -> Self {
        Self { came: queue.gauge(), taken: AtomicUsize::new(queue.taken()) }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.came.came() == self.taken.load(Ordering::Relaxed)
    }
}

/// A thread with a runtime, where there was none.
struct Thread {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Bundle {
    pub(crate) fn of(owner: Arc<Owner>) -> Self {
        Self(owner)
    }

    /// A bundle on a NIC, without endpoints. Where there is no runtime, a thread is started that
    /// has one.
    ///
    /// # Errors
    /// When the NIC has no room for its completion queues, or the configuration can't be.
    pub fn new(nic: &Nic, config: &BundleConfig) -> Result<Self, OpenError> {
        Self::make(nic, config, false)
    }

    /// A bundle on a NIC that was opened for it: the NIC's device is closed when the last handle to
    /// the bundle is dropped, and all its endpoints.
    pub(crate) fn with_nic(nic: &Nic, config: &BundleConfig) -> Result<Self, OpenError> {
        Self::make(nic, config, true)
    }

    fn make(nic: &Nic, config: &BundleConfig, owns_nic: bool) -> Result<Self, OpenError> {
        config.check()?;
        let receives = nic.completion_queue(config.receives)?;
        let sends = nic.completion_queue(config.sends)?;
        let counters = Arc::new(Counters::default());
        let inbox = Arc::new(Inbox::default());
        let (runtime, thread) = runtime()?;
        let shared = Arc::new(Shared {
            nic: nic.clone(),
            counters: counters.clone(),
            runtime,
            queues: QueuesConfig::new(&sends).receives_to(&receives),
            gauges: [Gauge::of(&receives), Gauge::of(&sends)],
            stirred: AtomicBool::new(false),
            woken_by_handlers: AtomicBool::new(false),
            looks: AtomicU64::new(0),
            poller: Mutex::new(Poller::new([receives, sends], inbox.clone(), counters)),
            inbox,
            companions: Companions::default(),
            holding: Mutex::default(),
            any_holding: AtomicBool::new(false),
            drive: Mutex::default(),
            waiting: Mutex::default(),
            any_waiting: AtomicBool::new(false),
            endpoints: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            driver: Mutex::default(),
            thread: Mutex::new(thread),
        });
        let driven = shared.clone();
        let driver = shared.runtime.spawn(async move {
            driven.nic.wait_for(Drive { shared: &driven, woke: false }).await;
        });
        *locked(&shared.driver) = Some(driver.abort_handle());
        Ok(Self(Arc::new(Owner { shared, owns_nic })))
    }

    /// Has each of several bundles, on different NICs of one process, served whenever one of the
    /// others is: by whoever polls or waits for something of it, or by its task. A program that
    /// reaches some peers over shared memory and others over a network waits at one bundle for
    /// messages of all. The bundles stay united for as long as they live.
    ///
    /// ```
    /// use doorbell::am::{Bundle, BundleConfig};
    /// use doorbell::verbs::{Config, Nic};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let near = Nic::open("shm", Config::default())?;
    /// let far = Nic::open("udp:127.0.0.1:0", Config::default())?;
    /// let near = Bundle::new(&near, &BundleConfig::default())?;
    /// let far = Bundle::new(&far, &BundleConfig::default())?;
    /// Bundle::unite(&[near.clone(), far.clone()]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// When one of the bundles is united with others already, or is given twice.
    pub fn unite(bundles: &[Self]) {
        if bundles.len() < 2 {
            return;
        }
        for (at, bundle) in bundles.iter().enumerate() {
            let others = bundles.iter().enumerate().filter(|(other, _)| *other != at);
            let others = others.map(|(_, other)| other.0.shared.clone());
            assert!(
                !others.clone().any(|other| Arc::ptr_eq(&other, &bundle.0.shared)),
                "a bundle can't be united with itself"
            );
            let united = bundle.0.shared.companions.set(others);
            assert!(united, "{bundle:?} is united with other bundles already");
        }
    }

    /// Adds an endpoint.
    ///
    /// # Errors
    /// When its name is taken, the NIC has no room for it, or the configuration can't be.
    pub async fn endpoint<S>(
        &self,
        handlers: Handlers<S>,
        config: EndpointConfig,
    ) -> Result<Endpoint, OpenError> {
        Endpoint::open_in(self.0.clone(), handlers.tables, config).await
    }

    /// Handles what has come to any of the endpoints, for which the NIC takes a turn if nothing has
    /// yet; without `requests`, replies only, and requests wait. How many messages were handled.
    ///
    /// Nobody needs to: who waits for something of an endpoint does. It is for programs that say
    /// themselves when handlers may run. In a handler it does nothing.
    pub fn poll(&self, requests: bool) -> usize {
        let shared = &self.0.shared;
        if handles() {
            return 0;
        }
        let _notification = span(Cost::Notification);
        let looked = shared.look(requests, HeldNic::none(), None);
        if looked.handled > 0 {
            return looked.handled;
        }
        let _base = span(Cost::Base);
        let found = shared.nic.turn_and_find(|nic| {
            let handled = shared.look(requests, nic, None).handled;
            (handled > 0).then_some(handled)
        });
        found.unwrap_or(0)
    }

    /// Waits until something was handled, here or by another who waits.
    pub async fn wait(&self) {
        let before = self.0.shared.handled();
        self.wait_until(|| (self.0.shared.handled() != before).then_some(())).await;
    }

    /// Serves the endpoints until `condition` gives something, and returns that.
    ///
    /// The condition is tried after each turn of the NIC while this spins, and once more after each
    /// message that was handled once this sleeps. So it must depend on what handlers do; a
    /// condition on memory that peers write without a message needs a bound on how long this may
    /// sleep, such as [`tokio::time::timeout`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    ///
    /// use doorbell::am::{Endpoint, Handlers, Notice};
    ///
    /// const ADD: Notice<u64> = Notice::new("add");
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let sum = Arc::new(AtomicU64::new(0));
    /// let adds = Handlers::with(sum.clone()).on(ADD, |sum, _, term| {
    ///     sum.fetch_add(term, Relaxed);
    /// });
    /// let server = Endpoint::open("shm", adds).await?;
    /// let client = Endpoint::open("shm", Handlers::new()).await?;
    /// let peer = client.connect(server.name()).await?;
    /// peer.notify(ADD, 2).await?;
    /// peer.notify(ADD, 3).await?;
    /// server.bundle().wait_until(|| (sum.load(Relaxed) == 5).then_some(())).await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn wait_until<T>(&self, condition: impl FnMut() -> Option<T>) -> T {
        self.wait_until_woken(condition, |_| ()).await
    }

    /// Serves the endpoints until `condition` gives something, as [`wait_until`](Self::wait_until)
    /// does, and sleeps only behind `arm`, which has the waker woken by whatever else the condition
    /// depends on. For layers of this workspace that stand on Active Messages.
    #[doc(hidden)]
    #[inline]
    pub fn wait_until_woken<T>(
        &self,
        condition: impl FnMut() -> Option<T>,
        arm: impl FnMut(&Waker),
    ) -> impl Future<Output = T> {
        let shared = &self.0.shared;
        shared.nic.wait_for(Handled { shared, condition, arm, woke: false })
    }

    /// The runtime that serves it.
    #[doc(hidden)]
    pub fn runtime(&self) -> &Handle {
        &self.0.shared.runtime
    }

    /// The bundle, for whoever wakes those who wait and does not keep it.
    pub(crate) fn downgrade(&self) -> Weak<Shared> {
        Arc::downgrade(&self.0.shared)
    }

    /// What was counted.
    pub fn statistics(&self) -> Statistics {
        let Counters { requests, replies, returned, undelivered, malformed, panics, late } =
            &*self.0.shared.counters;
        let [requests, replies, returned, undelivered, malformed, panics, late] =
            [requests, replies, returned, undelivered, malformed, panics, late]
                .map(|counter| counter.load(Ordering::Relaxed));
        Statistics { requests, replies, returned, undelivered, malformed, panics, late }
    }

    /// Runs a future on this thread, without a runtime, and serves the endpoints meanwhile.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.0.shared.nic.block_on(future)
    }
}

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.0.shared.nic.address();
        f.debug_struct("Bundle").field("address", &format_args!("{address}")).finish()
    }
}

/// The runtime here, or a thread that has one.
fn runtime() -> Result<(Handle, Option<Thread>), OpenError> {
    if let Ok(here) = Handle::try_current() {
        return Ok((here, None));
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let (stop, stopped) = oneshot::channel();
    let run = move || {
        let _ = runtime.block_on(stopped);
    };
    let thread = std::thread::Builder::new().name("doorbell-am".to_owned()).spawn(run)?;
    Ok((handle, Some(Thread { stop, thread })))
}

impl Shared {
    /// Whether memory of peers can be mapped here.
    pub fn maps(&self) -> bool {
        self.nic.capabilities().mapping
    }

    /// The number of a new endpoint.
    pub fn number(&self) -> usize {
        self.endpoints.fetch_add(1, Ordering::Relaxed)
    }

    /// A queue of receives that complete here.
    pub fn shared_receives(
        &self,
        domain: &Domain,
        depth: usize,
    ) -> Result<SharedReceiveQueue, ResourceError> {
        let queue = locked(&self.poller).shared_receives(domain, depth);
        self.close_behind();
        queue
    }

    pub fn tell(&self, news: News) {
        self.inbox.tell(news);
        // Of links that were just being made, nobody hears any more.
        if self.closed.load(Ordering::Acquire) {
            drop(self.inbox.take());
        }
        self.stir();
    }

    /// Tells of a link that is just being made: what has come so far is not its.
    pub fn tell_of(&self, link: Arc<Link>) {
        let [receives, sends] = &self.gauges;
        self.tell(News::Link(link, [receives.came.came(), sends.came.came()]));
    }

    /// Has the poller look, even if nothing comes.
    pub fn stir(&self) {
        self.stirred.store(true, Ordering::Release);
        self.wake_driver();
    }

    /// The number of the look that goes on.
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// How many messages were handled, ever, by this bundle and those that it is united with.
    fn handled(&self) -> u64 {
        self.handled_alone() + self.companions.handled()
    }

    /// How many messages this bundle has handled, ever.
    pub fn handled_alone(&self) -> u64 {
        let Counters { requests, replies, returned, .. } = &*self.counters;
        [requests, replies, returned].iter().map(|counter| counter.load(Ordering::Relaxed)).sum()
    }

    /// Notes that a handler has woken tasks, which are to run before the bundle is looked at again.
    pub fn note_woken(&self) {
        self.woken_by_handlers.store(true, Ordering::Relaxed);
    }

    /// Handles what has come to this bundle, and to those that it is united with.
    #[inline]
    pub fn look<'r>(
        &self,
        requests: bool,
        nic: HeldNic<'r>,
        awaits: Option<Awaiting<'r>>,
    ) -> Looked {
        let looked = self.look_alone(requests, nic, awaits);
        if !self.companions.are_there() {
            return looked;
        }
        let beyond = self.companions.look(requests);
        Looked { handled: looked.handled + beyond.handled, woke: looked.woke | beyond.woke }
    }

    /// Whether there is anything to do but to handle what has come.
    pub fn is_stirred(&self) -> bool {
        self.stirred.load(Ordering::Acquire)
    }

    /// Handles what has come to this bundle, unless another thread does so. Most looks find
    /// nothing, and so it is seen without a lock that there is nothing.
    #[inline]
    pub fn look_alone<'r>(
        &self,
        requests: bool,
        nic: HeldNic<'r>,
        awaits: Option<Awaiting<'r>>,
    ) -> Looked {
        let still = !self.is_stirred();
        if still && self.gauges.iter().all(Gauge::is_empty) {
            return Looked::default();
        }
        self.handle(requests, Looking::new(nic, awaits))
    }

    fn handle(&self, requests: bool, looking: Looking<'_>) -> Looked {
        let _notification = span(Cost::Notification);
        let mut poller = match self.poller.try_lock() {
            Ok(poller) => poller,
            Err(TryLockError::WouldBlock) => {
                self.flush();
                return Looked::default();
            }
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        };
        // Whoever stirred it before this has said why; who does so from here on has it looked at
        // again.
        if self.stirred.load(Ordering::Acquire) {
            self.stirred.swap(false, Ordering::AcqRel);
        }
        // Only whoever has the poller counts.
        self.looks.store(self.looks.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let mut looked = poller.look(requests, looking);
        for (gauge, taken) in self.gauges.iter().zip(poller.taken()) {
            gauge.taken.store(taken, Ordering::Relaxed);
        }
        if poller.goes_on() {
            self.stirred.store(true, Ordering::Relaxed);
        }
        drop(poller);
        self.flush();
        self.close_behind();
        if looked.handled > 0 && self.woken_by_handlers.load(Ordering::Relaxed) {
            self.woken_by_handlers.store(false, Ordering::Relaxed);
            looked.woke = true;
        }
        if looked.handled > 0 && self.any_waiting.load(Ordering::Acquire) {
            looked.woke |= self.call_all();
        }
        looked
    }

    /// A link holds something: that is to go when this is looked at next, or before.
    pub fn holds(&self, link: Arc<Link>) {
        locked(&self.holding).push(link);
        self.any_holding.store(true, Ordering::Release);
        self.stirred.store(true, Ordering::Release);
        // What is handled now is looked at to the end.
        if !handles() {
            self.wake_driver();
        }
    }

    /// Has the bundle looked at when other tasks are let run, if nobody does before.
    fn wake_driver(&self) {
        if let Some(driver) = locked(&self.drive).take() {
            driver.wake();
        }
    }

    /// Sends what links hold, unless this is a handler, behind which it goes.
    #[inline]
    fn flush(&self) {
        if self.any_holding.load(Ordering::Acquire) && !handles() {
            self.flush_all();
        }
    }

    /// Out of line, for lone messages hold nothing.
    #[inline(never)]
    fn flush_all(&self) {
        let mut links = {
            let mut holding = locked(&self.holding);
            self.any_holding.store(false, Ordering::Relaxed);
            std::mem::take(&mut *holding)
        };
        links.drain(..).for_each(|link| link.flush());
        // The list's memory serves again, for this happens often.
        let mut holding = locked(&self.holding);
        if holding.capacity() == 0 {
            *holding = links;
        }
    }

    /// Whoever was at the poller does what others could not meanwhile.
    #[inline]
    fn close_behind(&self) {
        if self.closed.load(Ordering::Acquire) {
            self.close();
        }
    }

    /// Lets go of what would keep this, unless somebody is at it who does so
    /// [behind](Self::close_behind).
    #[cold]
    fn close(&self) {
        let held = std::mem::take(&mut *locked(&self.holding));
        drop(held);
        match self.poller.try_lock() {
            Ok(mut poller) => poller.close(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().close(),
            Err(TryLockError::WouldBlock) => {}
        }
        // What handlers keep may tell something when it goes.
        drop(self.inbox.take());
    }

    /// Has the waker woken when a message was handled.
    pub fn wake_behind_handlers(&self, waker: &Waker) {
        let mut waiting = locked(&self.waiting);
        if !waiting.iter().any(|there| there.will_wake(waker)) {
            waiting.push(waker.clone());
        }
        self.any_waiting.store(true, Ordering::Release);
    }

    /// Has all who [wait](Bundle::wait_until) try their conditions again, of which something has
    /// changed that is not a handler's doing.
    pub fn wake_waiting(&self) {
        // With the lock, so that whoever registers behind this sees what has changed.
        self.call_all();
    }

    #[cold]
    fn call_all(&self) -> bool {
        self.any_waiting.store(false, Ordering::SeqCst);
        let waiting = std::mem::take(&mut *locked(&self.waiting));
        let any = !waiting.is_empty();
        waiting.into_iter().for_each(Waker::wake);
        any
    }

    /// Has the waker called when something comes, or is to go.
    fn arm(&self, waker: &Waker) {
        *locked(&self.drive) = Some(waker.clone());
        match self.poller.try_lock() {
            Ok(mut poller) => poller.arm(waker),
            // Whoever is at it may be done before anything else comes.
            Err(_) => waker.wake_by_ref(),
        }
        self.close_behind();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Release);
        self.shared.close();
        if let Some(driver) = locked(&self.shared.driver).take() {
            driver.abort();
        }
        if let Some(Thread { stop, thread }) = locked(&self.shared.thread).take() {
            let _ = stop.send(());
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
        // Tasks that are being stopped have handles to the NIC until their runtime drops them.
        if self.owns_nic {
            self.shared.nic.close();
        }
    }
}

/// Serves the endpoints for as long as there are any.
struct Drive<'s> {
    shared: &'s Shared,
    woke: bool,
}

impl Look for Drive<'_> {
    type Found = ();

    #[inline]
    fn look(&mut self, nic: HeldNic<'_>) -> Option<()> {
        self.woke |= self.shared.look(true, nic, None).woke;
        None
    }

    fn precedence(&self) -> Precedence {
        Precedence::Serves
    }

    fn register(&mut self, waker: &Waker) {
        self.shared.arm(waker);
    }

    #[inline]
    fn woke(&mut self) -> bool {
        std::mem::take(&mut self.woke)
    }
}

/// Looks for what a condition gives, behind what handlers do.
struct Handled<'s, C, A> {
    shared: &'s Shared,
    condition: C,
    /// Has a waker woken by what else the condition depends on.
    arm: A,
    woke: bool,
}

impl<T, C: FnMut() -> Option<T>, A: FnMut(&Waker)> Look for Handled<'_, C, A> {
    type Found = T;

    #[inline]
    fn look(&mut self, nic: HeldNic<'_>) -> Option<T> {
        self.woke |= self.shared.look(true, nic, None).woke;
        (self.condition)()
    }

    fn register(&mut self, waker: &Waker) {
        self.shared.wake_behind_handlers(waker);
        self.shared.companions.register(waker);
        (self.arm)(waker);
    }

    fn woke(&mut self) -> bool {
        std::mem::take(&mut self.woke)
    }
}
