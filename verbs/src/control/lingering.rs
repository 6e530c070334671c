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

/// A send queue that lingers until its last request has completed, or the time is over, and its
/// queue pair until the program has dropped the receive queue, too.
struct Lingerer {
    link: Arc<Link>,
    /// The queue, and the requests for which it had no room, while they are carried out.
    queue: Option<(nic::SendQueue, VecDeque<WorkRequest>)>,
    until: Time,
    private: Box<[u8]>,
    /// The queue pair, once the program has dropped the receive queue.
    dropped: Option<DroppedQueuePair>,
}

/// The send queues that linger: no more than there are queue pairs.
#[derive(Default)]
pub(crate) struct Lingering(Vec<Lingerer>);

impl Lingering {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether requests are still carried out.
    pub fn is_under_way(&self) -> bool {
        self.0.iter().any(|lingerer| lingerer.queue.is_some())
    }

    /// Returns the time at which the first queue has lingered for long enough.
    pub fn next_timeout(&self) -> Option<Time> {
        let under_way = self.0.iter().filter(|lingerer| lingerer.queue.is_some());
        under_way.map(|lingerer| lingerer.until).min()
    }

    /// Keeps a queue pair that was dropped until its send queue has lingered. Returns the queue
    /// pair if its send queue does not linger.
    pub fn keep(&mut self, dropped: DroppedQueuePair) -> Option<DroppedQueuePair> {
        match self.0.iter_mut().find(|lingerer| lingerer.link.qpn == dropped.link.qpn) {
            Some(lingerer) => lingerer.dropped.replace(dropped),
            None => Some(dropped),
        }
    }
}

impl Lingerer {
    /// Posts the requests for which there is room by now. Ends the queue if all are carried out, or
    /// none will be any more. Returns whether nothing keeps the queue pair.
    fn goes_on(&mut self, nic: &mut nic::Nic, now: Time) -> bool {
        if let Some((queue, rest)) = &mut self.queue {
            let stands = now < self.until && self.link.state() == ConnectionState::Connected;
            while stands && let Some(request) = rest.pop_front() {
                if let Err(refused) = queue.post(request) {
                    rest.push_front(*refused.request);
                    break;
                }
                queue.ring();
            }
            if !stands || rest.is_empty() && nic.unfinished(self.link.qpn) == 0 {
                self.end(nic);
            }
        }
        self.queue.is_none() && self.dropped.is_some()
    }

    /// Ends the queue, whatever has become of its requests.
    fn end(&mut self, nic: &mut nic::Nic) {
        let Some((_, rest)) = self.queue.take() else { return };
        let lost = rest.len() + nic.unfinished(self.link.qpn);
        if lost > 0 {
            tracing::debug!(qpn = %self.link.qpn, lost, "requests were given up");
        }
    }
}

impl Control {
    /// Has a send queue linger that its program has dropped.
    pub(super) fn linger(&mut self, left: LingeringQueue) {
        let LingeringQueue { link, queue, rest, within, private } = left;
        let (queue, until) = (Some((queue, rest)), self.now + within);
        self.lingering.0.push(Lingerer { link, queue, until, private, dropped: None });
    }

    /// Ends the lingering of queues whose requests are carried out, or whose time is over.
    #[cold]
    pub(super) fn look_at_lingering(&mut self) {
        let Self { lingering, nic, now, .. } = self;
        let done = lingering.0.extract_if(.., |lingerer| lingerer.goes_on(nic, *now));
        for Lingerer { dropped, private, .. } in done.collect::<Vec<_>>() {
            dropped.into_iter().for_each(|dropped| self.drop_queue_pair(dropped, &private));
        }
    }

    /// Ends the lingering of all queues.
    pub(super) fn end_all_lingering(&mut self) {
        for mut lingerer in std::mem::take(&mut self.lingering.0) {
            lingerer.end(&mut self.nic);
            if let Some(dropped) = lingerer.dropped {
                self.drop_queue_pair(dropped, &lingerer.private);
            }
        }
    }
}
