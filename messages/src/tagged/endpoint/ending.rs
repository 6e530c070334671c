//! The ends of peers and of the endpoint.

use std::sync::Arc;

use doorbell_am as am;
use doorbell_verbs::floor::{Awaits, Prober};

use super::effects::Effects;
use super::frame::{Outbound, Waits};
use super::places::ReceiveId;
use super::shared::Shared;
use super::state::{Gone, Known, State, react};
use crate::matching::Source;
use crate::tagged::error::{
    GivenUp, ReceiveError, SendError, Unsent, WhyGivenUp, peer_text, why_gone,
};
use doorbell_verbs::floor::locked;

/// A receive, and a message that the peer has no room for, wait for what a peer's program does.
impl Awaits for Shared {
    fn prober(&self) -> &Prober {
        &self.prober
    }

    /// Returns that something may be awaited for as long as the endpoint is open, since what is
    /// awaited changes all the time.
    fn is_waiting(&self) -> bool {
        true
    }

    fn probe(&self) {
        let awaited = self.lock().awaited_links();
        awaited.iter().for_each(am::Peer::probe);
    }
}

impl Shared {
    /// Ends what waits for a peer whose connection has ended, unless the peer has another.
    pub fn gone(self: &Arc<Self>, link: &am::Peer) {
        let mut state = self.lock();
        let Some((source, device)) = state.remove_link(link) else { return };
        if let Some(known) = state.peers.get_mut(source)
            && known.lane.lose_rail(link)
        {
            known.pulls.get_mut(device).into_iter().for_each(|pulls| *pulls = None);
            let lane = known.lane.clone();
            drop(state);
            lane.flush();
            return;
        }
        // A connection beside the first, by which messages leave, may end by itself.
        let first = state.peers.get(source).map(|known| known.lane.link());
        if first.is_some_and(|first| first != link) {
            return;
        }
        state.remove_links_to(source);
        let known = state.peers.remove(source);
        let name = known.as_ref().and_then(|known| known.name.clone());
        let (peer, why) = (peer_text(name.as_deref()), why_gone(link.ending()));
        state.remember(Gone { source, name, why: why.clone() });
        let is_closed = state.is_closed;
        let mut effects = Effects::default();
        let State { incoming, peers, .. } = &mut *state;
        let mut reacts = |what| react(peers, &mut effects, what);
        let (receives, met) = incoming.remove_sender(source, &mut reacts);
        met.into_iter().for_each(|(receive, met)| state.meets(receive, met, &mut effects));
        let awaited: Vec<_> = state.awaited.extract_if(|_, awaited| awaited.to == source).collect();
        drop(state);
        self.finish(effects);
        self.fails(receives, || ReceiveError::PeerGone { peer: peer.clone(), why: why.clone() });
        let lost = |len| match (peer.clone(), Unsent::Bytes(len)) {
            (peer, what) if is_closed => SendError::Closed { peer, what },
            (peer, what) => SendError::Gone { peer, what, why: why.clone() },
        };
        let owed = !awaited.is_empty();
        for (_, awaited) in awaited {
            awaited.slot.fill(Err(lost(awaited.len)));
        }
        let Some(Known { mut outgoing, lane, tokens, .. }) = known else { return };
        tokens.into_iter().flatten().for_each(|token| self.service.forget(token));
        let is_owed = outgoing.holds_any() || lane.holds_any() || owed;
        if is_owed && !is_closed {
            self.closing
                .loses(GivenUp { peer: peer.clone().into(), why: WhyGivenUp::of(link.ending()) });
        }
        lane.close();
        self.closing.wake();
        for Outbound { waits, len, .. } in outgoing.drain() {
            if let Waits::Slot(slot) = waits {
                slot.fill(Err(lost(len)));
            }
        }
    }

    /// Ends receives for a reason. Memory that they were to fill is not written any more.
    pub(super) fn fails(
        &self,
        receives: impl IntoIterator<Item = ReceiveId>,
        why: impl Fn() -> ReceiveError,
    ) {
        let mut effects = Effects::default();
        let (mut state, mut targets) = (self.lock(), Vec::new());
        for receive in receives {
            targets.extend(state.receives.target(receive));
            if let Ok(waker) = state.receives.put(receive, Err(why())) {
                effects.wake(waker);
            }
        }
        drop(state);
        for target in targets {
            target.give_up();
            target.revoke();
        }
        effects.finish();
    }

    /// Takes in how many packets a peer has got by several connections, if the peer is known.
    pub fn acknowledged(&self, source: Source, next: u64) -> Option<bool> {
        let state = self.lock();
        let keeps_rules = state.peers.get(source)?.lane.acknowledged(next);
        Some(!keeps_rules && self.malformed())
    }

    /// Ends what waits for peers whose ends were missed.
    pub fn look_for_gone(self: &Arc<Self>) {
        let links = self.lock().all_links();
        links.iter().filter(|link| link.departed().is_some()).for_each(|link| self.gone(link));
    }

    /// Ends all sends and receives, because the endpoint has ended.
    pub fn close(self: &Arc<Self>) {
        let mut state = self.lock();
        state.is_closed = true;
        let links = state.all_links();
        let receives = state.incoming.drain_receives();
        drop(state);
        locked(&self.tasks).abort_all();
        links.iter().for_each(|link| self.gone(link));
        self.fails(receives, || ReceiveError::Closed);
    }
}
