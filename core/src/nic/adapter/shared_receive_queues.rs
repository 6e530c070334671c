//! Shared receive queues: how they are made and taken down.

use crate::nic::adapter::completion_queues::check_depth;
use crate::nic::adapter::nic::Nic;
use crate::nic::config::errors::ResourceError;
use crate::nic::config::queue_pair::QueuePairConfig;
use crate::nic::identifiers::{CompletionQueueId, SharedReceiveQueueId};
use crate::nic::protection::segment::Domain;
use crate::nic::queues::receives::SharedReceives;
use crate::nic::queues::shared_receive_queue::SharedReceiveQueue;
use crate::nic::requests::event::Event;
use crate::nic::requests::work_request::ReceiveRequest;
use crate::nic::state::common::Common;

impl Nic {
    /// Makes a receive queue of `depth` entries that queue pairs of one domain draw from, all of
    /// which have their receives completed in one completion queue.
    ///
    /// # Errors
    /// When the depth is zero or too large, or there is no such completion queue.
    pub fn shared_receive_queue(
        &mut self,
        domain: Domain,
        completions: CompletionQueueId,
        depth: usize,
    ) -> Result<(SharedReceiveQueueId, SharedReceiveQueue), ResourceError> {
        check_depth(depth)?;
        self.completions(completions)?.shared += 1;
        let (programs, ring) = SharedReceiveQueue::new(depth);
        let own = SharedReceives {
            ring,
            domain,
            completions: completions.place,
            users: 0,
            low_limit: 0,
            event_pending: false,
        };
        let queues = &mut self.common.shared_receives;
        let place = queues.iter().position(Option::is_none).unwrap_or_else(|| {
            queues.push(None);
            queues.len() - 1
        });
        queues[place] = Some(own);
        let nic = self.common.nic;
        Ok((SharedReceiveQueueId { place: place as u32, nic }, programs))
    }

    /// Takes a shared receive queue down, and drops the receives that are in it.
    ///
    /// # Errors
    /// When there is no such queue, or queue pairs draw from it.
    pub fn drop_shared_receive_queue(
        &mut self,
        queue: SharedReceiveQueueId,
    ) -> Result<(), ResourceError> {
        let found = self.shared_receives(queue)?;
        let (users, completions) = (found.users, found.completions);
        if users > 0 {
            return Err(ResourceError::SharedInUse { queue, users });
        }
        self.common.shared_receives[queue.place as usize] = None;
        self.common.events.retain(|event| *event != Event::ReceivesLow(queue));
        self.completions(self.common.completion_queue(completions))?.shared -= 1;
        Ok(())
    }

    /// Takes back the receive that was posted first to a shared queue, if no message has taken it.
    ///
    /// # Errors
    /// When there is no such queue.
    pub fn take_back_shared(
        &mut self,
        queue: SharedReceiveQueueId,
    ) -> Result<Option<ReceiveRequest>, ResourceError> {
        Ok(self.shared_receives(queue)?.ring.pop())
    }

    /// Asks for [an event](crate::nic::Event::ReceivesLow), once, when a message leaves fewer receives
    /// than `limit` in a shared queue.
    ///
    /// # Errors
    /// When there is no such queue.
    pub fn tell_low(
        &mut self,
        queue: SharedReceiveQueueId,
        limit: usize,
    ) -> Result<(), ResourceError> {
        self.shared_receives(queue)?.low_limit = limit;
        Ok(())
    }

    /// The NIC's end of a shared receive queue.
    pub(crate) fn shared_receives(
        &mut self,
        queue: SharedReceiveQueueId,
    ) -> Result<&mut SharedReceives, ResourceError> {
        let Common { shared_receives, nic, .. } = &mut self.common;
        let found = shared_receives.get_mut(queue.place as usize).filter(|_| queue.nic == *nic);
        found.and_then(Option::as_mut).ok_or(ResourceError::NoSuchSharedQueue(queue))
    }

    /// Checks whether a queue pair may draw from the shared receive queue that its configuration
    /// names.
    pub(super) fn check_shared(&mut self, config: &QueuePairConfig) -> Result<(), ResourceError> {
        let Some(queue) = config.shared_receives else {
            return check_depth(config.receive_depth);
        };
        let shared = self.shared_receives(queue)?;
        let fits = shared.domain == config.domain
            && shared.completions == config.receive_completions.place;
        fits.then_some(()).ok_or(ResourceError::OtherShared(queue))
    }
}
