//! Collective operations of the processes of a world, or of a team.
//!
//! `operations` has the functions that a program calls, on a world or on a `team`. Each returns a
//! collective as a value, which `begun` awaits in place or lets run in the background. By
//! `agreements` the library itself makes sure that all processes do the same. Values and
//! operators are encoded by `combining`, and `operators` has the usual ones. The group of Active
//! Messages below carries all of this.

mod agreements;
mod begun;
mod combining;
mod operations;
pub mod operators;
mod team;

pub(crate) use agreements::{About, differs};
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
        let core = &*self.0;
        self.sync().await?;
        core.all_done().await?;
        core.tell_of_end().await?;
        core.group.finish().await?;
        core.group.clone().leave().await;
        Ok(())
    }
}
