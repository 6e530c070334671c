//! Splitting a group into teams.

use std::sync::Arc;

use bytes::Bytes;
use doorbell_collectives::{Call, Communicator, Operation, algorithms};

use super::Group;
use crate::group::collectives::run::Run;
use crate::group::error::GroupError;
use crate::group::failure::{Cause, Failure};
use crate::group::member::leaving::Membership;
use crate::group::team::{Team, context_of};

/// The wish of a member in a split: its colour, if it is to be in a team, and the key by which the
/// team is ordered.
#[derive(Clone, Copy)]
struct Wish {
    color: Option<u32>,
    key: u32,
}

impl Wish {
    fn bytes(self) -> Bytes {
        let numbers = [u32::from(self.color.is_some()), self.color.unwrap_or(0), self.key];
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (numbers, []) = bytes.as_chunks::<4>() else { return None };
        let &[there, color, key] = numbers else { return None };
        let [there, color, key] = [there, color, key].map(u32::from_le_bytes);
        Some(Self { color: (there == 1).then_some(color), key })
    }
}

impl Group {
    /// Splits the group into teams. Members that pass the same colour form a team, in the order of
    /// the keys that they pass, and of their ranks where keys are equal. A member that passes no
    /// colour is in no team, and gets `None`.
    ///
    /// A team is a group like any other, with collectives and ranks of its own, and uses the same
    /// connections.
    ///
    /// ```
    /// # use doorbell_am::group::{Group, GroupError};
    /// async fn row(grid: &Group, columns: usize) -> Result<Group, GroupError> {
    ///     let row = (grid.rank() / columns) as u32;
    ///     let team = grid.split(Some(row), grid.rank() as u32).await?;
    ///     Ok(team.expect("every member has a colour"))
    /// }
    /// ```
    pub fn split(
        &self,
        color: Option<u32>,
        key: u32,
    ) -> impl Future<Output = Result<Option<Self>, GroupError>> + Send + use<> {
        let run = self.communicator().begin(Call::of(Operation::Split));
        async move {
            let run = run?;
            let core = run.core.clone();
            let team = team(&run, Wish { color, key }).await;
            if let Ok(Some(team)) = &team {
                core.mailbox.make(team.clone());
            }
            // From here on the member leaves the team again if the future is dropped.
            let membership =
                team.map(|team| team.map(|team| Self::of(Membership::new(core, team))));
            run.end(membership)
        }
    }
}

/// Gathers the wishes of all members, and returns the team that this member is in.
async fn team(run: &Run, own: Wish) -> Result<Option<Arc<Team>>, Failure> {
    let wishes = algorithms::all_gather(run, own.bytes()).await?;
    let mut members = Vec::new();
    for (rank, bytes) in wishes.iter().enumerate() {
        let whole = run.team.whole(rank);
        let malformed = || run.failure_of(rank, Cause::Malformed);
        let wish = Wish::from_bytes(bytes).ok_or_else(malformed)?;
        if own.color.is_some() && wish.color == own.color {
            members.push((wish.key, rank, whole));
        }
    }
    let Some(color) = own.color else { return Ok(None) };
    members.sort_unstable();
    let rank = members.iter().position(|(_, rank, _)| *rank == run.team.rank).unwrap_or(0);
    let members = members.iter().map(|(_, _, whole)| *whole).collect();
    Ok(Some(Arc::new(Team {
        context: context_of(run.team.context, run.sequence, color),
        rank,
        names: run.team.names.clone(),
        members: Some(members),
    })))
}
