//! Bundles: the endpoints of a NIC, which are served together.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;

use doorbell_verbs::Nic;
use doorbell_verbs::floor::{HasNic, HeldNic, PolledWait, locked};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::companions::Served;
use super::engine::{Armed, Conditional, Engine};
use super::side_tasks::{Ready, Runner};
use super::watching::watch;
use crate::config::BundleConfig;
use crate::costs::{Cost, span};
use crate::error::OpenError;
use crate::shared::{Counters, Deferral, Deferring, handles};

/// A bundle of endpoints of one NIC that are served together: by any task that waits for something
/// of one of them, by [polling](Self::poll), and when nobody does either, by a task of the runtime
/// in which the bundle was made.
///
/// Clones are handles to the same bundle. The bundle ends when the last handle and all its
/// endpoints are dropped.
#[derive(Clone)]
pub struct Bundle(Arc<Owner>);

/// A reference to a bundle that does not keep the bundle.
#[doc(hidden)]
#[derive(Clone)]
pub struct WeakBundle(Weak<Owner>);

impl WeakBundle {
    /// Returns whether the bundle has not ended.
    pub fn is_there(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Returns the bundle, unless it has ended.
    pub fn upgrade(&self) -> Option<Bundle> {
        self.0.upgrade().map(Bundle)
    }
}

impl fmt::Debug for WeakBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakBundle")
    }
}

/// The counts of what a bundle has handled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Statistics {
    /// The requests that have come.
    pub requests: u64,
    /// The replies that have come.
    pub replies: u64,
    /// The requests that were sent and came back.
    pub returned: u64,
    /// The requests that were sent back to peers, and the replies without a handler.
    pub undelivered: u64,
    /// The receives whose bytes are no message, or a message that breaks the rules.
    pub malformed: u64,
    /// The panics of handlers.
    pub panics: u64,
    /// The answers that handlers gave when their time was over.
    pub late: u64,
}

/// The owner of a bundle's engine, which ends the bundle when it is dropped.
struct Owner {
    engine: Arc<Engine>,
    /// The task that serves the bundle when nobody else does.
    driver: AbortHandle,
    /// The task that tells endpoints of connections that have ended.
    watcher: AbortHandle,
    /// The thread of the runtime, if the bundle was made where there is none.
    thread: Mutex<Option<Thread>>,
    /// Whether the NIC was opened for the bundle, and so ends with it.
    owns_nic: bool,
}

/// A thread that runs a runtime, for a bundle that was made where there is none.
struct Thread {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Bundle {
    /// Returns the progress engine of the bundle.
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.0.engine
    }

    /// Makes a bundle on a NIC, without endpoints. Where there is no Tokio runtime, this starts a
    /// thread that runs one.
    ///
    /// # Errors
    /// When the NIC has no room for the completion queues, or the configuration is not valid.
    pub fn new(nic: &Nic, config: &BundleConfig) -> Result<Self, OpenError> {
        Self::make(nic, config, false)
    }

    /// Makes a bundle on a NIC that was opened for it. The NIC's device is closed when the last
    /// handle to the bundle and all its endpoints are dropped.
    pub(crate) fn with_nic(nic: &Nic, config: &BundleConfig) -> Result<Self, OpenError> {
        Self::make(nic, config, true)
    }

    fn make(nic: &Nic, config: &BundleConfig, owns_nic: bool) -> Result<Self, OpenError> {
        config.check()?;
        if nic.is_closed() {
            return Err(OpenError::NicClosed);
        }
        let (runtime, thread) = runtime()?;
        let engine = Arc::new(Engine::new(nic, config, runtime)?);
        let driven = engine.clone();
        let driver = engine.runtime.spawn(async move { driven.serve().await });
        let watcher = engine.runtime.spawn(watch(engine.clone(), nic.events()));
        let (driver, watcher) = (driver.abort_handle(), watcher.abort_handle());
        let thread = Mutex::new(thread);
        Ok(Self(Arc::new(Owner { engine, owns_nic, driver, watcher, thread })))
    }

    /// Unites bundles on different NICs of one process, so that each is served whenever another is:
    /// by whoever polls or waits for something of it, or by its task. A program that reaches some
    /// peers over shared memory and others over a network waits at one bundle for the messages of
    /// all. The bundles stay united for as long as they live.
    ///
    /// ```
    /// use doorbell_am::{Bundle, BundleConfig};
    /// use doorbell_verbs::Nic;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let near = Nic::open("shm").await?;
    /// let far = Nic::open("udp:127.0.0.1:0").await?;
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
            let engine = &bundle.0.engine;
            assert!(
                !others.clone().any(|(_, other)| Arc::ptr_eq(&other.0.engine, engine)),
                "a bundle can't be united with itself"
            );
            let others = others.map(|(_, other)| other.0.engine.clone() as Arc<dyn Served>);
            assert!(
                engine.companions.set(others),
                "{bundle:?} is united with other bundles already"
            );
            engine.signals.set_united();
        }
    }

    /// Handles what has come to any of the endpoints, and has the NIC take a turn if nothing has
    /// come yet. Without `requests`, only replies are handled, and requests wait. Returns how many
    /// messages were handled.
    ///
    /// No program needs to poll, since whoever waits for something of an endpoint does. Polling is
    /// for programs that decide themselves when handlers may run. In a handler this does nothing.
    pub fn poll(&self, requests: bool) -> usize {
        let engine = &self.0.engine;
        if handles() {
            return 0;
        }
        let _notification = span(Cost::Notification);
        let looked = engine.look(requests, HeldNic::none(), None);
        if looked.handled > 0 {
            return looked.handled;
        }
        let _base = span(Cost::Base);
        let _deferral = Deferral::new();
        let found = engine.nic.turn_and_find(|nic| {
            let handled = engine.look(requests, nic, None).handled;
            (handled > 0).then_some(handled)
        });
        found.unwrap_or(0)
    }

    /// Waits until a message was handled, by this task or by another.
    pub async fn wait(&self) {
        let before = self.0.engine.handled_by_all();
        self.wait_until(|| (self.0.engine.handled_by_all() != before).then_some(())).await;
    }

    /// Serves the endpoints until `condition` gives a value, and returns the value.
    ///
    /// The condition is tried after each turn of the NIC while the task spins, and after each
    /// handled message once the task sleeps. So the condition must depend on what handlers do. A
    /// condition on memory that peers write without a message needs a bound on how long the task
    /// may sleep, such as [`tokio::time::timeout`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    ///
    /// use doorbell_am::{Endpoint, Handlers, Notice};
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

    /// Serves the endpoints until `condition` gives a value, as [`wait_until`](Self::wait_until)
    /// does. Before the task sleeps, `arm` has its waker woken by whatever else the condition
    /// depends on. For layers of this workspace that stand on Active Messages.
    #[doc(hidden)]
    #[inline]
    pub fn wait_until_woken<T>(
        &self,
        condition: impl FnMut() -> Option<T>,
        arm: impl FnMut(&Waker),
    ) -> impl Future<Output = T> {
        let engine = &*self.0.engine;
        Deferring(engine.nic.wait_for(Conditional { engine, condition, arm, woke: false }))
    }

    /// Waits for `condition`, by polls that keep their state in `wait`, for futures that borrow
    /// nothing. While the task sleeps, only the waker that `arm` is given wakes the task.
    #[doc(hidden)]
    #[inline]
    pub fn poll_until<T, K: HasNic + AsRef<Self>>(
        wait: &mut PolledWait<K>,
        context: &mut Context<'_>,
        condition: impl FnMut() -> Option<T>,
        arm: impl FnMut(&Waker),
    ) -> Poll<T> {
        let _deferral = Deferral::new();
        wait.poll(context, |keeper| {
            let engine = &*keeper.as_ref().0.engine;
            Armed { engine, condition, arm, woke: false }
        })
    }

    /// Returns the NIC of the bundle.
    #[doc(hidden)]
    pub fn nic(&self) -> &Nic {
        &self.0.engine.nic
    }

    /// Has the task that serves the bundle do work of a layer above, whenever the returned signal
    /// is given. For layers of this workspace that stand on Active Messages.
    #[doc(hidden)]
    pub fn run_beside(&self, runner: Weak<dyn Runner>) -> Ready {
        self.0.engine.runners.add(runner);
        Ready::of(&self.0.engine.signals)
    }

    /// Returns the runtime that serves the bundle.
    #[doc(hidden)]
    pub fn runtime(&self) -> &Handle {
        &self.0.engine.runtime
    }

    /// Returns a reference that does not keep the bundle. For layers of this workspace that share
    /// bundles.
    #[doc(hidden)]
    pub fn weak(&self) -> WeakBundle {
        WeakBundle(Arc::downgrade(&self.0))
    }

    /// Returns a reference to the engine that does not keep the bundle, for waking tasks that wait.
    pub(crate) fn downgrade(&self) -> Weak<Engine> {
        Arc::downgrade(&self.0.engine)
    }

    /// Returns the counts of what the bundle has handled.
    pub fn statistics(&self) -> Statistics {
        let Counters { requests, replies, returned, undelivered, malformed, panics, late } =
            &*self.0.engine.counters;
        let [requests, replies, returned, undelivered, malformed, panics, late] =
            [requests, replies, returned, undelivered, malformed, panics, late]
                .map(|counter| counter.load(Ordering::Relaxed));
        Statistics { requests, replies, returned, undelivered, malformed, panics, late }
    }

    /// Runs a future on this thread, without a runtime, and serves the endpoints meanwhile.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.0.engine.nic.block_on(future)
    }
}

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.0.engine.nic.address();
        f.debug_struct("Bundle").field("address", &format_args!("{address}")).finish()
    }
}

/// Returns the current runtime, or starts a thread with one.
fn runtime() -> Result<(Handle, Option<Thread>), OpenError> {
    if let Ok(here) = Handle::try_current() {
        return Ok((here, None));
    }
    let failed = |source| OpenError::System {
        what: "starting a thread with a runtime for the bundle, where there is no runtime",
        source,
    };
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let handle = runtime.handle().clone();
    let (stop, stopped) = oneshot::channel();
    let run = move || {
        let _ = runtime.block_on(stopped);
    };
    let thread = std::thread::Builder::new().name("doorbell-am".to_owned()).spawn(run);
    let thread = thread.map_err(failed)?;
    Ok((handle, Some(Thread { stop, thread })))
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.engine.close();
        self.driver.abort();
        self.watcher.abort();
        if let Some(Thread { stop, thread }) = locked(&self.thread).take() {
            let _ = stop.send(());
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
        // Tasks that are being stopped have handles to the NIC until their runtime drops them.
        if self.owns_nic {
            self.engine.nic.close_blocking();
        }
    }
}
