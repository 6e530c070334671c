//! Closing an endpoint in order: peers have what was sent before the connections end.

use std::sync::Arc;
use std::task::Waker;

use doorbell_am as am;
use futures_util::future::join_all;
use tokio::time::{Instant, timeout_at};

use super::shared::Shared;
use crate::tagged::error::{CloseError, GivenUp, WhyGivenUp, peer_text};

impl Shared {
    /// Sends what waits for credits, as far as there are some. Returns whether all messages to all
    /// peers have left, and nobody waits for the outcome of one.
    fn is_all_sent(&self) -> bool {
        let state = self.lock();
        let mut all = state.awaited.is_empty();
        for known in state.peers.values() {
            known.lane.send_more();
            all &= !known.lane.holds_any() && !known.outgoing.holds_any();
        }
        all
    }

    fn arm_closing(&self, waker: &Waker) {
        self.closing.arm(waker);
        self.lock().peers.values().for_each(|known| known.lane.wake_when_sent(waker));
    }

    /// Returns the names of the peers to which messages have not left.
    fn owed(&self) -> Vec<String> {
        let state = self.lock();
        let is_owed = |source| state.awaited.values().any(|awaited| awaited.to == source);
        let owed = state.peers.iter().filter(|&(source, known)| {
            known.lane.holds_any() || known.outgoing.holds_any() || is_owed(source)
        });
        owed.map(|(_, known)| peer_text(known.name.as_deref()).into()).collect()
    }
}

/// Waits until all messages have left and peers have handled them, for a time of at most the
/// endpoint's patience, and closes the endpoints of Active Messages below.
pub(super) async fn close_in_order(
    shared: &Arc<Shared>,
    endpoints: &[am::Endpoint],
) -> Result<(), CloseError> {
    let patience = endpoints[0].patience();
    let until = Instant::now() + patience;
    endpoints.iter().for_each(am::Endpoint::accept_no_more);
    let all_sent = || shared.is_all_sent().then_some(());
    let all_sent = shared.bundle().wait_until_woken(all_sent, |waker| shared.arm_closing(waker));
    let mut given_up = Vec::new();
    if timeout_at(until, all_sent).await.is_err() {
        let why = WhyGivenUp::Late(patience);
        given_up.extend(shared.owed().into_iter().map(|peer| GivenUp { peer, why: why.clone() }));
    }
    given_up.extend(shared.closing.take_lost());
    let mut peers = given_up.len();
    // A peer with several connections has a name for each, and is named by the first.
    for closed in join_all(endpoints.iter().map(|endpoint| endpoint.close_until(until))).await {
        let Err(CloseError { peers: at_all, given_up: others, .. }) = closed else { continue };
        peers = peers.max(at_all);
        let is_new = |other: &GivenUp| !given_up.iter().any(|there| there.peer == other.peer);
        let new: Vec<_> = others.into_iter().filter(is_new).collect();
        given_up.extend(new);
    }
    CloseError::unless_all_is_done(peers, given_up, 0)
}
