//! Permits: the bound on how many calls of a channel are in flight.

use doorbell_am::Name;
use tokio::sync::Semaphore;

use crate::meters::PermitMeter;
use crate::status::Status;

/// The permits of a channel, of which each call in flight holds one.
pub struct Permits {
    free: Semaphore,
    meter: PermitMeter,
    pub most: usize,
    /// Whether a call that finds no permit fails rather than waits.
    sheds: bool,
}

/// The right of one call to be in flight. Dropping it gives the permit back.
pub struct Permit<'p>(&'p Permits);

impl Permit<'_> {
    /// Keeps the permit taken until somebody calls [`Permits::give_back`] for it.
    pub fn forget(self) {
        std::mem::forget(self);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

impl Permits {
    /// Makes `most` permits for a channel to the server `name`. With `sheds`, calls beyond fail at
    /// once instead of waiting.
    pub fn new(name: &Name, most: usize, sheds: bool) -> Self {
        Self { free: Semaphore::new(most), meter: PermitMeter::new(name, most), most, sheds }
    }

    /// Returns how many permits are free.
    pub fn left(&self) -> usize {
        self.free.available_permits()
    }

    /// Takes a permit for a call to the server `name`, and waits for one if none is free.
    ///
    /// # Errors
    /// When no permit is free and the channel sheds calls.
    pub async fn take(&self, name: &Name) -> Result<Permit<'_>, Status> {
        let permit = match self.free.try_acquire() {
            Ok(permit) => permit,
            Err(_) if self.sheds => {
                return Err(Status::resource_exhausted(format!(
                    "{} calls are in flight to {name}, as many as the channel allows: call again later",
                    self.most
                ))
                .not_run());
            }
            Err(_) => self.free.acquire().await.expect("the semaphore is never closed"),
        };
        permit.forget();
        self.meter.take();
        Ok(Permit(self))
    }

    /// Gives back a permit that was [forgotten](Permit::forget).
    pub fn give_back(&self) {
        self.meter.give_back();
        self.free.add_permits(1);
    }
}
