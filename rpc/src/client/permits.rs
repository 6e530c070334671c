//! Permits: the bound on how many calls of a channel are in flight.

use doorbell_am::Name;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::alarm::{Late, until};
use crate::meters::PermitMeter;
use crate::status::Status;

/// The permits of a channel, of which each call in flight holds one.
pub struct Permits {
    free: Semaphore,
    meter: PermitMeter,
    most: usize,
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
    /// When no permit is free by the deadline, or at once if the channel sheds calls.
    pub async fn take(&self, deadline: Option<Instant>, name: &Name) -> Result<Permit<'_>, Status> {
        self.acquire(deadline, name).await?.forget();
        self.meter.take();
        Ok(Permit(self))
    }

    /// Gives back a permit that was [forgotten](Permit::forget).
    pub fn give_back(&self) {
        self.meter.give_back();
        self.free.add_permits(1);
    }

    async fn acquire(
        &self,
        deadline: Option<Instant>,
        name: &Name,
    ) -> Result<SemaphorePermit<'_>, Status> {
        if let Ok(permit) = self.free.try_acquire() {
            return Ok(permit);
        }
        let most = self.most;
        if self.sheds {
            return Err(Status::resource_exhausted(format!(
                "{most} calls are in flight to {name}, as many as the channel allows: call again later"
            ))
            .not_run());
        }
        let permit = until(deadline, self.free.acquire()).await.map_err(|Late| {
            Status::deadline_exceeded(format!(
                "the call waited for one of the {most} that may be in flight to {name} until its time was \
                 over"
            ))
            .not_run()
        })?;
        Ok(permit.expect("the semaphore is never closed"))
    }
}
