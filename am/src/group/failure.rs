//! Why collectives of a team can't go on, as members tell each other.

use std::sync::Arc;

use super::collective::Collective;
use super::error::GroupError;
use super::team::Team;

/// A member, and what has happened to that member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Failure {
    /// The member's rank in the whole group.
    pub whole: u32,
    /// The collectives up to this number are not concerned: the member has done its part of them,
    /// or will.
    pub after: u64,
    pub cause: Cause,
}

/// What has happened to a member, or what the member did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Cause {
    /// The connection to the member has ended, or the member's process.
    Gone(Arc<str>),
    /// The member has left in order.
    Left,
    /// The member has dropped a collective that was not done.
    GaveUp,
    /// The member is in another collective, `there`, than the member that noticed, which is in
    /// `here`.
    Mismatch { here: Collective, there: Collective },
    /// The member could not be connected to.
    Unreached(Arc<str>),
    /// The member wanted to send more than members take.
    TooLong { len: u64, longest: u64 },
    /// The member has sent what belongs to no schedule.
    Malformed,
    /// The member is one of another group.
    OtherGroup,
}

impl Failure {
    pub fn is_gone(&self) -> bool {
        matches!(self.cause, Cause::Gone(_))
    }

    /// The failure as an error of a collective of a team.
    pub fn error(&self, team: &Team) -> GroupError {
        let whole = self.whole as usize;
        let name = team.names[whole].clone();
        // A failure of a team is always one of a member.
        let rank = team.rank_of(self.whole).unwrap_or(whole);
        match self.cause.clone() {
            Cause::Gone(why) => GroupError::Gone { rank, whole, name, why },
            Cause::Left => GroupError::Left { rank, whole, last: self.after },
            Cause::GaveUp => GroupError::GaveUp { rank, whole },
            Cause::Mismatch { here, there } => GroupError::Mismatch { rank, whole, here, there },
            Cause::Unreached(why) => GroupError::Connect { rank, whole, name, why },
            Cause::TooLong { len, longest } => GroupError::TooLong { rank, whole, len, longest },
            Cause::Malformed => GroupError::Malformed { rank, whole },
            Cause::OtherGroup => GroupError::OtherGroup { rank, whole, name },
        }
    }
}
