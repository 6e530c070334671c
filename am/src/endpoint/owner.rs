//! What links ask of the endpoint that owns them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::timeout;

use super::core::{Core, left};
use super::event::Event;
use super::recall::{BETWEEN_RECALLS, PATIENCE, recall};
use crate::link::{Disconnecting, Link, Owner};
use crate::peer::{Peer, ask};
use crate::receives::Buffers;
use crate::wire::Ask;

/// For each of how many links the time between two recalls is longer.
const LINKS_AT_ONCE: usize = 512;

impl Owner for Core {
    fn check(&self, link: &Arc<Link>) {
        Self::check(self, link);
    }

    fn close_with_runtime(&self) {
        if !self.is_closed() {
            self.runtime_ended.store(true, Ordering::Release);
            self.close();
        }
    }

    fn end_with_nic(&self) {
        self.nic_closed.store(true, Ordering::SeqCst);
        drop(self.take_events());
    }

    #[cold]
    fn recall_receives(self: Arc<Self>, receives: &Arc<Buffers>) {
        if self.recalling.load(Ordering::Relaxed) || self.recalling.swap(true, Ordering::Relaxed) {
            return;
        }
        let (core, receives) = (self, receives.clone());
        core.local.runtime.clone().spawn(async move {
            recall(&core, &receives, false).await;
            // A recall looks at all links, so with thousands of them there are fewer recalls.
            let parts = core.count_links() / LINKS_AT_ONCE;
            tokio::time::sleep(BETWEEN_RECALLS * (1 + parts as u32)).await;
            core.recalling.store(false, Ordering::Relaxed);
        });
    }

    fn rest_when_idle(self: Arc<Self>) {
        let owner: Arc<dyn Owner> = self.clone();
        self.engine.rest_when_idle(Arc::downgrade(&owner));
    }

    fn rests(&self) -> bool {
        self.rest_if_idle()
    }

    fn map_segment(&self, link: Arc<Link>) {
        self.local.runtime.spawn(async move {
            let answer = ask(&link, &[Ask::Lend as u64], &[]).await;
            let lent = answer.is_ok_and(|reply| reply.words().eq([1]));
            if !lent {
                return;
            }
            let segment = link.send_side().segment;
            // While somebody waits for a grant, the device is asked for it again and again.
            if let Ok(Ok(mapped)) = timeout(PATIENCE, link.connection.map(segment)).await {
                link.send_side().set_mapped(mapped);
            }
        });
    }

    fn end_overrun(&self, link: &Arc<Link>) {
        self.send_event(Event::Overrun(Peer::of(link.clone())));
        self.end(link, left());
    }

    fn give_up(&self, link: &Arc<Link>) {
        self.end_within(link, left(), self.local.config.linger);
        link.cut_off();
    }

    fn tell_departed(&self, link: &Arc<Link>) {
        self.departing.fetch_sub(1, Ordering::SeqCst);
        let events = self.take_events().or_else(|| self.event_sender());
        if let (Some(gone), Some(events)) = (gone(link), events) {
            self.local.runtime.spawn(async move { drop(events.send(gone)) });
        }
    }

    fn disconnect<'l>(self: Arc<Self>, link: &'l Arc<Link>) -> Disconnecting<'l> {
        Box::pin(async move { self.unmap_link(link).await })
    }
}

/// Returns the event that tells of the end of a link, if the link is one that programs know.
pub(super) fn gone(link: &Arc<Link>) -> Option<Event> {
    let ending = link.ending().filter(|_| !link.is_for_shorter())?;
    Some(Event::Gone(Peer::of(link.clone()), ending))
}
