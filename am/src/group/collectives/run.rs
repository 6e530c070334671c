//! A collective under way at one member: its beginning, and its end.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::group::collective::Collective;
use crate::group::error::GroupError;
use crate::group::failure::{Cause, Failure};
use crate::group::mailbox::context::{Key, Ticket};
use crate::group::member::core::Core;
use crate::group::team::Team;
use crate::group::wire::Label;

/// A collective that a member has begun. If the value is dropped before the collective has
/// [ended](Self::end), the member has given the collective up, and the team's collectives fail.
pub struct Run {
    pub(in crate::group) core: Arc<Core>,
    pub(in crate::group) team: Arc<Team>,
    pub(in crate::group) collective: Collective,
    pub(in crate::group) sequence: u64,
    /// The sequence number of the collective that must be done before this one sends.
    pub(super) fence: u64,
    /// Set once that collective is known to be done.
    pub(super) may_send: AtomicBool,
    ended: bool,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { collective, sequence, .. } = self;
        let mut run = f.debug_struct("Run");
        run.field("collective", collective).field("sequence", sequence).finish_non_exhaustive()
    }
}

impl Run {
    /// Begins a collective of a team, behind all collectives that the program has begun before.
    /// Returns a barrier, too, if one must come in between, which the caller is to run.
    pub(in crate::group) fn begin(
        core: &Arc<Core>,
        team: &Arc<Team>,
        collective: Collective,
    ) -> Result<(Self, Option<Self>), GroupError> {
        let begun = core.mailbox.with(team.context, |context| {
            if context.is_leaving() {
                return Err(None);
            }
            if let Some(failure) = context.failure(context.last() + 1) {
                return Err(Some(failure.clone()));
            }
            let barrier = context.begin_fence();
            let ticket = context.begin(collective);
            let own = barrier.and_then(|own| context.mismatch(own.sequence, Collective::BARRIER));
            let mismatch = context.mismatch(ticket.sequence, collective);
            Ok((barrier, ticket, own.or(mismatch)))
        });
        let (barrier, ticket, mismatch) = begun.unwrap_or(Err(None)).map_err(|failure| {
            let Some(failure) = failure else { return core.own_leave().error(team) };
            core.mailbox.tell_once(team.context, &failure);
            failure.error(team)
        })?;
        let of = |collective, ticket: Ticket| Self {
            core: core.clone(),
            team: team.clone(),
            collective,
            sequence: ticket.sequence,
            fence: ticket.fence,
            may_send: AtomicBool::new(ticket.fence == 0),
            ended: false,
        };
        let fence = barrier.map(|ticket| of(Collective::BARRIER, ticket));
        if let Some(failure) = mismatch {
            core.mailbox.fail(team.context, &failure);
        }
        Ok((of(collective, ticket), fence))
    }

    /// Ends the collective with its result, success or failure, and tells all members of a failure.
    pub(in crate::group) fn end<T>(mut self, result: Result<T, Failure>) -> Result<T, GroupError> {
        self.ended = true;
        let (mailbox, context) = (&self.core.mailbox, self.team.context);
        mailbox.end(context, self.sequence, result.is_ok());
        result.map_err(|failure| {
            mailbox.fail(context, &failure);
            mailbox.tell_once(context, &failure);
            failure.error(&self.team)
        })
    }

    /// The failure of a member of the team, from this collective on.
    pub(in crate::group) fn failure_of(&self, rank: usize, cause: Cause) -> Failure {
        Failure { whole: self.team.whole(rank), after: self.sequence - 1, cause }
    }

    /// A failure that was noticed in this collective, and does not concern earlier ones.
    pub(in crate::group) fn here(&self, failure: Failure) -> Failure {
        Failure { after: self.sequence - 1, ..failure }
    }

    pub(in crate::group) fn label(&self, round: u32) -> Label {
        Label { collective: self.collective, round, from: self.core.mailbox.own }
    }

    pub(super) fn key(&self, other: usize, round: u32) -> Key {
        Key { sequence: self.sequence, from: self.team.whole(other), round }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.ended {
            let (mailbox, context) = (&self.core.mailbox, self.team.context);
            mailbox.end(context, self.sequence, false);
            mailbox.fail(context, &self.failure_of(self.team.rank, Cause::GaveUp));
        }
    }
}
