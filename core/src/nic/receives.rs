//! Where a queue pair takes its receives from: a queue of its own, or one that it shares.
//!
//! A shared queue belongs to one completion queue, and so do all queue pairs that draw from it. It
//! is not flushed when one of them breaks: what it holds is for the others.

use crate::planted::{Bug, planted};

use super::common::{Common, Event, in_use};
use super::keys::Domain;
use super::queues::Purpose;
use super::responder::Refusal;
use super::ring::Consumer;
use super::work::ReceiveRequest;

/// Which shared receive queue of a NIC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SharedReceiveQueueId {
    pub(super) place: u32,
    /// Which NIC's, so that another's is none.
    pub(super) nic: u32,
}

pub(super) enum Receives {
    Own(Consumer<ReceiveRequest>),
    Shared(SharedReceiveQueueId),
}

/// The NIC's end of a shared receive queue.
pub(super) struct SharedReceives {
    pub ring: Consumer<ReceiveRequest>,
    pub domain: Domain,
    /// The completion queue of all who draw from it, and how many these are.
    pub completions: u32,
    pub users: usize,
    /// Below how many receives to tell, once.
    pub limit: usize,
    /// Whether there is an event that nobody has taken yet.
    pub told: bool,
}

impl Receives {
    /// How many wait in a queue of one's own; those of others are promised to nobody.
    #[inline]
    pub fn waiting(&self) -> usize {
        match self {
            Self::Own(ring) => ring.waiting(),
            Self::Shared(_) => 0,
        }
    }

    #[inline]
    pub fn are_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    /// Takes one's own next receive.
    #[inline]
    pub fn pop_own(&mut self) -> Option<ReceiveRequest> {
        match self {
            Self::Own(ring) => ring.pop(),
            Self::Shared(_) => None,
        }
    }

    /// Takes the next receive, with a promise of its completion in a queue.
    pub fn take(&mut self, queue: u32, common: &mut Common) -> Result<ReceiveRequest, Refusal> {
        let completions = in_use(&mut common.completions, queue);
        if !completions.reserve(Purpose::Receive) {
            return Err(Refusal::NotReady);
        }
        let taken = match self {
            Self::Own(ring) => ring.pop(),
            Self::Shared(id) => common.take_shared(*id),
        };
        taken.ok_or_else(|| {
            if !planted(Bug::KeepsSlotsOfNothing) {
                in_use(&mut common.completions, queue).release(Purpose::Receive);
            }
            Refusal::NotReady
        })
    }
}

impl Common {
    fn take_shared(&mut self, id: SharedReceiveQueueId) -> Option<ReceiveRequest> {
        let taken = self.shared_receives.get_mut(id.place as usize)?.as_mut()?.ring.pop()?;
        self.tell_low(id);
        Some(taken)
    }

    /// Tells, once, that a shared queue has fewer receives than it is to tell at.
    #[inline]
    pub fn tell_low(&mut self, id: SharedReceiveQueueId) {
        if let Some(Some(queue)) = self.shared_receives.get(id.place as usize)
            && queue.ring.waiting() < queue.limit
        {
            self.tell_of_low(id);
        }
    }

    #[cold]
    fn tell_of_low(&mut self, id: SharedReceiveQueueId) {
        let Some(Some(queue)) = self.shared_receives.get_mut(id.place as usize) else { return };
        queue.limit = if planted(Bug::TellsLowAgain) { queue.limit } else { 0 };
        let mut told = queue.told;
        self.tell(Event::ReceivesLow(id), &mut told);
        if let Some(Some(queue)) = self.shared_receives.get_mut(id.place as usize) {
            queue.told = told;
        }
    }
}
