//! Failures of members, by which collectives of a team can't go on.

use std::sync::Arc;

use doorbell_collectives::Operation;

use crate::group::collective::Collective;
use crate::group::error::GroupError;
use crate::group::team::Team;

/// The failure of a member, and the collectives that it concerns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The member's rank in the whole group.
    pub whole: u32,
    /// The number of the last collective that the failure does not concern: the member has done its
    /// part in the collectives up to that one, or will do it.
    pub after: u64,
    pub cause: Cause,
}

/// The cause of a member's failure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The connection to the member, or the member's process, has ended.
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
    /// The member has sent a message that belongs to no schedule.
    Malformed,
    /// The member belongs to another group.
    OtherGroup,
    /// The member gives something else than others to a collective that combines what all give.
    Unlike(Arc<str>),
}

impl Failure {
    /// The failure that a member which has noticed it tells others. Of two members, one of which
    /// has come to the end of its program and the other has not, the former has failed, whichever
    /// of the two has noticed: `own` is the rank of this member in the whole group.
    pub fn blamed(self, own: u32) -> Self {
        match self.cause {
            Cause::Mismatch { here, there }
                if here.operation() == Operation::Finish
                    && there.operation() != Operation::Finish =>
            {
                let cause = Cause::Mismatch { here: there, there: here };
                Self { whole: own, after: self.after, cause }
            }
            _ => self,
        }
    }

    pub fn is_gone(&self) -> bool {
        matches!(self.cause, Cause::Gone(_))
    }

    /// The error for a collective of a team that fails by this failure.
    pub(super) fn error(&self, team: &Team) -> GroupError {
        let whole = self.whole as usize;
        let name = team.names[whole].clone();
        // A failure of a team is always the failure of one of its members.
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
            Cause::Unlike(why) => GroupError::Unlike { rank, whole, why },
        }
    }
}
