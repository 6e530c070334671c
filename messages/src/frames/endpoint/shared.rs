//! What the handles to an endpoint and its driver share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

use bytes::Bytes;
use doorbell_verbs::{CloseError, Domain, Name, Nic, QueuesConfig};
use tokio::runtime;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::handle::{Handle, LaneState, SendSlot};
use super::state::State;
use super::works::Works;
use crate::frames::engine::Time;
use crate::matching::PostedId;
use doorbell_verbs::floor::locked;

/// Where the driver of an endpoint runs, and on which NIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runs {
    /// In the program's runtime, on a NIC that the program has opened.
    Shared,
    /// In the program's runtime, on a NIC that was opened for the endpoint, and is closed with it.
    OwnNic,
    /// On a thread and a NIC of the endpoint's own: programs only tell the driver what to send.
    Apart,
}

/// The state of an endpoint that its handles and its driver share.
#[derive(Debug)]
pub struct Shared {
    pub name: Name,
    pub nic: Nic,
    /// The domain and the configuration of the queue pairs of lanes.
    pub lanes: (Domain, QueuesConfig),
    /// The endpoint's completion queue, and the receive queue of its datagrams. Whoever holds this
    /// lock takes the state's lock after it.
    pub works: Mutex<Works>,
    pub runtime: runtime::Handle,
    pub runs: Runs,
    began: Instant,
    state: Mutex<State>,
    /// Whether the driver has something to do beside what comes from the NIC.
    is_stirred: AtomicBool,
    driver: Mutex<Option<Waker>>,
    /// Whether the program has dropped the endpoint, or has closed it.
    pub is_closing: AtomicBool,
    /// The outcome of closing the endpoint, once that is done. Whoever closes the endpoint holds
    /// the lock.
    pub closed: tokio::sync::Mutex<Option<Result<(), CloseError>>>,
    /// Notified after steps of the driver while the program closes the endpoint.
    pub steps: Notify,
}

impl Shared {
    pub fn new(
        name: Name,
        lanes: (Domain, QueuesConfig),
        works: Works,
        runs: Runs,
        state: State,
    ) -> Self {
        Self {
            name,
            nic: lanes.0.nic().clone(),
            lanes,
            works: Mutex::new(works),
            is_closing: AtomicBool::new(false),
            closed: tokio::sync::Mutex::default(),
            steps: Notify::new(),
            runtime: runtime::Handle::current(),
            runs,
            began: Instant::now(),
            state: Mutex::new(state),
            is_stirred: AtomicBool::new(false),
            driver: Mutex::default(),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Returns the time since the endpoint was opened.
    pub fn now(&self) -> Time {
        self.began.elapsed()
    }

    /// Returns the moment that is a time after the endpoint was opened.
    pub fn moment(&self, time: Time) -> Instant {
        self.began + time
    }

    /// Sends what is to be sent, or has the driver do that; and has the driver look at its timer.
    pub fn send(&self, mut state: MutexGuard<'_, State>) {
        if self.runs == Runs::Apart {
            drop(state);
            return self.stir();
        }
        let now = self.now();
        state.transmit(now);
        if state.is_earlier(now) || state.has_wanted() {
            drop(state);
            self.stir();
        }
    }

    /// Wakes the driver, unless it was stirred before and has not looked since.
    pub fn stir(&self) {
        if !self.is_stirred.swap(true, Ordering::SeqCst) {
            let waker = self.driver().take();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    /// Whether the driver was stirred since it was asked last.
    pub fn take_stirred(&self) -> bool {
        self.is_stirred.swap(false, Ordering::SeqCst)
    }

    /// Whether the driver is stirred.
    pub fn is_stirred(&self) -> bool {
        self.is_stirred.load(Ordering::SeqCst)
    }

    /// Has the driver woken when it is stirred.
    pub fn register(&self, waker: &Waker) {
        *self.driver() = Some(waker.clone());
    }

    fn driver(&self) -> MutexGuard<'_, Option<Waker>> {
        locked(&self.driver)
    }
}

impl Handle for Shared {
    fn send(&self, to: &Name, bits: u64, body: Bytes, slot: &Arc<SendSlot>) {
        let mut state = self.lock();
        state.send(to, (bits, body), slot.clone(), self.now());
        Shared::send(self, state);
    }

    fn cancel(&self, receive: PostedId) -> bool {
        self.lock().cancel(receive)
    }

    fn lane(&self, to: &Name) -> LaneState {
        let mut state = self.lock();
        let stands = state.lane_state(to);
        if state.has_wanted() {
            self.stir();
        }
        stands
    }
}
