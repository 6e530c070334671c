//! A member's place in a team, from which its collectives begin.

use std::sync::Arc;

use doorbell_collectives::{Call, Communicator, Operation, Wrong, algorithms};

use crate::group::collective::Collective;
use crate::group::collectives::run::Run;
use crate::group::error::GroupError;
use crate::group::member::leaving::Membership;

impl Communicator for Membership {
    type Error = GroupError;
    type Rounds = Run;

    fn rank(&self) -> usize {
        self.team.rank
    }

    fn size(&self) -> usize {
        self.team.size()
    }

    /// Begins a collective of the team. If a barrier must come in between, a task runs the barrier.
    fn begin(self: &Arc<Self>, call: Call) -> Result<Run, GroupError> {
        let (run, fence) = Run::begin(&self.core, &self.team, Collective::of_call(call))?;
        if let Some(fence) = fence {
            self.core.bundle.runtime().spawn(async move {
                let result = algorithms::barrier(&fence).await;
                fence.end(result)
            });
        }
        Ok(run)
    }

    fn refusal(&self, _operation: Operation, wrong: Wrong) -> GroupError {
        match wrong {
            Wrong::NoMember { rank, size } => GroupError::Root { root: rank, size },
            Wrong::Parts { found, size } => GroupError::Parts { found, size },
        }
    }
}
