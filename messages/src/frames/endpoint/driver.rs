//! The driver of an endpoint: the task that handles what comes, and what is due.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use doorbell_verbs::Name;
use doorbell_verbs::floor::{HeldNic, Look};

use super::lanes;
use super::reach::reach;
use super::shared::{Runs, Shared};
use doorbell_verbs::floor::locked;

/// How long an endpoint stays after it was dropped, behind the last message that it has received:
/// the peer may ask for the acknowledgement again.
const LINGERS: Duration = Duration::from_millis(50);
/// A time that does not come.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// The work of a driver, as the look of a wait.
struct Work<'s>(&'s Shared);

impl Look for Work<'_> {
    type Output = ();

    #[inline]
    fn look(&mut self, _: HeldNic<'_>) -> Option<()> {
        if self.0.is_stirred() {
            return Some(());
        }
        // Whoever has the lock handles what has come.
        let mut works = self.0.works.try_lock().ok()?;
        works.completions.peek().map(|_| ())
    }

    fn register(&mut self, waker: &Waker) {
        self.0.register(waker);
        let mut works = locked(&self.0.works);
        works.completions.arm(waker);
    }
}

/// Drives an endpoint until it is dropped.
pub async fn drive(shared: Arc<Shared>) {
    let mut timer = pin!(tokio::time::sleep(NEVER));
    let mut rings = None;
    loop {
        shared.take_stirred();
        let (has_more, mut next) = step(&shared);
        if shared.is_closing.load(Ordering::SeqCst) {
            let Some(stays) = close(&shared) else {
                if shared.runs != Runs::Shared {
                    shared.nic.close().await;
                }
                shared.lock().is_over = true;
                return shared.steps.notify_waiters();
            };
            next = Some(next.map_or(stays, |next| next.min(stays)));
        }
        let has_woken = std::mem::take(&mut shared.lock().has_woken);
        if has_more || has_woken {
            tokio::task::yield_now().await;
        }
        if has_more {
            continue;
        }
        if next != rings {
            rings = next;
            timer.as_mut().reset(shared.moment(next.unwrap_or(NEVER)));
        }
        tokio::select! {
            biased;
            () = shared.nic.wait_for(Work(&shared)) => {}
            () = &mut timer => rings = None,
        }
    }
}

/// Handles what has come and what is due. Returns whether more may have come, and when something is
/// due next.
pub fn step(shared: &Arc<Shared>) -> (bool, Option<Duration>) {
    let mut works = locked(&shared.works);
    let mut finds = Vec::new();
    let (now, mut state) = (shared.now(), shared.lock());
    let has_more = works.take(&mut state, now, &mut finds);
    drop(works);
    state.handle_timeouts(now);
    // The program may answer what it has just received: the acknowledgement goes with the answer,
    // or in the next step.
    if std::mem::take(&mut state.has_delivered) {
        shared.stir();
    } else {
        state.transmit(now);
    }
    let (next, wanted) = (state.arm(now), state.take_wanted());
    if state.losses.is_some() {
        shared.steps.notify_waiters();
    }
    drop(state);
    for name in wanted {
        shared.runtime.spawn(lanes::make(Arc::downgrade(shared), name));
    }
    finds.into_iter().for_each(|name| find(shared, name));
    (has_more, next)
}

/// Finds the way to a peer whose first frame has come.
fn find(shared: &Arc<Shared>, name: Name) {
    let (runtime, shared) = (shared.runtime.clone(), shared.clone());
    runtime.spawn(async move {
        if let Err(why) = reach(&shared, &name).await {
            tracing::debug!(%name, %why, "a peer sends, and can't be answered");
            shared.lock().unreached(&name);
        }
    });
}

/// Ends everything, unless a peer may still ask for an acknowledgement. Returns until when the
/// endpoint has to stay then.
fn close(shared: &Shared) -> Option<Duration> {
    let now = shared.now();
    let mut state = shared.lock();
    let stays = state.received_at.map(|at| at + LINGERS).filter(|&stays| now < stays);
    if stays.is_none() {
        state.close(now);
    }
    stays
}
