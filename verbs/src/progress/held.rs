//! Access to a NIC that the current thread holds: what is posted through it leaves at once.

use std::fmt;
use std::marker::PhantomData;

use super::engine::{Held, ProgressEngine};
use crate::adapter::Adapter;

/// The NIC, if the thread that runs a [look](crate::floor::Look) holds it. A request that is posted
/// through this leaves at once; a request that is posted otherwise leaves when the look is over.
///
/// The access stays on the thread that holds the NIC, since another thread that waited for the NIC
/// would wait for ever.
///
/// ```
/// # use doorbell_verbs::floor::HeldNic;
/// fn is_held(nic: HeldNic<'static>) -> bool {
///     (move || nic.is_held())()
/// }
/// ```
///
/// ```compile_fail,E0277
/// # use doorbell_verbs::floor::HeldNic;
/// fn is_held(nic: HeldNic<'static>) -> bool {
///     std::thread::spawn(move || nic.is_held()).join().unwrap()
/// }
/// ```
pub struct HeldNic<'r> {
    nic: Option<(&'r ProgressEngine, &'r mut Box<dyn Adapter>)>,
    stays_here: PhantomData<*const ()>,
}

impl fmt::Debug for HeldNic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nic = self.nic.as_ref().map(|(engine, _)| &engine.address);
        f.debug_tuple("HeldNic").field(&nic).finish()
    }
}

impl<'r> HeldNic<'r> {
    #[inline]
    pub(crate) fn of(engine: &'r ProgressEngine, adapter: &'r mut Held<'_>) -> Self {
        Self { nic: Some((engine, &mut **adapter)), stays_here: PhantomData }
    }

    /// Returns an access without a NIC: posting through it uses the queue alone.
    pub const fn none() -> Self {
        Self { nic: None, stays_here: PhantomData }
    }

    /// Returns whether the NIC is held.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.nic.is_some()
    }

    /// Reborrows the access, for a call that takes one by value.
    #[inline]
    pub fn reborrow(&mut self) -> HeldNic<'_> {
        let nic = self.nic.as_mut().map(|(engine, adapter)| (*engine, &mut **adapter));
        HeldNic { nic, stays_here: PhantomData }
    }

    /// Returns the NIC, if it is held and has the progress engine `engine`.
    #[inline]
    pub(crate) fn of_nic(&mut self, engine: &ProgressEngine) -> Option<&mut Box<dyn Adapter>> {
        match &mut self.nic {
            Some((own, adapter)) if std::ptr::eq(*own, engine) => Some(adapter),
            _ => None,
        }
    }
}

/// A guard that holds the NIC after a wait, unless another thread has the NIC.
///
/// With the guard, a program answers a message without locking the NIC a second time, and before
/// the NIC finishes with what was received. The guard must not be held across an await: a task that
/// may move to another thread does not compile with it, and waiting for anything of the same NIC
/// panics.
///
/// ```
/// # use doorbell_verbs::{CompletionQueue, Nic};
/// fn spawn(nic: Nic, mut completions: CompletionQueue) {
///     tokio::spawn(async move {
///         let guard = nic.until_completion(&mut completions).await;
///         drop(guard);
///         tokio::task::yield_now().await;
///     });
/// }
/// ```
///
/// ```compile_fail
/// # use doorbell_verbs::{CompletionQueue, Nic};
/// fn spawn(nic: Nic, mut completions: CompletionQueue) {
///     tokio::spawn(async move {
///         let guard = nic.until_completion(&mut completions).await;
///         tokio::task::yield_now().await;
///         drop(guard);
///     });
/// }
/// ```
pub struct NicGuard<'n> {
    engine: &'n ProgressEngine,
    adapter: Option<Held<'n>>,
}

impl fmt::Debug for NicGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NicGuard")
            .field("nic", &self.engine.address)
            .field("held", &self.adapter.is_some())
            .finish()
    }
}

impl<'n> NicGuard<'n> {
    #[inline]
    pub(crate) fn new(engine: &'n ProgressEngine, adapter: Option<Held<'n>>) -> Self {
        Self { engine, adapter }
    }

    /// Releases the NIC, and leaves acknowledgements and other deferred work for later.
    #[inline]
    pub(crate) fn release_soon(mut self) {
        if let Some(adapter) = self.adapter.take() {
            self.engine.release_soon(adapter);
        }
    }

    /// Returns the access to the NIC that looks have.
    #[inline]
    pub(crate) fn held(&mut self) -> HeldNic<'_> {
        match &mut self.adapter {
            Some(adapter) => HeldNic::of(self.engine, adapter),
            None => HeldNic::none(),
        }
    }
}

impl Drop for NicGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(adapter) = self.adapter.take() {
            self.engine.release(adapter);
        }
    }
}
