//! Recalling receives from links that do not need them, for links that do.
//!
//! While receives are plenty, each peer is promised all that it may ever need. Later peers would
//! then find none, and busy peers no more than they have. So links give up receives that they have
//! for answers and do not need, and idle peers are asked for all their credits but one. A peer does
//! not use a credit that it has given up, so a receive stands behind each promise all the time.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::core::Core;
use crate::link::Link;
use crate::peer::ask;
use crate::receives::Buffers;
use crate::wire::Ask;

/// The time between two recalls.
pub(super) const BETWEEN_RECALLS: Duration = Duration::from_millis(10);

/// The time that a new link waits for receives.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// The most peers that are asked at a time.
const AT_ONCE: usize = 64;

/// Takes receives of a pool back from idle peers, and from busy peers, too, if there `must` be
/// some. Waits until one has come back, but not for long while links of the pool are about to end.
/// Returns whether any may still come back.
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
        // A receive may come back that another recall has asked for.
        if anybody {
            tokio::time::sleep(BETWEEN_RECALLS).await;
        }
    };
    // Receives of a link that ends may come back first.
    let patience = if leaves { BETWEEN_RECALLS } else { PATIENCE };
    let _ = tokio::time::timeout(patience, one).await;
    // The recalls that have not come back go on.
    recalls.detach_all();
    anybody
}

/// Asks a peer for its credits. Returns how many receives have come back.
async fn recall_from(link: Arc<Link>) -> usize {
    let reply = ask(&link, &[Ask::Recall as u64], &[]).await;
    link.set_recalled(false);
    let count = reply.ok().and_then(|reply| reply.words().next()).unwrap_or(0);
    let given = link.take_back(count as usize);
    link.release_receives(given);
    given
}
