//! Slots: the bound on how many handlers of a server run at a time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::sessions::UnderWay;
use super::state::Core;
use crate::status::Status;

/// A call's place among the handlers that may run at a time, and among the calls that are not
/// answered yet.
///
/// The two places end at different times: the first is given back before the answer is sent, so
/// that the caller's next call finds it free, and the second when the slot is dropped, after the
/// answer was sent. A server that shuts down waits for the second.
pub struct Slot<C: AsRef<Core> = Arc<Core>> {
    core: C,
    /// Whether the place among the running handlers was given back already.
    is_back: bool,
    /// Keeps the client from being idle, once the call has begun.
    under_way: Option<UnderWay>,
}

impl<'c> Slot<&'c Arc<Core>> {
    /// Takes a slot for a call that has arrived.
    ///
    /// # Errors
    /// When as many handlers run as may, or the server is shutting down.
    pub fn take(core: &'c Arc<Core>) -> Result<Self, Status> {
        let before = core.running.begins();
        let slot = Self { core, is_back: false, under_way: None };
        // The call is counted before this check, so that a server which begins to shut down either
        // refuses the call or waits for it.
        if core.closing.load(Ordering::SeqCst) {
            return Err(Status::unavailable("the server is shutting down: call another one"));
        }
        if before >= core.limits.running {
            return Err(Status::resource_exhausted(format!(
                "the server runs {} handlers already, which is its limit: call again later, or another \
                 server",
                core.limits.running
            )));
        }
        Ok(slot)
    }

    /// Keeps the call's client from being idle until the slot is dropped.
    pub fn keeps_under_way(&mut self, under_way: UnderWay) {
        self.under_way = Some(under_way);
    }

    /// The slot of a call that goes on elsewhere.
    pub fn into_owned(mut self) -> Slot {
        let (core, under_way) = (self.core.clone(), self.under_way.take());
        let slot = Slot { core, is_back: self.is_back, under_way };
        std::mem::forget(self);
        slot
    }
}

impl<C: AsRef<Core>> Slot<C> {
    /// Gives back the place among the running handlers. Called before the answer is sent, because a
    /// caller that has its answer may call again at once.
    pub fn give_back(&mut self) {
        if !std::mem::replace(&mut self.is_back, true) {
            self.core.as_ref().running.gives_back();
        }
    }
}

impl<C: AsRef<Core>> Drop for Slot<C> {
    fn drop(&mut self) {
        let core = self.core.as_ref();
        if core.running.ends(self.is_back) && core.closing.load(Ordering::SeqCst) {
            core.idle.notify_waiters();
        }
    }
}
