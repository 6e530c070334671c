//! What all queue pairs of a NIC share, and what each is handed to do its work.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Time;
use crate::wire::Qpn;

use super::completion::{Cause, Completion};
use super::counters::Counters;
use super::keys::Keys;
use super::notices::Notices;
use super::pair::QueuePair;
use super::queues::{Completions, Purpose};
use super::responder::Due;
use super::timers::Timers;

/// Something that a program should hear of without asking each queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A completion came to a queue that was [armed](super::Nic::arm) for it.
    Completion(CompletionQueueId),
    /// A queue pair broke, or was told to stop.
    Broken(Qpn, Cause),
    /// A draining queue pair has nothing under way any more.
    Drained(Qpn),
}

/// Which completion queue of a NIC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CompletionQueueId(pub(super) u32);

/// So many events there may be before those of a queue pair that is taken down go with it.
const MOST_LEFT: usize = 4096;

/// How long a queue pair waits for room in a completion queue before it looks again by itself.
const STARVED_FOR: Duration = Duration::from_millis(5);

pub(super) struct Common {
    /// The time when it was last told.
    pub now: Time,
    pub lossless: bool,
    pub keys: Keys,
    pub completions: Vec<Option<Completions>>,
    pub counters: Counters,
    pub timers: Timers,
    /// Places of queue pairs that may have something to send, each once.
    pub active: VecDeque<u32>,
    /// Of those that wait for room in a completion queue.
    pub starved: Vec<u32>,
    /// Of those that owe their peer an answer, each once; and [`LINKS`](super::notices::LINKS) once
    /// if there are notices.
    pub answers: VecDeque<u32>,
    pub notices: Notices,
    /// Whether some of these found no room in the device.
    pub behind: bool,
    /// Of those with requests under way on a lossless device.
    pub flying: Vec<u32>,
    pub events: VecDeque<Event>,
}

/// A completion queue that a queue pair uses, and that is therefore there.
#[inline]
pub(super) fn in_use(queues: &mut [Option<Completions>], queue: u32) -> &mut Completions {
    queues[queue as usize].as_mut().expect("a queue that is in use is not taken down")
}

impl Common {
    /// Enters a queue pair among those that may have something to send.
    #[inline]
    pub fn activate(&mut self, pair: &mut QueuePair) {
        if !pair.active {
            pair.active = true;
            self.active.push_back(pair.shared.place);
        }
    }

    /// Notes that a queue pair owes its peer an answer. A refusal says all that an acknowledgement
    /// does, and more.
    #[inline]
    pub fn owe(&mut self, pair: &mut QueuePair, answer: Due) {
        match pair.responder.due {
            Due::Nothing => {
                self.answers.push_back(pair.shared.place);
                pair.responder.due = answer;
            }
            Due::Ack => pair.responder.due = answer,
            Due::Nak(_) if answer.is_fatal() => pair.responder.due = answer,
            Due::Nak(_) => {}
        }
    }

    #[inline]
    fn queue(&mut self, queue: u32) -> &mut Completions {
        in_use(&mut self.completions, queue)
    }

    /// Promises a slot of a completion queue.
    #[inline]
    pub fn reserve(&mut self, queue: u32, purpose: Purpose) -> bool {
        self.queue(queue).reserve(purpose)
    }

    /// Gives a promised slot back, to those that wait for one.
    #[inline]
    pub fn release(&mut self, queue: u32, purpose: Purpose) {
        self.queue(queue).release(purpose);
        self.feed();
    }

    /// Enters a queue pair among those that wait for room in a completion queue. Each turn looks
    /// again, and if there is none, the timer sees to one.
    #[cold]
    pub fn starve(&mut self, place: u32) {
        self.starved.push(place);
        self.timers.arm(place, self.now + STARVED_FOR);
    }

    /// Has those that wait for room look again.
    #[inline]
    pub fn feed(&mut self) {
        if !self.starved.is_empty() {
            self.active.extend(self.starved.drain(..));
        }
    }

    /// Fills a promised slot.
    #[inline(always)]
    pub fn complete(&mut self, queue: u32, completion: Completion, purpose: Purpose) {
        self.complete_with(queue, completion, purpose, false);
    }

    /// Fills a promised slot, perhaps with an event.
    #[inline(always)]
    pub fn complete_with(
        &mut self,
        queue: u32,
        completion: Completion,
        purpose: Purpose,
        solicited: bool,
    ) {
        match completion.outcome {
            Ok(_) => self.counters.completed += 1,
            Err(_) => self.counters.failed += 1,
        }
        let found = in_use(&mut self.completions, queue);
        if found.complete(completion, purpose, solicited)
            && !std::mem::replace(&mut found.told, true)
        {
            self.events.push_back(Event::Completion(CompletionQueueId(queue)));
        }
    }

    /// Enters an event, unless it was `told` and not taken yet. So there are at most as many as
    /// completion queues, twice as many as queue pairs, and [`MOST_LEFT`] of those that are gone.
    #[cold]
    pub fn tell(&mut self, event: Event, told: &mut bool) {
        if !std::mem::replace(told, true) {
            self.events.push_back(event);
        }
    }
}

impl Common {
    /// Takes a queue pair off every list.
    pub fn forget(&mut self, place: u32, qpn: Qpn) {
        if self.events.len() >= MOST_LEFT {
            self.events.retain(|event| match event {
                Event::Broken(other, _) | Event::Drained(other) => *other != qpn,
                Event::Completion(_) => true,
            });
        }
        self.timers.disarm(place);
        self.active.retain(|&other| other != place);
        self.answers.retain(|&other| other != place);
        self.starved.retain(|&other| other != place);
        self.flying.retain(|&other| other != place);
    }
}
