//! Links that open and end, and endpoints that close.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use doorbell_verbs::{ConnectionState, Ending, Queues};

use super::core::{Core, left};
use super::event::Event;
use super::owner::gone;
use crate::error::{GivenUp, WhyGivenUp};
use crate::link::Link;
use crate::peer::Peer;
use crate::progress::{Departure, Update};

impl Core {
    /// Opens a link, since its connection stands, and tells the poller and the program.
    pub(super) fn open_link(&self, link: &Arc<Link>, queues: Queues) {
        if !link.open(queues) {
            return;
        }
        tracing::debug!(peer = %link.peer_text(), qpn = %link.qpn(), "a link is open");
        self.engine.tell(Update::Opened(link.clone()));
        if !link.is_for_shorter() {
            self.send_event(Event::Linked(Peer::of(link.clone())));
        }
        link.send_side().announced = true;
        // The connection may have ended before that.
        self.check(link);
    }

    /// Ends a link if its connection has ended.
    pub(super) fn check(&self, link: &Arc<Link>) {
        if link.send_side().announced
            && let ConnectionState::Ended(ending) = link.connection.state()
        {
            self.end(link, ending);
        }
    }

    /// Ends a link, and the links that are of no use without it. Does nothing if it is over
    /// already.
    pub(super) fn end(&self, link: &Arc<Link>, ending: Ending) {
        self.end_within(link, ending, Duration::ZERO);
    }

    /// Ends a link as [`end`](Self::end) does, and lets what was sent go on to the peer for a time.
    pub(super) fn end_within(&self, link: &Arc<Link>, ending: Ending, lingers: Duration) {
        let Some(lost) = link.end(ending.clone(), lingers) else { return };
        let why = self.why_given_up(&ending);
        tracing::debug!(peer = %link.peer_text(), qpn = %link.qpn(), why = %ending, "a link ended");
        if lost > 0 && matches!(why, WhyGivenUp::NicClosed | WhyGivenUp::Gone(Ending::Broken(_))) {
            self.note_lost(GivenUp { peer: link.peer_text().into(), why });
        }
        let promised = link.take_promised();
        link.buffers.retire(promised);
        self.remove_link(link);
        self.departing.fetch_add(1, Ordering::SeqCst);
        self.engine.tell(Update::LinkGone(Departure::new(link.clone(), lost, promised)));
        let siblings = link.siblings();
        siblings.iter().for_each(|other| self.end_within(other, ending.clone(), lingers));
    }

    /// Returns why a peer is given up whose connection has ended.
    pub(super) fn why_given_up(&self, ending: &Ending) -> WhyGivenUp {
        match ending {
            Ending::Left { .. } if self.engine.nic.is_closed() => WhyGivenUp::NicClosed,
            ending => WhyGivenUp::Gone(ending.clone()),
        }
    }

    /// Closes the endpoint: all links end, and none is made any more. What was sent goes on to
    /// peers for the time that is [configured](crate::EndpointConfig::linger). Another endpoint may
    /// get the service number.
    pub(super) fn close(&self) {
        let links = self.take_links();
        self.engine.watched.remove_owner(self.local.number);
        self.engine.tell(Update::EndpointGone(self.local.number));
        let lingers = self.local.config.linger;
        for link in links {
            self.end_within(&link, left(), lingers);
            if link.departs() {
                gone(&link).into_iter().for_each(|gone| self.send_event(gone));
            }
        }
        self.places_mut().clear();
        // The links on that list would keep the endpoint's state.
        self.local.starving.clear();
        self.engine.drop_closed();
    }
}
