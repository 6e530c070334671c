//! Completion queues: how they are made, armed and taken down.

use crate::nic::adapter::nic::Nic;
use crate::nic::config::errors::{DEEPEST, ResourceError};
use crate::nic::identifiers::CompletionQueueId;
use crate::nic::queues::completion_queue::CompletionQueue;
use crate::nic::queues::completion_slots::{CompletionSlots, Notify};
use crate::nic::requests::event::Event;
use crate::nic::state::common::Common;

/// Checks whether a queue may have so many entries.
pub(crate) fn check_depth(entries: usize) -> Result<(), ResourceError> {
    match (1..=DEEPEST).contains(&entries) {
        true => Ok(()),
        false => Err(ResourceError::Depth(entries)),
    }
}

impl Nic {
    /// Makes a completion queue of `capacity` entries.
    ///
    /// # Errors
    /// When the capacity is zero or too large.
    pub fn completion_queue(
        &mut self,
        capacity: usize,
    ) -> Result<(CompletionQueueId, CompletionQueue), ResourceError> {
        self.completion_queue_of(capacity, false)
    }

    /// Makes a completion queue that has `capacity` entries at first, and grows with the number of
    /// receive queues that end there.
    ///
    /// # Errors
    /// When the capacity is zero or too large.
    pub fn growing_completion_queue(
        &mut self,
        capacity: usize,
    ) -> Result<(CompletionQueueId, CompletionQueue), ResourceError> {
        self.completion_queue_of(capacity, true)
    }

    fn completion_queue_of(
        &mut self,
        capacity: usize,
        grows: bool,
    ) -> Result<(CompletionQueueId, CompletionQueue), ResourceError> {
        check_depth(capacity)?;
        let (own, programs) = CompletionSlots::new(capacity, grows);
        let queues = &mut self.common.completions;
        let place = queues.iter().position(Option::is_none).unwrap_or_else(|| {
            queues.push(None);
            queues.len() - 1
        });
        queues[place] = Some(own);
        Ok((self.common.completion_queue(place as u32), programs))
    }

    /// Takes a completion queue down. Its program may still poll what is in it.
    ///
    /// # Errors
    /// When there is no such queue, or it is in use.
    pub fn drop_completion_queue(&mut self, queue: CompletionQueueId) -> Result<(), ResourceError> {
        let found = self.completions(queue)?;
        match found.senders + found.receivers + found.shared {
            0 => self.common.completions[queue.place as usize] = None,
            users => return Err(ResourceError::InUse { queue, users }),
        }
        // The next queue gets the same number, and would be taken for the subject of the event.
        self.common.events.retain(|event| *event != Event::Completion(queue));
        Ok(())
    }

    /// The NIC's end of a completion queue.
    pub(crate) fn completions(
        &mut self,
        queue: CompletionQueueId,
    ) -> Result<&mut CompletionSlots, ResourceError> {
        let Common { completions, nic, .. } = &mut self.common;
        let found = completions.get_mut(queue.place as usize).filter(|_| queue.nic == *nic);
        found.and_then(Option::as_mut).ok_or(ResourceError::NoSuchCompletionQueue(queue))
    }

    /// Checks whether a completion queue has slots enough for so many more queues to end there.
    pub(super) fn check_room(
        &mut self,
        queue: CompletionQueueId,
        senders: usize,
        receivers: usize,
    ) -> Result<(), ResourceError> {
        let completions = self.completions(queue)?;
        completions.grow_for(senders, receivers);
        match completions.has_and_needs(senders, receivers) {
            (has, needs) if has < needs => Err(ResourceError::QueueTooSmall { queue, has, needs }),
            _ => Ok(()),
        }
    }

    /// Asks for an event when the next completion comes to a queue, or only when the next one comes
    /// that is a failure or solicited by the peer. Returns whether there are completions already,
    /// for which there will be no event: look at the queue once more afterwards, before sleeping.
    ///
    /// # Errors
    /// When there is no such queue.
    pub fn arm(&mut self, queue: CompletionQueueId, notify: Notify) -> Result<bool, ResourceError> {
        let queue = self.completions(queue)?;
        // A caller that asked for any completion must not miss one because another asked for fewer.
        if queue.armed != Some(Notify::Any) {
            queue.armed = Some(notify);
        }
        Ok(queue.has_some())
    }
}
