//! Teardown of objects that programs have dropped.

use doorbell_core::nic::{Change, ResourceError};

use super::operations::DroppedQueuePair;
use super::state::Control;
use crate::dispatch::AsyncEvent;
use crate::link::{Ending, Private};

impl Control {
    /// Starts the teardown of a queue pair: what is posted is flushed, and the peer is told, with
    /// private data. The queue pair is gone once its connection's numbers have rested.
    pub(super) fn drop_queue_pair(&mut self, dropped: DroppedQueuePair, private: &[u8]) {
        let DroppedQueuePair { link, ends } = dropped;
        self.disconnects = true;
        let _ = self.nic.change(link.qpn, Change::Error);
        drop(ends);
        self.end(&link, Ending::Left { private: Private::default() });
        self.connections.give_up(&link, private, &mut self.manager);
        self.dispatchers.remove(&link.qpn);
        self.dropped_pairs.push(link.qpn);
    }

    /// Ends the lingering of send queues whose requests are carried out, or whose time is over.
    #[cold]
    pub(super) fn look_at_lingering(&mut self) {
        for (dropped, private) in self.lingering.go_on(&mut self.nic, self.now) {
            self.drop_queue_pair(dropped, &private);
        }
    }

    /// Ends all listeners and all connections, also those that are being made, and tells the peers.
    #[cold]
    pub fn end_all(&mut self) {
        self.listeners.stop_all(&mut self.manager);
        for (dropped, private) in self.lingering.end_all(&mut self.nic) {
            self.drop_queue_pair(dropped, &private);
        }
        self.disconnects = true;
        let links: Vec<_> = self.links.values().cloned().collect();
        for link in links {
            let _ = self.nic.change(link.qpn, Change::Error);
            self.end(&link, Ending::Left { private: Private::default() });
            self.connections.give_up(&link, &[], &mut self.manager);
        }
    }

    /// Removes all dropped objects that nothing uses any more.
    #[cold]
    pub(super) fn remove_dropped(&mut self) {
        let Self {
            dropped_pairs,
            dropped_queues,
            dropped_shared_receives,
            nic,
            links,
            paths,
            events,
            ..
        } = self;
        // The program that dropped the queue polls it no more.
        for (_, queue) in dropped_queues.iter_mut() {
            while queue.poll_in_place().is_some() {}
        }
        dropped_pairs.retain(|qpn| {
            let Some(link) = links.get(qpn) else { return false };
            if link.nic_side(|side| side.id.is_some()) {
                return true;
            }
            if let Err(ResourceError::Outstanding { .. }) = nic.drop_queue_pair(*qpn) {
                return true;
            }
            if let Some((way, _)) = link.nic_side(|side| side.path.take()) {
                paths.give_back(&way);
            }
            // The queue pair may be removed before the NIC has told of its last receive.
            if link.terms.shares_receives && link.now_had_last_receive() {
                let _ = events.send(AsyncEvent::LastReceive(*qpn));
            }
            links.remove(qpn);
            false
        });
        dropped_shared_receives.retain(|queue| {
            let dropped = nic.drop_shared_receive_queue(*queue);
            matches!(dropped, Err(ResourceError::SharedInUse { .. }))
        });
        dropped_queues.retain(|(queue, _)| {
            matches!(nic.drop_completion_queue(*queue), Err(ResourceError::InUse { .. }))
        });
    }

    /// Returns how many dropped queue pairs still take a place.
    pub fn dropped_queue_pairs(&self) -> usize {
        self.dropped_pairs.len()
    }

    /// Returns whether all dropped objects have been removed.
    pub fn has_removed_all(&self) -> bool {
        self.dropped_pairs.is_empty()
            && self.dropped_queues.is_empty()
            && self.dropped_shared_receives.is_empty()
    }
}
