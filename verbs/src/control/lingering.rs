//! Send queues that linger: their program has dropped them, and their requests are still carried
//! out for a while.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use doorbell_core::nic::{self, WorkRequest};
use doorbell_core::time::Time;

use super::operations::DroppedQueuePair;
use super::state::Control;
use crate::link::{ConnectionState, Link};

/// A send queue that is to linger, as its program leaves it.
pub(crate) struct LingeringQueue {
    pub link: Arc<Link>,
    /// The program's end of the queue.
    pub queue: nic::SendQueue,
    /// Requests for which the queue had no room, the first to be posted first.
    pub rest: VecDeque<WorkRequest>,
    /// The longest time for which the requests are carried out.
    pub within: Duration,
    /// The private data with which the connection ends then.
    pub private: Box<[u8]>,
}

/// A send queue that lingers until its last request has completed, or the time is over.
struct Lingerer {
    left: LingeringQueue,
    until: Time,
    /// The queue pair, once its program has dropped the receive queue, too.
    dropped: Option<DroppedQueuePair>,
}

/// The send queues that linger: no more than there are queue pairs.
#[derive(Default)]
pub(crate) struct Lingering(Vec<Lingerer>);

impl Lingering {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the time at which the first queue has lingered for long enough.
    pub fn next_timeout(&self) -> Option<Time> {
        self.0.iter().map(|lingerer| lingerer.until).min()
    }

    /// Keeps a queue pair that was dropped until its send queue has lingered. Returns the queue
    /// pair if its send queue does not linger.
    pub fn keep(&mut self, dropped: DroppedQueuePair) -> Option<DroppedQueuePair> {
        match self.0.iter_mut().find(|lingerer| lingerer.left.link.qpn == dropped.link.qpn) {
            Some(lingerer) => lingerer.dropped.replace(dropped),
            None => Some(dropped),
        }
    }
}

impl Lingerer {
    /// Posts the requests for which there is room by now. Returns whether all are carried out, or
    /// none will be any more.
    fn is_done(&mut self, nic: &mut nic::Nic, now: Time) -> bool {
        let LingeringQueue { link, queue, rest, .. } = &mut self.left;
        if now >= self.until || link.state() != ConnectionState::Connected {
            return true;
        }
        while let Some(request) = rest.pop_front() {
            if let Err(refused) = queue.post(request) {
                rest.push_front(*refused.request);
                break;
            }
            queue.ring();
        }
        rest.is_empty() && nic.unfinished(link.qpn) == 0
    }
}

impl Control {
    /// Has a send queue linger that its program has dropped.
    pub(super) fn linger(&mut self, left: LingeringQueue) {
        let until = self.now + left.within;
        self.lingering.0.push(Lingerer { left, until, dropped: None });
    }

    /// Ends the lingering of queues whose requests are carried out, or whose time is over.
    #[cold]
    pub(super) fn look_at_lingering(&mut self) {
        let Self { lingering, nic, now, .. } = self;
        let done: Vec<_> =
            lingering.0.extract_if(.., |lingerer| lingerer.is_done(nic, *now)).collect();
        done.into_iter().for_each(|lingerer| self.end_lingering(lingerer));
    }

    /// Ends the lingering of all queues.
    pub(super) fn end_all_lingering(&mut self) {
        let all = std::mem::take(&mut self.lingering.0);
        all.into_iter().for_each(|lingerer| self.end_lingering(lingerer));
    }

    fn end_lingering(&mut self, Lingerer { left, dropped, .. }: Lingerer) {
        let lost = left.rest.len() + self.nic.unfinished(left.link.qpn);
        if lost > 0 {
            tracing::debug!(qpn = %left.link.qpn, lost, "requests were given up");
        }
        let LingeringQueue { queue, rest, private, .. } = left;
        drop((queue, rest));
        if let Some(dropped) = dropped {
            self.drop_queue_pair(dropped, &private);
        }
    }
}
