//! Leaving a team in order.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::group::failure::{Cause, Failure};
use crate::group::member::core::Core;
use crate::group::team::Team;
use crate::group::wire::LEAVE;

/// How long a leaving member waits for another to take what was sent to it.
const FLUSHES_WITHIN: Duration = Duration::from_secs(10);

/// A member's place in a team. When the value is dropped, the member leaves the team.
pub struct Membership {
    pub(in crate::group) core: Arc<Core>,
    pub(in crate::group) team: Arc<Team>,
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rank, size) = (self.team.rank, self.team.size());
        f.debug_struct("Membership").field("rank", &rank).field("size", &size).finish()
    }
}

impl Membership {
    pub(in crate::group) fn new(core: Arc<Core>, team: Arc<Team>) -> Self {
        Self { core, team }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let (core, team) = (self.core.clone(), self.team.clone());
        // A member that has called `leave` is out already.
        if core.mailbox.begins_to_leave(team.context) {
            self.core.bundle.runtime().spawn(leave(core, team));
        }
    }
}

/// Leaves a team in which this member begins nothing new any more.
pub(in crate::group) async fn leave(core: Arc<Core>, team: Arc<Team>) {
    let (mailbox, context) = (&core.mailbox, team.context);
    let idle = || match mailbox.with(context, |context| context.is_idle()) {
        Some(false) => None,
        _ => Some(()),
    };
    core.bundle.wait_until(idle).await;
    let last = mailbox.with(context, |context| context.last()).unwrap_or_default();
    let mut told = JoinSet::new();
    for whole in mailbox.met().into_iter().filter(|whole| team.rank_of(*whole).is_some()) {
        told.spawn(tell(core.clone(), whole, (context, mailbox.own, last)));
    }
    while told.join_next().await.is_some() {}
    mailbox.unmake(context);
}

/// Tells another member that this one leaves, unless the other has left, or leaves meanwhile: then
/// it may be gone before it answers. If the other member has connected to this one, but was never
/// sent anything, this one connects to it for the notice: otherwise the other member would see only
/// the end of its connection, and take this one to have died.
async fn tell(core: Arc<Core>, whole: u32, leaves: (u64, u32, u64)) {
    let (context, ..) = leaves;
    let has_left = || {
        let left = core.mailbox.with(context, |context| context.has_left(whole));
        left.unwrap_or(true).then_some(())
    };
    let told = async {
        let peer = match core.mailbox.peer(whole) {
            Some(peer) => peer.clone(),
            // It needs no `HELLO` to be told.
            None => match timeout(FLUSHES_WITHIN, core.dial(whole)).await {
                Ok(Ok(peer)) => peer,
                _ => return,
            },
        };
        if peer.ending().is_none() {
            // The answer to a call comes behind everything that was sent before.
            let _ = peer.within(FLUSHES_WITHIN).call(LEAVE, leaves).await;
        }
    };
    tokio::select! {
        biased;
        () = core.bundle.wait_until(has_left) => {}
        () = told => {}
    }
}

impl Core {
    /// The failure of collectives that are begun after this member has left.
    pub(in crate::group) fn own_leave(&self) -> Failure {
        Failure { whole: self.mailbox.own, after: 0, cause: Cause::Left }
    }
}
