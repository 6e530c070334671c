//! Leaving a team in order.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Group;
use super::core::Core;
use super::failure::{Cause, Failure};
use super::team::Team;
use super::wire::LEAVE;

/// How long a member that leaves waits for others to take what was sent to them.
const FLUSHES_WITHIN: Duration = Duration::from_secs(10);

/// A member's place in a team, which the member leaves when this is dropped.
pub(super) struct Membership {
    pub core: Arc<Core>,
    pub team: Arc<Team>,
}

impl Membership {
    pub fn new(core: Arc<Core>, team: Arc<Team>) -> Arc<Self> {
        Arc::new(Self { core, team })
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

impl Group {
    /// Leaves the team, when all is done that this member has begun there: what was sent is taken
    /// by the others, and they are told that this member takes part in no further collective. A
    /// collective that needs it fails for them with [`Left`](super::GroupError::Left). Of the whole
    /// group, a member leaves when it is in no team of that any more, and then its connections end.
    ///
    /// A member that no other has had to do with by then is told of by nobody: for who looks for it
    /// later, it does not come.
    ///
    /// Other handles to the same place fail from then on. The future may be dropped: the member
    /// then leaves in the background.
    pub async fn leave(self) {
        let Membership { core, team } = &*self.0;
        if core.mailbox.begins_to_leave(team.context) {
            let left = core.bundle.runtime().spawn(leave(core.clone(), team.clone()));
            let _ = left.await;
        }
    }
}

/// Leaves a team, for which nothing new is begun any more.
async fn leave(core: Arc<Core>, team: Arc<Team>) {
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

/// Tells a member that this one leaves, if the member is still there. A member that has connected
/// to this one, and that this one has never sent anything, is connected to for that: else the
/// member would see nothing but the end of the connection, and take this one to be gone.
async fn tell(core: Arc<Core>, whole: u32, leaves: (u64, u32, u64)) {
    let peer = match core.mailbox.peer(whole) {
        Some(peer) => peer.clone(),
        None => {
            let name = &core.mailbox.names[whole as usize];
            // The member may be leaving, too, and needs no greeting to be told.
            match timeout(FLUSHES_WITHIN, core.endpoint.connect(name)).await {
                Ok(Ok(peer)) => peer,
                _ => return,
            }
        }
    };
    if peer.ending().is_none() {
        // A call is answered behind all that was sent before.
        let _ = peer.within(FLUSHES_WITHIN).call(LEAVE, leaves).await;
    }
}

impl Core {
    /// The failure of what is begun by a member that has left.
    pub(super) fn own_leave(&self) -> Failure {
        Failure { whole: self.mailbox.own, after: 0, cause: Cause::Left }
    }
}
