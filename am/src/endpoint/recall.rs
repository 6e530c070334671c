//! Receives that are promised to who does not need them, and taken back for who does.
//!
//! While there is plenty, each peer is promised all that it may ever need. Later ones would find
//! nothing, then, and busy ones no more than they have: so what was promised for answers goes back,
//! and idle peers are asked for all their credits but one. A peer that has given a credit back does
//! not use it any more, and so each promise stays covered by a receive all the time.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::core::Core;
use crate::link::Link;
use crate::peer::ask;
use crate::receives::Buffers;
use crate::wire::Ask;

/// How long nobody is asked again.
pub(super) const BETWEEN_RECALLS: Duration = Duration::from_millis(10);

/// How long whoever needs one waits.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// How many peers are asked at a time.
const AT_ONCE: usize = 64;

/// Takes receives back from idle peers that have some of these; if there must be some, from others,
/// too. Until one has come back, or not for long while somebody is leaving who has some. Whether
/// any may.
pub(super) async fn recall(core: &Arc<Core>, receives: &Arc<Buffers>, must: bool) -> bool {
    let have = |link: &Arc<Link>| Arc::ptr_eq(&link.buffers, receives);
    let links: Vec<_> = core.links().into_iter().filter(have).collect();
    links.iter().for_each(|link| link.release_receives(link.yield_leases()));
    let asked = links.iter().filter(|link| link.is_recalled()).count();
    let leaves = links.iter().any(|link| link.is_leaving());
    let (idle, busy): (Vec<_>, Vec<_>) =
        links.into_iter().filter(|link| link.can_be_recalled()).partition(|link| link.is_idle());
    let others = busy.into_iter().filter(|_| must);
    let mut recalls = JoinSet::new();
    for link in idle.into_iter().chain(others).take(AT_ONCE.saturating_sub(asked)) {
        link.set_recalled(true);
        recalls.spawn_on(recall_from(link), &core.local.runtime);
    }
    let leaves = leaves || receives.any_retire();
    let anybody = leaves || asked > 0 || !recalls.is_empty();
    let one = async {
        while let Some(found) = recalls.join_next().await {
            if found.is_ok_and(|found| found > 0) {
                return;
            }
        }
        // What others have asked for may come instead.
        if anybody {
            tokio::time::sleep(BETWEEN_RECALLS).await;
        }
    };
    // What was promised to who has gone may come first.
    let patience = if leaves { BETWEEN_RECALLS } else { PATIENCE };
    let _ = tokio::time::timeout(patience, one).await;
    // The others go on.
    recalls.detach_all();
    anybody
}

/// How many receives come back from a peer.
async fn recall_from(link: Arc<Link>) -> usize {
    let reply = ask(&link, &[Ask::Recall as u64], &[]).await;
    link.set_recalled(false);
    let count = reply.ok().and_then(|reply| reply.words().next()).unwrap_or(0);
    let given = link.take_back(count as usize);
    link.release_receives(given);
    given
}
