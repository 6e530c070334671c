//! Failures of members and of collectives: which collectives fail, and which members are told.

use std::sync::Arc;
use std::time::Duration;

use doorbell_verbs::floor::locked;

use super::{Held, Mailbox};
use crate::group::failure::{Cause, Failure};
use crate::group::mailbox::context::Context;
use crate::group::team::Team;
use crate::group::wire::{BROKEN, words_of_failure};
use crate::peer::Peer;

/// How long a notice of a failure waits for a credit. A member that takes nothing for longer finds
/// out by its own connections.
const TELLS_WITHIN: Duration = Duration::from_secs(5);

impl Mailbox {
    /// Fails the collectives of a team that a failure concerns, and tells the team's members. Does
    /// nothing if those collectives fail already.
    pub fn fail(&self, number: u64, failure: &Failure) {
        let team = self.change(|state| {
            let context = state.context(number)?;
            context.fail(failure).then(|| context.team.clone())
        });
        if let Some(team) = team {
            self.tell(&team, failure);
        }
    }

    /// Tells the members of a team why their collectives fail.
    fn tell(&self, team: &Team, failure: &Failure) {
        let to = |whole| team.rank_of(whole).is_some();
        self.spread(team.context, failure, to);
    }

    /// Handles a member's notice of a failure, and passes the failure on. A notice that can't be
    /// decoded is `None`, and is only counted.
    pub fn hears_of(&self, number: u64, failure: Option<Failure>) {
        let Some(failure) = failure else { return self.wrong(number, None) };
        let Failure { whole, ref cause, .. } = failure;
        if let Cause::Gone(why) = cause {
            // A member that others take to have gone counts as gone here, too, and is told so: no
            // member goes on with it.
            return self.is_gone(whole, why.clone());
        }
        let known = self.handle(|state| {
            let known = state.context(number).is_some();
            if !known {
                drop(state.hold(number, whole, Held::Broken(failure.clone())));
            }
            known
        });
        if known {
            self.fail(number, &failure);
            self.tell_once(number, &failure);
        }
    }

    /// Tells the members of a team that a member which a collective needs has left, unless they
    /// were told before. The member that left has told only the members that it was connected to.
    pub fn tell_once(&self, number: u64, failure: &Failure) {
        if failure.cause == Cause::Left {
            let tells = |context: &mut Context| {
                context.is_to_tell(failure.after).then(|| context.team.clone())
            };
            if let Some(team) = self.with(number, tells).flatten() {
                self.tell(&team, failure);
            }
        }
    }

    /// Fails the collectives of all teams with a member that has gone, and tells all members. Teams
    /// that the member or this one has left in order are excepted: a member that leaves need not
    /// tell one that has left before.
    pub fn is_gone(&self, whole: u32, why: Arc<str>) {
        let failure = Failure { whole, after: 0, cause: Cause::Gone(why) };
        let is_news = self.change(|state| {
            if state.gone.iter().any(|gone| gone.whole == whole) {
                return false;
            }
            let mut is_needed = false;
            for context in &mut state.contexts {
                let is_over = context.is_leaving() && context.is_idle();
                let is_member = context.team.rank_of(whole).is_some();
                if is_member && !context.has_left(whole) && !is_over {
                    is_needed = true;
                    context.fail(&failure);
                }
            }
            if is_needed {
                state.gone.push(failure.clone());
            }
            is_needed
        });
        if is_news {
            self.spread(0, &failure, |_| true);
        }
    }

    /// Tells a member that has just been connected to of all failures so far.
    pub(in crate::group) fn tell_all_failures(&self, rank: u32, peer: &Peer) {
        let failures: Vec<(u64, Failure)> = {
            let state = locked(&self.state);
            let gone = state.gone.iter().map(|failure| (0, failure.clone()));
            let broken = state.contexts.iter().filter_map(|context| {
                let is_member = context.team.rank_of(rank).is_some();
                let failure = context.broken().filter(|_| is_member)?;
                Some((context.team.context, failure.clone()))
            });
            // A member that has gone fails all teams, and is told of once for all of them.
            let is_other = |(_, failure): &(u64, Failure)| !failure.is_gone();
            gone.chain(broken.filter(is_other)).collect()
        };
        for (context, failure) in failures {
            self.send(peer.clone(), context, &failure);
        }
    }

    /// Sends a failure, in the background, to those of the chosen members that have a connection.
    fn spread(&self, context: u64, failure: &Failure, to: impl Fn(u32) -> bool) {
        for (rank, peer) in (0..).zip(&self.peers) {
            if let Some(peer) = peer.get().filter(|_| to(rank)) {
                self.send(peer.clone(), context, failure);
            }
        }
    }

    fn send(&self, peer: Peer, context: u64, failure: &Failure) {
        if peer.ending().is_some() {
            return;
        }
        let words = words_of_failure(context, failure);
        self.runtime.spawn(async move {
            let _ = peer.within(TELLS_WITHIN).notify(BROKEN, words).await;
        });
    }
}
