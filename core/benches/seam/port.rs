//! A NIC and its device under Tokio: whoever waits makes the progress, and sleeps when there is
//! none to make.

use std::future::Future;
use std::io;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use crate::device::Device;
use crate::lock::{Guard, ProgressLock};
use crate::nic::{Counters, Nic, Rings, Time, WorkRequest};
use crate::sys::Sentry;

/// Turns before a waiting future lets other tasks run.
const TURNS_A_POLL: u32 = 10_000;
/// Turns between looks at the clock while nothing arrives, and while there is no end of it.
const TURNS_A_LOOK: u32 = 64;
const BUSY_TURNS: u32 = 16;

/// The NIC, its device, and their clock.
pub struct Engine<D> {
    pub nic: Nic,
    device: D,
    start: Instant,
    /// Turns since something was last found, and before that, without a pause.
    idle: u32,
    busy: u32,
}

impl<D: Device> Engine<D> {
    fn now(&self) -> Time {
        self.start.elapsed().as_nanos() as Time
    }

    /// Receives a burst, or else does what nobody waits for: the clock, the timers, what a lossless
    /// device has delivered. Whether there was a burst.
    ///
    /// What the burst calls for is owed until [`settle`](Self::settle): the answer of whoever
    /// waited for it goes first, and acknowledgements follow behind it.
    #[inline]
    fn turn(&mut self) -> bool {
        let found = self.device.receive(&mut self.nic) > 0;
        if found {
            self.idle = 0;
            self.busy += 1;
            if self.busy < BUSY_TURNS {
                return true;
            }
        }
        self.busy = 0;
        if D::LOSSLESS {
            self.nic.collect(&mut self.device);
            self.nic.owes = true;
        } else if self.idle.is_multiple_of(TURNS_A_LOOK) {
            let now = self.now();
            self.nic.expire(now);
        }
        self.idle = self.idle.wrapping_add(1);
        found
    }

    /// Sends what was posted, and what bursts called for.
    #[inline]
    fn settle(&mut self) {
        self.nic.transmit(&mut self.device);
    }

    /// A turn and all that it calls for.
    fn whole_turn(&mut self) -> bool {
        let found = self.turn();
        self.settle();
        found
    }
}

pub struct Port<D> {
    engine: ProgressLock<Engine<D>>,
    sentry: Sentry,
    waiter: Mutex<Option<Waker>>,
    waiting: AtomicBool,
    /// Turns that a future spins before it sleeps.
    patience: u32,
}

impl<D: Device> Port<D> {
    pub fn new(device: D, nic: Nic, patience: u32) -> io::Result<Arc<Self>> {
        let sentry = Sentry::new(device.readiness())?;
        let engine = Engine { nic, device, start: Instant::now(), idle: 0, busy: 0 };
        Ok(Arc::new(Self {
            engine: ProgressLock::new(engine),
            sentry,
            waiter: Mutex::new(None),
            waiting: AtomicBool::new(false),
            patience,
        }))
    }

    pub fn counters(&self) -> Counters {
        loop {
            if let Some(engine) = self.engine.enter() {
                let counters = engine.nic.counters;
                self.release(engine);
                return counters;
            }
            std::thread::yield_now();
        }
    }

    /// Has what was posted sent, by this thread if nobody else is at it.
    #[inline]
    pub fn ring(&self) {
        if let Some(mut engine) = self.engine.ring() {
            engine.settle();
            self.release(engine);
        }
    }

    #[inline]
    fn release(&self, engine: Guard<'_, Engine<D>>) {
        self.leave_asleep(engine);
        // Somebody may have stood by because we were at it.
        if self.waiting.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Leaves the NIC without waking who waits: for that one itself.
    #[inline]
    fn leave_asleep(&self, mut engine: Guard<'_, Engine<D>>) {
        if engine.nic.owes {
            engine.settle();
        }
        while let Some(mut still) = engine.leave() {
            if still.rung() {
                still.settle();
            }
            engine = still;
        }
    }

    /// Registers the one who waits: a port has one at a time.
    fn wait_until(&self, waker: &Waker) {
        let mut waiter = self.waiter.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        waiter.get_or_insert_with(|| waker.clone()).clone_from(waker);
        self.waiting.store(true, Ordering::SeqCst);
    }

    fn wake(&self) {
        if self.waiting.swap(false, Ordering::SeqCst) {
            let mut waiter = self.waiter.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if let Some(waker) = waiter.take() {
                waker.wake();
            }
        }
    }

    /// Wakes with the device that a sleeper has armed, runs the NIC, and wakes the sleeper. A side
    /// that only ever waits for nothing, being written to, is not served here: that is for the
    /// whole product's background task.
    pub async fn watch(self: Arc<Self>) -> io::Result<()> {
        let reactor = self.sentry.reactor()?;
        loop {
            let mut ready = reactor.readable().await?;
            self.sentry.disarm();
            ready.clear_ready();
            if let Some(mut engine) = self.engine.enter() {
                engine.device.disarm();
                while engine.whole_turn() {}
                self.release(engine);
            }
            self.wake();
        }
    }

    /// Runs the NIC once, unless somebody else does.
    pub fn make_progress(&self) {
        if let Some(mut engine) = self.engine.enter() {
            engine.whole_turn();
            self.release(engine);
        }
    }

    /// Resolves with what `look` finds, making progress between looks, and with the NIC in hand:
    /// what is posted before it is let go leaves at once.
    #[inline]
    pub fn until<T, L: FnMut() -> Option<T> + Unpin>(&self, look: L) -> Until<'_, D, L> {
        Until { port: self, look, spun: 0 }
    }

    #[inline]
    fn in_hand<'p>(&'p self, engine: Option<Guard<'p, Engine<D>>>) -> InHand<'p, D> {
        InHand { port: self, engine, stays_here: PhantomData }
    }
}

/// The NIC, still held by whoever found what it waited for, unless somebody else has it.
///
/// To answer a message is then one taking of the lock and not two, and the processor need not
/// finish with what was received before it begins with the answer. It can't be kept over an
/// await: a task that could be moved to another thread does not compile with it.
pub struct InHand<'p, D: Device> {
    port: &'p Port<D>,
    engine: Option<Guard<'p, Engine<D>>>,
    stays_here: PhantomData<*const ()>,
}

impl<D: Device> InHand<'_, D> {
    /// Posts a request to a work queue, which must not be full, and has it sent.
    #[inline]
    pub fn post(mut self, rings: &mut Rings, request: WorkRequest) {
        match &mut self.engine {
            Some(engine) => {
                let Engine { nic, device, .. } = &mut **engine;
                nic.send_now(device, rings, request);
            }
            None => {
                rings.post(request);
                self.port.ring();
            }
        }
    }
}

impl<D: Device> Drop for InHand<'_, D> {
    #[inline]
    fn drop(&mut self) {
        if let Some(engine) = self.engine.take() {
            self.port.release(engine);
        }
    }
}

/// See [`Port::until`].
pub struct Until<'p, D, L> {
    port: &'p Port<D>,
    look: L,
    spun: u32,
}

impl<'p, D: Device, T, L: FnMut() -> Option<T> + Unpin> Future for Until<'p, D, L> {
    type Output = (T, InHand<'p, D>);

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Some(found) = (this.look)() {
            return Poll::Ready((found, this.port.in_hand(this.port.engine.enter())));
        }
        let Some(mut engine) = this.port.engine.enter() else { return this.stand_by(context) };
        for _ in 0..TURNS_A_POLL.min(this.port.patience.max(1)) {
            engine.nic.owes |= engine.rung();
            engine.turn();
            if let Some(found) = (this.look)() {
                return Poll::Ready((found, this.port.in_hand(Some(engine))));
            }
            if engine.nic.owes {
                engine.settle();
            }
        }
        this.spun = this.spun.saturating_add(TURNS_A_POLL);
        if this.spun < this.port.patience {
            this.port.release(engine);
            return let_others_run(context);
        }
        this.sleep(engine, context)
    }
}

impl<'p, D: Device, T, L: FnMut() -> Option<T> + Unpin> Until<'p, D, L> {
    /// Somebody else runs the NIC, and wakes us when leaving it. Whoever left before we said that
    /// we wait has not seen it: then the NIC is free now.
    fn stand_by(&mut self, context: &mut Context<'_>) -> Poll<(T, InHand<'p, D>)> {
        self.port.wait_until(context.waker());
        fence(Ordering::SeqCst);
        if let Some(engine) = self.port.engine.enter() {
            self.port.release(engine);
        }
        self.last_look()
    }

    fn last_look(&mut self) -> Poll<(T, InHand<'p, D>)> {
        match (self.look)() {
            Some(found) => {
                self.port.waiting.store(false, Ordering::SeqCst);
                Poll::Ready((found, self.port.in_hand(None)))
            }
            None => Poll::Pending,
        }
    }

    /// Arms the device, looks once more, and only then sleeps.
    fn sleep(
        &mut self,
        mut engine: Guard<'p, Engine<D>>,
        context: &mut Context<'_>,
    ) -> Poll<(T, InHand<'p, D>)> {
        self.port.wait_until(context.waker());
        engine.device.arm();
        if self.port.sentry.arm().is_err() {
            // Nothing would wake us: go on spinning.
            self.port.release(engine);
            return let_others_run(context);
        }
        // Until there is nothing left: a burst begins with one frame, and what lay behind it would
        // wake nobody any more.
        while engine.whole_turn() {}
        self.port.leave_asleep(engine);
        self.spun = 0;
        self.last_look()
    }
}

/// Yields in Tokio's own way. A plain wake-up of ourselves would call an idle worker to steal us.
fn let_others_run<T>(context: &mut Context<'_>) -> Poll<T> {
    let _ = pin!(tokio::task::yield_now()).poll(context);
    Poll::Pending
}
