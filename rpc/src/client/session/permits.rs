//! Permits: the bound on how many calls of a channel are in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use doorbell_am::Name;
use tokio::sync::Semaphore;

use crate::meters::PermitMeter;
use crate::status::Status;

/// The permits of a channel, of which each call in flight holds one.
pub struct Permits {
    /// The permits that are free, but those that are passed on to calls that wait.
    free: AtomicUsize,
    /// The permits that are passed on to calls that wait.
    passed_on: Semaphore,
    /// How many calls wait.
    waiting: AtomicUsize,
    meter: PermitMeter,
    pub most: usize,
    /// Whether a call that finds no permit fails rather than waits.
    sheds: bool,
}

/// The right of one call to be in flight, of those that a session of the type `S` has. Dropping it
/// gives the permit back.
pub struct Permit<S: AsRef<Permits>>(Option<Arc<S>>);

impl<S: AsRef<Permits>> Permit<S> {
    /// The permit of a call that has taken one of a session's.
    pub fn of(session: &Arc<S>) -> Self {
        Self(Some(session.clone()))
    }

    /// Keeps the permit taken until somebody calls [`Permits::give_back`] for it.
    pub fn forget(mut self) {
        self.0 = None;
    }
}

impl<S: AsRef<Permits>> Drop for Permit<S> {
    fn drop(&mut self) {
        self.0.iter().for_each(|session| (**session).as_ref().give_back());
    }
}

/// A call that waits for a permit.
struct Waits<'p>(&'p Permits);

impl<'p> Waits<'p> {
    fn new(permits: &'p Permits) -> Self {
        permits.waiting.fetch_add(1, Ordering::SeqCst);
        Self(permits)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Permits {
    /// Makes `most` permits for a channel to the server `name`. With `sheds`, calls beyond fail at
    /// once instead of waiting.
    pub fn new(name: &Name, most: usize, sheds: bool) -> Self {
        let (free, waiting) = (AtomicUsize::new(most), AtomicUsize::new(0));
        let (passed_on, meter) = (Semaphore::new(0), PermitMeter::new(name, most));
        Self { free, passed_on, waiting, meter, most, sheds }
    }

    /// Returns how many permits are free.
    pub fn left(&self) -> usize {
        self.free.load(Ordering::SeqCst) + self.passed_on.available_permits()
    }

    /// Takes a permit if one is free. It is taken until somebody [gives it back](Self::give_back).
    pub fn try_take(&self) -> bool {
        let takes = self.takes_free() || self.takes_passed_on();
        if takes {
            self.meter.take();
        }
        takes
    }

    /// Takes a permit for a call to the server `name`, and waits for one if none is free. It is
    /// taken until somebody [gives it back](Self::give_back).
    ///
    /// # Errors
    /// When no permit is free and the channel sheds calls.
    pub async fn take(&self, name: &Name) -> Result<(), Status> {
        if self.try_take() {
            return Ok(());
        }
        if self.sheds {
            return Err(Status::resource_exhausted(format!(
                "{} calls are in flight to {name}, as many as the channel allows: call again later",
                self.most
            ))
            .not_run());
        }
        let _waits = Waits::new(self);
        // A permit that was given back before this call was counted is passed on to nobody.
        if !self.takes_free() {
            self.passed_on.acquire().await.expect("the semaphore is never closed").forget();
        }
        self.meter.take();
        Ok(())
    }

    /// Gives back a permit that was taken.
    pub fn give_back(&self) {
        self.meter.give_back();
        if self.waiting.load(Ordering::SeqCst) > 0 {
            return self.passed_on.add_permits(1);
        }
        self.free.fetch_add(1, Ordering::SeqCst);
        // A call that has come meanwhile has not seen this permit, or is counted now.
        if self.waiting.load(Ordering::SeqCst) > 0 && self.takes_free() {
            self.passed_on.add_permits(1);
        }
    }

    fn takes_free(&self) -> bool {
        let less = |free: usize| free.checked_sub(1);
        self.free.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
    }

    /// Takes a permit that was passed on to a call which did not wait any longer.
    #[cold]
    fn takes_passed_on(&self) -> bool {
        self.passed_on.try_acquire().map(|permit| permit.forget()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn permits(most: usize) -> (Permits, Name) {
        let name: Name = "shm:nobody#1".parse().expect("a name");
        (Permits::new(&name, most, false), name)
    }

    /// Polls a wait once. Returns whether it has got its permit.
    fn has_taken(waits: std::pin::Pin<&mut impl Future<Output = Result<(), Status>>>) -> bool {
        match waits.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(taken) => taken.map(|()| true).expect("it waits"),
            Poll::Pending => false,
        }
    }

    #[test]
    fn a_permit_that_is_given_back_goes_to_a_call_that_waits() {
        let (permits, name) = permits(1);
        assert!(permits.try_take() && !permits.try_take());
        let mut waits = pin!(permits.take(&name));
        assert!(!has_taken(waits.as_mut()));
        permits.give_back();
        assert!(has_taken(waits.as_mut()));
        assert_eq!((permits.left(), permits.try_take()), (0, false));
        permits.give_back();
        assert_eq!((permits.left(), permits.try_take()), (1, true));
    }

    #[test]
    fn a_permit_that_was_passed_on_to_a_call_that_is_dropped_is_free() {
        let (permits, name) = permits(1);
        assert!(permits.try_take());
        let mut waits = Box::pin(permits.take(&name));
        assert!(!has_taken(waits.as_mut()));
        permits.give_back();
        drop(waits);
        assert_eq!((permits.left(), permits.try_take()), (1, true));
        assert!(!has_taken(pin!(permits.take(&name))));
    }
}
