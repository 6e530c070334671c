//! Teams: subsets of a world's processes.

use std::fmt;

use doorbell_am::group::Group;

use crate::error::Error;
use crate::world::World;

/// A subset of the processes of a world, which run collectives among themselves: see
/// [`World::split`].
///
/// The processes of a team have ranks of their own, from zero on. Memory belongs to the world, so
/// pointers have the ranks of the [world](Self::world_rank).
#[derive(Clone)]
pub struct Team {
    pub(super) world: World,
    pub(super) group: Group,
}

impl Team {
    /// The rank of this process in the team.
    pub fn rank(&self) -> usize {
        self.group.rank()
    }

    /// How many processes are in the team.
    pub fn size(&self) -> usize {
        self.group.size()
    }

    /// The rank in the world of the process that has the rank `rank` in the team.
    ///
    /// # Errors
    /// When there is no such process in the team.
    pub fn world_rank(&self, rank: usize) -> Result<usize, Error> {
        let size = self.size();
        match rank < size {
            true => Ok(self.group.whole(rank)),
            false => Err(crate::error::AccessError::Rank { rank, size }.into()),
        }
    }

    /// The world whose processes the team consists of.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Leaves the team in order. Dropping all handles to the team leaves it, too.
    pub async fn leave(self) {
        self.group.leave().await;
    }
}

impl fmt::Debug for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team").field("rank", &self.rank()).field("size", &self.size()).finish()
    }
}
