//! Agreements between the processes' libraries, on which the soundness of private epochs rests.
//!
//! An agreement is a collective of its own kind, which programs can't call: a process that waits in
//! an agreement gets an error when another process is in anything else.

use std::fmt;

use super::begun::Collective;
use crate::error::{Error, HeapError};
use crate::world::World;

/// The subject of an agreement among processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum About {
    /// The allocation of an array.
    Allocation = 1,
    /// A change of an array: that it becomes private, or shared again, or is freed.
    Change = 2,
    /// The definition of a function.
    Function = 3,
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allocation => "the allocation of an array",
            Self::Change => "`private`, `share` or `free` of an array",
            Self::Function => "the definition of a function",
        })
    }
}

/// Compares numbers that all processes pass about the same thing, and returns the position of the
/// first that differs between processes, if one does. A collective call: all processes await it.
///
/// # Errors
/// When the processes want to agree about different things, or another process is in another
/// collective or has gone.
pub(crate) async fn differs<const N: usize>(
    world: &World,
    about: About,
    numbers: [u64; N],
) -> Result<Option<usize>, Error> {
    let all: Vec<u64> = [about as u64].into_iter().chain(numbers).collect();
    let part = world.0.group.agree(&all);
    let agreed = Collective::new(world, Box::pin(async move { part.await.map(Ok) }));
    match agreed.await? {
        Some(0) => {
            let (what, here) = ("what is agreed about", about.to_string());
            Err(HeapError::Differs { what, here }.into())
        }
        found => Ok(found.map(|at| at - 1)),
    }
}
