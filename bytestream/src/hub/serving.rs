//! The hub: who hands out completions, and the background tasks that do so when no program waits.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::task::Waker;

use doorbell_verbs::floor::{Awaits, CompletionGauge, HeldNic, Look, Precedence, Prober, locked};
use doorbell_verbs::{
    AsyncEvent, CloseError, Connection, ConnectionState, Domain, Nic, OpenError, QueuesConfig,
    Rights, SendQueue,
};
use tokio::runtime::Handle;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::poller::Poller;
use crate::config::Config;
use crate::error::{Over, of_open, of_resource};
use crate::link::{Link, RESERVE};
use crate::shared::{Buffers, Shared};

/// The state of an endpoint that serves its streams.
pub(crate) struct Hub {
    pub shared: Arc<Shared>,
    pub domain: Domain,
    /// The configuration of the streams' queue pairs.
    pub queues: QueuesConfig,
    poller: Mutex<Poller>,
    /// Tells how many completions have ever come.
    came: CompletionGauge,
    /// How many completions the poller has ever taken.
    taken: AtomicUsize,
    /// Whether the poller has work other than new completions.
    stirred: AtomicBool,
    /// Links that have posted bytes without ringing the doorbell for them.
    holding: Mutex<Vec<Arc<Link>>>,
    any_holding: AtomicBool,
    /// The task that probes peers which owe an answer.
    prober: Prober,
    /// The waker of the background task that polls when no program does.
    driver: Mutex<Option<Waker>>,
    /// Whether the runtime of the hub's tasks has ended, and all streams with it.
    runtime_ended: AtomicBool,
    /// Whether the program closes the endpoint. Listeners watch this.
    closing: watch::Sender<bool>,
    /// The outcome of closing the endpoint, once that is done. Whoever closes the endpoint holds
    /// the lock.
    pub closed: tokio::sync::Mutex<Option<Result<(), CloseError>>>,
}

/// Keeps a hub running. Handles to the endpoint, listeners and streams share the owner; when the
/// last of them is dropped, the hub's tasks end.
pub(crate) struct Owner {
    pub hub: Arc<Hub>,
    tasks: [AbortHandle; 2],
    owns_nic: bool,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        // There are links left only if the runtime ended before their streams were closed.
        let links = self.hub.links();
        let queues: Vec<Option<SendQueue>> = links.iter().map(|link| link.take_queue()).collect();
        locked(&self.hub.poller).clear();
        let held = std::mem::take(&mut *locked(&self.hub.holding));
        drop((queues, held));
        // Tasks that are being stopped have handles to the NIC until their runtime drops them.
        if self.owns_nic {
            self.hub.shared.nic.close_blocking();
        }
    }
}

impl Owner {
    /// Makes a hub on a NIC, with tasks in the current runtime.
    /// The owner of a NIC that was opened for the hub closes that NIC when dropped.
    pub fn new(nic: &Nic, config: &Config, owns_nic: bool) -> io::Result<Self> {
        config.check()?;
        if nic.is_closed() {
            return Err(of_open(OpenError::NicClosed));
        }
        let no_runtime = |_| io::Error::other("byte streams are to be used in a Tokio runtime");
        let runtime = Handle::try_current().map_err(no_runtime)?;
        let completions = nic.completion_queue(config.completions).map_err(of_resource)?;
        let domain = nic.domain();
        let receives = domain.shared_receives_to(&completions, config.receives);
        let receives = receives.map_err(of_resource)?;
        let depth = config.messages() + RESERVE;
        let queues = QueuesConfig {
            send_depth: depth,
            receive_depth: 1,
            rights: Rights::NONE,
            ..QueuesConfig::new(&completions).share(&receives)
        };
        let (came, taken) = (completions.gauge(), AtomicUsize::new(completions.taken()));
        let hub = Arc::new(Hub {
            shared: Arc::new(Shared {
                nic: nic.clone(),
                config: config.clone(),
                buffers: Buffers::new(receives, config.segment, config.receives),
                runtime,
            }),
            domain,
            queues,
            poller: Mutex::new(Poller::new(completions)),
            came,
            taken,
            stirred: AtomicBool::new(false),
            holding: Mutex::default(),
            any_holding: AtomicBool::new(false),
            prober: Prober::default(),
            driver: Mutex::default(),
            runtime_ended: AtomicBool::new(false),
            closing: watch::Sender::new(false),
            closed: tokio::sync::Mutex::default(),
        });
        let driven = hub.clone();
        let drive = hub.shared.runtime.spawn(async move {
            driven.shared.nic.wait_for(Drive { hub: &driven, woke: false }).await;
        });
        let watch = hub.shared.runtime.spawn(watch(hub.clone(), nic.events()));
        Ok(Self { hub, tasks: [drive.abort_handle(), watch.abort_handle()], owns_nic })
    }
}

/// Streams that were written to wait for answers. How often a peer is probed is up to the stream's
/// [`Question`](crate::link::Link).
impl Awaits for Hub {
    fn prober(&self) -> &Prober {
        &self.prober
    }

    fn is_waiting(&self) -> bool {
        self.links().iter().any(|link| link.common.question.is_open())
    }

    fn probe(&self) {
        for link in self.links() {
            if link.common.question.tick() == Some(true) {
                link.common.connection.probe();
            }
        }
    }
}

impl Hub {
    /// Makes a link for a connection that is not established yet, so that the first messages find
    /// the link.
    pub fn enter(&self, connection: Connection) -> Arc<Link> {
        let link = locked(&self.poller).enter(&self.shared, connection);
        self.shared.buffers.promise(link.promised());
        link
    }

    /// Forgets a link that receives nothing any more, and drops its queue pair.
    pub fn forget(&self, link: &Arc<Link>) {
        if locked(&self.poller).forget(link) {
            self.shared.buffers.release(link.promised());
        }
        drop(link.take_queue());
    }

    /// Hands out completions to their streams, unless another thread is doing so. Returns whether a
    /// task was woken. Most calls find nothing to do, and take no lock to see that.
    #[inline]
    pub fn look(&self) -> bool {
        let still = !self.stirred.load(Ordering::Acquire);
        if still && self.came.came() == self.taken.load(Ordering::Relaxed) {
            return false;
        }
        self.take()
    }

    /// Hands out completions, and rings doorbells that were put off.
    fn take(&self) -> bool {
        let woke = self.poll();
        if self.any_holding.load(Ordering::Acquire) {
            self.release();
        }
        woke
    }

    /// Runs the poller, unless another thread does. Returns whether a task was woken.
    fn poll(&self) -> bool {
        let mut poller = match self.poller.try_lock() {
            Ok(poller) => poller,
            Err(TryLockError::WouldBlock) => return false,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        };
        // A call of `stir` from here on has the poller look again.
        if self.stirred.load(Ordering::Acquire) {
            self.stirred.swap(false, Ordering::AcqRel);
        }
        let (woke, more) = poller.look(&self.shared.buffers);
        self.taken.store(poller.taken(), Ordering::Relaxed);
        if more {
            self.stirred.store(true, Ordering::Relaxed);
        }
        woke
    }

    /// Puts off ringing the doorbell of a link until the next [look](Self::look), which comes at
    /// the latest when the running task lets others run.
    pub fn ring_later(&self, link: Arc<Link>) {
        locked(&self.holding).push(link);
        self.any_holding.store(true, Ordering::Release);
        self.stir();
    }

    /// Rings the doorbells that were put off.
    fn release(&self) {
        let mut holding = locked(&self.holding);
        self.any_holding.store(false, Ordering::Relaxed);
        let links = std::mem::take(&mut *holding);
        drop(holding);
        links.iter().for_each(|link| link.outbound.release());
    }

    /// Has the poller run soon, even if no completion comes.
    fn stir(&self) {
        self.stirred.store(true, Ordering::Release);
        if let Some(driver) = locked(&self.driver).take() {
            driver.wake();
        }
    }

    /// Has `waker` woken when a completion comes.
    fn arm(&self, waker: &Waker) {
        *locked(&self.driver) = Some(waker.clone());
        match self.poller.try_lock() {
            Ok(mut poller) => poller.arm(waker),
            // The thread that holds the poller may be done before the next completion comes.
            Err(_) => waker.wake_by_ref(),
        }
    }

    /// Checks whether a link's connection is over, and if so tells the link and the poller.
    fn check(&self, link: &Arc<Link>) {
        if let ConnectionState::Ended(ending) = link.common.connection.state() {
            link.ended(ending.into());
            locked(&self.poller).part(link.clone());
            self.stir();
        }
    }

    /// Checks for every link whether its connection is over.
    fn check_all(&self) {
        self.links().iter().for_each(|link| self.check(link));
        self.stir();
    }

    /// Returns an error if the runtime of the hub's tasks has ended, after which no stream works.
    pub fn check_runtime(&self, peer: &str) -> io::Result<()> {
        match self.runtime_ended.load(Ordering::SeqCst) {
            true => Err(Over::RuntimeEnded.error(peer, false)),
            false => Ok(()),
        }
    }

    /// Ends all listeners, and refuses further streams. A link that is opened at the same time is
    /// found among the [links](Self::links) after this, or its opener finds the endpoint closing.
    pub fn accept_no_more(&self) {
        self.closing.send_replace(true);
    }

    /// Returns whether the endpoint is being closed, or is closed.
    pub fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Returns what a listener watches: true when the endpoint is being closed.
    pub fn watch_closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// Waits until no listener watches for the closing of the endpoint any more.
    pub async fn accepts_nothing(&self) {
        self.closing.closed().await;
    }

    /// Returns the links of all streams.
    pub fn links(&self) -> Vec<Arc<Link>> {
        locked(&self.poller).links()
    }
}

/// Polls for all streams of an endpoint while no program waits for one of them.
struct Drive<'h> {
    hub: &'h Hub,
    woke: bool,
}

impl Look for Drive<'_> {
    type Output = ();

    #[inline]
    fn look(&mut self, _: HeldNic<'_>) -> Option<()> {
        self.woke |= self.hub.look();
        None
    }

    fn register(&mut self, waker: &Waker) {
        self.hub.arm(waker);
    }

    fn precedence(&self) -> Precedence {
        Precedence::Serves
    }

    #[inline]
    fn woke(&mut self) -> bool {
        std::mem::take(&mut self.woke)
    }
}

/// Ends all streams of a hub when dropped, which happens when the runtime of the hub's tasks ends:
/// without the tasks nobody would notice that a peer has gone.
struct EndsWithRuntime(Arc<Hub>);

impl Drop for EndsWithRuntime {
    fn drop(&mut self) {
        let hub = &self.0;
        hub.runtime_ended.store(true, Ordering::SeqCst);
        for link in hub.links() {
            link.runtime_ended();
            drop(link.take_queue());
        }
        locked(&hub.poller).clear();
    }
}

/// Watches the NIC's events, and tells links whose connections are over.
fn watch(
    hub: Arc<Hub>,
    mut events: broadcast::Receiver<AsyncEvent>,
) -> impl Future<Output = ()> + Send {
    // Made outside of the future, so that it is dropped even with a task that never runs.
    let ends = EndsWithRuntime(hub);
    async move {
        let hub = &ends.0;
        loop {
            match events.recv().await {
                Ok(AsyncEvent::Ended(qpn)) => {
                    let link = locked(&hub.poller).link(qpn.get());
                    link.iter().for_each(|link| hub.check(link));
                }
                // All that came by the queue pair may have been taken already, so no completion
                // would have the poller run.
                Ok(AsyncEvent::LastReceive(_)) => hub.stir(),
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => hub.check_all(),
                Err(RecvError::Closed) => return,
            }
        }
    }
}
