//! The hub of an endpoint: what all its streams share, and who serves them.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::task::Waker;

use doorbell_verbs::floor::{CompletionGauge, HeldNic, Look, Precedence};
use doorbell_verbs::{
    AsyncEvent, Connection, ConnectionState, Domain, Nic, QueuesConfig, Rights, SendQueue,
};
use tokio::runtime::Handle;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::task::AbortHandle;

use crate::buffers::{Buffers, FOR_SIGNALS, locked};
use crate::config::Config;
use crate::error::{Over, of_resource};
use crate::link::{Link, RESERVE};
use crate::poller::Poller;
use crate::questions::Prober;

/// What the streams of an endpoint share.
pub(crate) struct Hub {
    pub nic: Nic,
    pub domain: Domain,
    pub config: Config,
    /// The configuration of the streams' queue pairs.
    pub queues: QueuesConfig,
    pub buffers: Buffers,
    pub runtime: Handle,
    poller: Mutex<Poller>,
    /// Tells how many completions have come.
    came: CompletionGauge,
    /// How many completions the poller has taken.
    taken: AtomicUsize,
    /// Whether the poller has work other than new completions.
    stirred: AtomicBool,
    /// Links that have posted bytes and not rung the doorbell for them.
    holding: Mutex<Vec<Arc<Link>>>,
    any_holding: AtomicBool,
    /// The task that probes peers that owe an answer.
    pub prober: Prober,
    /// The waker of the task that polls when nobody else does.
    driver: Mutex<Option<Waker>>,
    /// Whether the runtime of the hub's tasks has ended, and the streams with it.
    runtime_ended: AtomicBool,
}

/// Keeps a hub running. When the last handle, listener and stream of an endpoint are gone, so is
/// the owner, and the hub's tasks end.
pub(crate) struct Owner {
    pub hub: Arc<Hub>,
    tasks: [AbortHandle; 2],
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        // Links keep the hub. There are some only if the runtime ended before they did.
        let links = self.hub.links();
        let queues: Vec<Option<SendQueue>> = links.iter().map(|link| link.take_queue()).collect();
        locked(&self.hub.poller).clear();
        let held = std::mem::take(&mut *locked(&self.hub.holding));
        drop((queues, held));
    }
}

impl Owner {
    /// Makes a hub on a NIC, with tasks in the current runtime.
    pub fn new(nic: &Nic, config: &Config) -> io::Result<Self> {
        config.check()?;
        let no_runtime = |_| io::Error::other("byte streams are to be used in a Tokio runtime");
        let runtime = Handle::try_current().map_err(no_runtime)?;
        let completions = nic.completion_queue(config.completions).map_err(of_resource)?;
        let domain = nic.domain();
        let receives = domain.shared_receives_to(&completions, config.receives);
        let receives = receives.map_err(of_resource)?;
        let depth = usize::from(config.credits()) + RESERVE;
        let queues = QueuesConfig {
            send_depth: depth,
            receive_depth: 1,
            rights: Rights::NONE,
            ..QueuesConfig::new(&completions).share(&receives)
        };
        let (came, taken) = (completions.gauge(), AtomicUsize::new(completions.taken()));
        let hub = Arc::new(Hub {
            nic: nic.clone(),
            domain,
            config: config.clone(),
            queues,
            buffers: Buffers::new(receives, config.segment, config.receives),
            runtime,
            poller: Mutex::new(Poller::new(completions)),
            came,
            taken,
            stirred: AtomicBool::new(false),
            holding: Mutex::default(),
            any_holding: AtomicBool::new(false),
            prober: Prober::default(),
            driver: Mutex::default(),
            runtime_ended: AtomicBool::new(false),
        });
        let driven = hub.clone();
        let drive = hub.runtime.spawn(async move {
            driven.nic.wait_for(Drive { hub: &driven, woke: false }).await;
        });
        let watch = hub.runtime.spawn(watch(hub.clone(), nic.events()));
        Ok(Self { hub, tasks: [drive.abort_handle(), watch.abort_handle()] })
    }
}

impl Hub {
    /// Makes a link for a connection before the connection stands, so that the first messages find
    /// the link.
    pub fn enter(self: &Arc<Self>, connection: Connection) -> Arc<Link> {
        self.buffers.promise(usize::from(self.config.credits()) + FOR_SIGNALS);
        locked(&self.poller).enter(self, connection)
    }

    /// Forgets a link that receives nothing any more, and drops its queue pair.
    pub fn forget(&self, link: &Arc<Link>) {
        if locked(&self.poller).forget(link) {
            self.buffers.release(link.promised());
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

    /// Hands out completions, and rings doorbells that were to be rung soon.
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
        // Whoever stirs from here on has the poller look again.
        if self.stirred.load(Ordering::Acquire) {
            self.stirred.swap(false, Ordering::AcqRel);
        }
        let (woke, more) = poller.look(self);
        self.taken.store(poller.taken(), Ordering::Relaxed);
        if more {
            self.stirred.store(true, Ordering::Relaxed);
        }
        woke
    }

    /// Has the doorbell of a link rung at the next [look](Self::look): at the latest when the
    /// running task lets others run.
    pub fn holds(&self, link: Arc<Link>) {
        locked(&self.holding).push(link);
        self.any_holding.store(true, Ordering::Release);
        self.stir();
    }

    /// Rings the doorbells of links that hold bytes back.
    fn release(&self) {
        let mut holding = locked(&self.holding);
        self.any_holding.store(false, Ordering::Relaxed);
        let links = std::mem::take(&mut *holding);
        drop(holding);
        links.iter().for_each(|link| link.outbound.release());
    }

    /// Has the poller run, even if no completion comes.
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
            // Whoever is at it may be done before anything else comes.
            Err(_) => waker.wake_by_ref(),
        }
    }

    /// Tells a link, and the poller, if the link's connection is over.
    fn checks(&self, link: &Arc<Link>) {
        if let ConnectionState::Ended(ending) = link.connection.state() {
            link.ended(ending.into());
            locked(&self.poller).parts(link.clone());
            self.stir();
        }
    }

    /// Does so for all links.
    fn checks_all(&self) {
        self.links().iter().for_each(|link| self.checks(link));
        self.stir();
    }

    /// Returns an error if the runtime of the hub's tasks has ended, so that nobody serves streams.
    pub fn check_runtime(&self, peer: &str) -> io::Result<()> {
        match self.runtime_ended.load(Ordering::SeqCst) {
            true => Err(Over::RuntimeEnded.error(peer, false)),
            false => Ok(()),
        }
    }

    /// Returns all links.
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
    type Found = ();

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

/// Ends the streams of a hub when the runtime ends that has run the hub's tasks: nobody would
/// notice any more that a peer has gone.
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
    // Made here, so that it is there for a task that never runs, too.
    let ends = EndsWithRuntime(hub);
    async move {
        let hub = &ends.0;
        loop {
            match events.recv().await {
                Ok(AsyncEvent::Ended(qpn)) => {
                    let link = locked(&hub.poller).link(qpn.get());
                    link.iter().for_each(|link| hub.checks(link));
                }
                // What came by it may be all taken by now.
                Ok(AsyncEvent::LastReceive(_)) => hub.stir(),
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => hub.checks_all(),
                Err(RecvError::Closed) => return,
            }
        }
    }
}
