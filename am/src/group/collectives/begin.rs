//! Beginning a collective, behind those that the program has begun before.

use std::sync::Arc;

use crate::group::collective::Collective;
use crate::group::collectives::barrier;
use crate::group::collectives::run::Run;
use crate::group::error::GroupError;
use crate::group::member::core::Core;
use crate::group::team::Team;

/// Begins a collective of a team. If a barrier must come in between, a task runs the barrier.
pub(in crate::group) fn begin(
    core: &Arc<Core>,
    team: &Arc<Team>,
    collective: Collective,
) -> Result<Run, GroupError> {
    let (run, fence) = Run::begin(core, team, collective)?;
    if let Some(fence) = fence {
        core.bundle.runtime().spawn(barrier::run(fence));
    }
    Ok(run)
}
