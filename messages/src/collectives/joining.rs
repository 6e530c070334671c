//! Joining a group over tagged messages, and leaving it.

use std::time::Duration;

use doorbell_am::Name;
use doorbell_collectives::GroupError;

use super::group::Group;
use super::members::Members;
use crate::tagged::Endpoint;

/// How long members that join a group wait for each other, unless they are told.
const PATIENCE: Duration = Duration::from_secs(30);

impl Group {
    /// Joins a group, as the member `rank` of those that the list `names` describes, and waits for
    /// all others. The members may start in any order, and have half a minute for that.
    ///
    /// All members have the same list. The endpoint is the one that the others know as
    /// `names[rank]`. It is the group's alone from then on: nothing else should be sent or received
    /// by it.
    ///
    /// # Errors
    /// When a member is missing, or in another group, and when the list has a name twice, or that
    /// of another endpoint at this member's place.
    pub async fn join(endpoint: Endpoint, rank: usize, names: &[Name]) -> Result<Self, GroupError> {
        Self::join_within(PATIENCE, endpoint, rank, names).await
    }

    /// Joins a group, as [`join`](Self::join) does, and waits as long for the others as `patience`
    /// says.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub async fn join_within(
        patience: Duration,
        endpoint: Endpoint,
        rank: usize,
        names: &[Name],
    ) -> Result<Self, GroupError> {
        Ok(Self::over(Members::meet(patience, endpoint, rank, names).await?))
    }

    /// Leaves the group, once all that this member has sent has come. Collectives that other
    /// members begin later fail if they need this member. A group that is dropped tells the others
    /// the same, and does not wait; a program that panics, or is killed, seems to have died to
    /// members that are not done with their last collective.
    ///
    /// Members that do not answer for ten seconds are not waited for.
    pub async fn leave(self) {
        self.links().leave().await;
    }
}
