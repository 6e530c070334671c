//! Collective operations of the processes of a world.

mod begun;
mod combining;
mod operations;
pub mod operators;
mod team;

pub use begun::{Awaited, Begun, Collective};
pub use team::Team;

use crate::error::Error;
use crate::world::World;

impl World {
    /// Leaves the world in order: waits until everything that this process has begun is done, and
    /// until all processes have called `leave`. [`Job`](crate::Job) does so at the end of each
    /// program.
    ///
    /// # Errors
    /// When a process has gone, or an operation has failed since the last [`sync`](Self::sync).
    pub async fn leave(&self) -> Result<(), Error> {
        self.sync().await?;
        self.all_store_sync().await?;
        self.0.group.clone().leave().await;
        Ok(())
    }
}
