//! Send queues that linger: their program has dropped them, and their requests are still carried
//! out for a while.

use std::collections::VecDeque;
use std::sync::Arc;

use doorbell_core::nic::{self, WorkRequest};
use doorbell_core::time::Time;

use super::operations::{DroppedQueuePair, LingeringQueue};
use crate::link::{ConnectionState, Link};

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

/// A queue pair that nothing keeps any more, with the private data for its peer.
pub(super) type Parted = (DroppedQueuePair, Box<[u8]>);

fn parted(Lingerer { dropped, private, .. }: Lingerer) -> Option<Parted> {
    Some((dropped?, private))
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

    /// Adds a send queue that its program has dropped at the time `now`.
    pub fn add(&mut self, left: LingeringQueue, now: Time) {
        let LingeringQueue { link, queue, rest, within, private } = left;
        let (queue, until) = (Some((queue, rest)), now + within);
        self.0.push(Lingerer { link, queue, until, private, dropped: None });
    }

    /// Has the queues go on, and ends those whose requests are carried out, or whose time is over.
    /// Returns the queue pairs that nothing keeps any more, and their last words.
    pub fn go_on(&mut self, nic: &mut nic::Nic, now: Time) -> Vec<Parted> {
        self.0.extract_if(.., |lingerer| lingerer.goes_on(nic, now)).filter_map(parted).collect()
    }

    /// Ends the lingering of all queues, as [`go_on`](Self::go_on) does of some.
    pub fn end_all(&mut self, nic: &mut nic::Nic) -> Vec<Parted> {
        self.0.iter_mut().for_each(|lingerer| lingerer.end(nic));
        self.0.drain(..).filter_map(parted).collect()
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
