//! The ends of peers and of the endpoint.

use std::sync::PoisonError;

use doorbell_am as am;

use super::shared::Shared;
use super::state::Known;
use crate::error::{ReceiveError, SendError, peer_text};
use crate::pacing::Held;

impl Shared {
    /// Ends what waits for a peer one of whose connections has ended.
    pub fn gone(&self, link: &am::Peer) {
        let mut state = self.lock();
        let Some(source) = state.links.remove(link) else { return };
        state.links.retain(|_, of| *of != source);
        let known = state.peers.remove(&source);
        let receives = state.incoming.remove_sender(source);
        let awaited: Vec<_> = state.awaited.extract_if(|_, awaited| awaited.to == source).collect();
        drop(state);
        let name = known.as_ref().and_then(|known| known.name.clone());
        let peer = name.unwrap_or_else(|| peer_text(link.name()));
        for slot in receives {
            slot.outcome.fill(Err(ReceiveError::PeerGone { peer: peer.clone() }));
        }
        for (_, awaited) in awaited {
            let gone = SendError::PeerGone { peer: peer.clone(), len: awaited.len };
            awaited.slot.fill(Err(gone));
        }
        let Some(Known { mut outgoing, lane, token, .. }) = known else { return };
        token.into_iter().for_each(|token| self.service.forget(token));
        lane.close();
        for Held { message, .. } in outgoing.drain() {
            let gone = lane.gone(message.len);
            message.slot.iter().for_each(|slot| slot.fill(Err(gone.clone())));
        }
    }

    /// Ends what waits for peers whose ends were missed.
    pub fn look_for_gone(&self) {
        let links: Vec<_> = self.lock().links.keys().cloned().collect();
        links.iter().filter(|link| link.ending().is_some()).for_each(|link| self.gone(link));
    }

    /// Ends all sends and receives, because the endpoint has ended.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let links: Vec<_> = state.links.keys().cloned().collect();
        let receives = state.incoming.drain_receives();
        drop(state);
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
        links.iter().for_each(|link| self.gone(link));
        receives.iter().for_each(|slot| slot.outcome.fill(Err(ReceiveError::Closed)));
    }
}
