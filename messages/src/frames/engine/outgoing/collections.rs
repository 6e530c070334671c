//! A message that is sent as a whole, and acknowledged by collections of frames.

use std::collections::VecDeque;
use std::time::Duration;

use crate::frames::engine::bits::Bits;
use crate::frames::engine::timing::{RoundTrips, Time};
use crate::frames::wire::MessageHeader;

/// The frames of a message in collections: what was sent, acknowledged, and is to be sent again.
#[derive(Debug)]
pub struct Collections {
    /// The frames of a collection.
    size: u32,
    /// The frames of the message.
    frames: u32,
    /// The first frame that was never sent.
    next: u32,
    acknowledged: Bits,
    /// Collections that were sent, and wait for their acknowledgements.
    sent: VecDeque<Sent>,
    again: VecDeque<Again>,
    /// Frames on their way without an answer.
    flying: u32,
    /// Whether only the first collection is sent, as a probe, until it is acknowledged. Probing
    /// begins when a collection times out before any was acknowledged: probably no receive is
    /// posted.
    is_probing: bool,
}

/// A collection that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    collection: u32,
    /// When the last of its frames was sent.
    at: Time,
    /// How often it had been sent before.
    tries: u32,
}

/// A collection that is to be sent again, from a frame on.
#[derive(Clone, Copy, Debug)]
struct Again {
    collection: u32,
    frame: u32,
    tries: u32,
}

/// A collection that was on its way and has been acknowledged.
pub struct Acknowledged {
    /// The time that the answer took, unless the collection was sent more than once.
    pub trip: Option<Duration>,
}

impl Collections {
    pub fn new(header: &MessageHeader) -> Self {
        let size = u32::from(header.collection);
        Self {
            size,
            frames: header.frames,
            next: 0,
            acknowledged: Bits::new(header.frames.div_ceil(size)),
            sent: VecDeque::new(),
            again: VecDeque::new(),
            flying: 0,
            is_probing: false,
        }
    }

    /// Returns how many frames are on their way without an answer. A probe does not count: the
    /// receiver most likely drops it, and it must not take the room of messages that have receives.
    pub fn flying(&self) -> u32 {
        if self.is_probing { 0 } else { self.flying }
    }

    /// Whether the first collection alone is sent, because no receive seems to be posted.
    pub fn is_probing(&self) -> bool {
        self.is_probing
    }

    /// Whether everything was acknowledged.
    pub fn is_over(&self) -> bool {
        self.acknowledged.is_full()
    }

    /// Whether frames are to be sent that don't wait for room: those that are sent again, and the
    /// rest of a collection that was begun.
    pub fn is_ready(&self) -> bool {
        !self.again.is_empty() || self.has_begun()
    }

    /// Whether a collection can begin that was never sent.
    pub fn is_fresh(&self, header: &MessageHeader) -> bool {
        !self.is_probing && self.next < header.frames
    }

    fn has_begun(&self) -> bool {
        !self.is_probing && self.next < self.frames && !self.next.is_multiple_of(self.size)
    }

    /// Whether a frame is the last of its collection.
    pub fn is_last(&self, header: &MessageHeader, frame: u32) -> bool {
        (frame + 1).is_multiple_of(self.size) || frame + 1 == header.frames
    }

    fn len(&self, collection: u32) -> u32 {
        let start = collection * self.size;
        (self.frames - start).min(self.size)
    }

    /// Takes the next frame to be sent, and tells whether it was sent before.
    pub fn next_frame(&mut self, header: &MessageHeader, now: Time) -> Option<(u32, bool)> {
        let is_fresh = self.is_fresh(header);
        let (frame, sent, is_repeated) = match self.again.front_mut() {
            Some(again) => {
                let &mut Again { collection, frame, tries } = again;
                again.frame += 1;
                (frame, Sent { collection, at: now, tries }, true)
            }
            None if is_fresh => {
                let frame = self.next;
                self.next += 1;
                (frame, Sent { collection: frame / self.size, at: now, tries: 0 }, false)
            }
            None => return None,
        };
        self.flying += 1;
        if self.is_last(header, frame) {
            self.sent.push_back(sent);
            if is_repeated {
                self.again.pop_front();
            }
        }
        Some((frame, is_repeated))
    }

    /// Takes the acknowledgement of a frame's collection. Returns `None` if the collection is not
    /// on its way.
    pub fn acknowledged(&mut self, frame: u32, now: Time) -> Option<Acknowledged> {
        let collection = frame / self.size;
        let trip = match self.sent.iter().position(|sent| sent.collection == collection) {
            Some(at) => {
                let sent = self.sent.remove(at)?;
                self.flying -= self.len(collection);
                (sent.tries == 0).then(|| now.saturating_sub(sent.at))
            }
            None => {
                let at = self.again.iter().position(|again| again.collection == collection)?;
                let again = self.again.remove(at)?;
                self.flying -= again.frame - collection * self.size;
                None
            }
        };
        self.acknowledged.add(collection);
        self.is_probing = false;
        Some(Acknowledged { trip })
    }

    /// Returns when the next collection times out.
    pub fn next_timeout(&self, trips: &RoundTrips) -> Option<Time> {
        self.sent.iter().map(|sent| sent.at + trips.time_out(sent.tries)).min()
    }

    /// Has collections sent again that were not acknowledged in time. Returns whether there are
    /// any.
    pub fn time_out(&mut self, trips: &RoundTrips, now: Time) -> bool {
        let is_due = |sent: &Sent| sent.at + trips.time_out(sent.tries) <= now;
        let Some(first) = self.sent.iter().copied().find(is_due) else { return false };
        if self.acknowledged.count() == 0 {
            self.probe(first.tries + 1);
            return true;
        }
        let (due, sent): (VecDeque<Sent>, _) = self.sent.drain(..).partition(is_due);
        self.sent = sent;
        for Sent { collection, tries, .. } in due {
            self.flying -= self.len(collection);
            let frame = collection * self.size;
            self.again.push_back(Again { collection, frame, tries: tries + 1 });
        }
        true
    }

    /// Begins anew with the first collection alone.
    fn probe(&mut self, tries: u32) {
        self.is_probing = true;
        self.flying = 0;
        self.sent.clear();
        self.again = VecDeque::from([Again { collection: 0, frame: 0, tries }]);
        self.next = self.size.min(self.frames);
    }
}
