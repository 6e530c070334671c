//! A message that is sent in windows, which its receiver clears.

use std::collections::VecDeque;
use std::time::Duration;

use doorbell_verbs::RemoteMemory;

use crate::frames::engine::bits::Bits;
use crate::frames::engine::common::windowed;
use crate::frames::engine::timing::{RoundTrips, Time, Timing};
use crate::frames::wire::{Clear, Flags, MessageHeader};

/// The most frames of a message that are cleared and wait to be sent: four windows. A receiver that
/// clears more before it has any is asked by the last frame of these, and clears the others again.
const MOST_QUEUED: usize = 256;

/// The frames of a message in windows.
#[derive(Debug)]
pub struct Windows {
    /// How many frames before the end of a window more are requested.
    early: u32,
    /// Whether frames would be placed by RDMA writes.
    places: bool,
    /// Frames that are cleared and not sent yet.
    queue: VecDeque<u32>,
    /// The number of the first frame that may not be sent yet.
    high: u32,
    /// The frame that carries the request for more.
    more_at: Option<u32>,
    /// The last clear to send that was seen.
    turn: u16,
    memory: Option<RemoteMemory>,
    /// The frames that were placed by RDMA writes, once any was, while the way of those writes lasts.
    placed: Option<Bits>,
    /// When the last frame is sent again, if nothing comes before.
    deadline: Option<Time>,
    tries: u32,
    /// When the request to send, or for more, was sent that is not answered yet.
    asked_at: Option<Time>,
    /// Whether the last frame is to be sent again, to have the receiver answer.
    asks: bool,
    /// Whether the receiver has said that no receive is posted.
    is_held: bool,
    /// Whether the request to send is on its way without an answer.
    is_flying: bool,
}

/// A step in sending a message: a frame as a datagram, or several frames by RDMA writes.
#[derive(Debug)]
pub enum Step {
    Frame(u32, Flags),
    Place { memory: RemoteMemory, first: u32, count: u16, flags: Flags },
}

/// The effect of a clear to send on a message.
#[derive(Debug, Default)]
pub struct Cleared {
    /// How many frames are asked for again.
    pub again: u32,
    /// The time that the answer took, if it can be told.
    pub trip: Option<Duration>,
}

impl Windows {
    /// A message whose first frame may be sent: the request to send.
    pub fn new(early: u32, places: bool) -> Self {
        Self {
            early,
            places,
            queue: VecDeque::from([0]),
            high: 1,
            more_at: None,
            turn: 0,
            memory: None,
            placed: None,
            deadline: None,
            tries: 0,
            asked_at: None,
            asks: false,
            is_held: false,
            is_flying: false,
        }
    }

    /// Stops placing frames by RDMA writes if `places` is false; those that were placed may be lost
    /// then. If `places` is true, nothing changes: a message that began as datagrams goes on as
    /// datagrams.
    pub fn set_places(&mut self, places: bool) {
        self.places &= places;
        if !places {
            self.placed = None;
        }
    }

    /// Whether a frame is on its way by an RDMA write, or has come.
    fn is_placed(&self, frame: u32) -> bool {
        self.placed.as_ref().is_some_and(|placed| placed.has(frame))
    }

    pub fn flying(&self) -> u32 {
        self.is_flying.into()
    }

    pub fn is_ready(&self) -> bool {
        self.asks || !self.queue.is_empty()
    }

    /// Takes the next step, and tells whether it repeats another.
    pub fn step(
        &mut self,
        header: &MessageHeader,
        now: Time,
        trips: &RoundTrips,
    ) -> Option<(Step, bool)> {
        let step = match self.queue.pop_front() {
            Some(frame) => (self.first_of_queue(header, frame, now), false),
            None if self.asks => {
                self.asks = false;
                // A datagram with a frame that is being placed may overtake the write, which finds
                // no memory then if the message is over. So another frame carries the question.
                let frame = if self.is_placed(self.high - 1) { 0 } else { self.high - 1 };
                let more = self.high < header.frames;
                let flags = windowed(more, !more, self.places);
                (Step::Frame(frame, flags), !self.is_held)
            }
            None => return None,
        };
        if self.queue.is_empty() {
            self.deadline = Some(now + trips.time_out(self.tries));
        }
        Some(step)
    }

    fn first_of_queue(&mut self, header: &MessageHeader, first: u32, now: Time) -> Step {
        let is_asked = |frame| self.more_at == Some(frame) || frame == 0;
        let mut last = first;
        let memory = self.memory.filter(|_| self.places);
        if memory.is_some() {
            while !is_asked(last) && self.queue.front() == Some(&(last + 1)) {
                self.queue.pop_front();
                last += 1;
            }
        }
        let (more, end) = (self.more_at == Some(last), last + 1 == header.frames);
        if (more || end || last == 0) && self.tries == 0 {
            self.asked_at = Some(now);
        }
        if last == 0 && self.turn == 0 {
            self.is_flying = true;
        }
        let flags = windowed(more, end, self.places);
        let part = memory.and_then(|memory| {
            let (start, end) = (header.range(first).start as u64, header.range(last).end as u64);
            memory.at(start, end - start).ok()
        });
        match part {
            Some(memory) => {
                let placed = self.placed.get_or_insert_with(|| Bits::new(header.frames));
                (first..=last).for_each(|frame| {
                    placed.add(frame);
                });
                Step::Place { memory, first, count: (last - first + 1) as u16, flags }
            }
            None => {
                (first + 1..=last).rev().for_each(|frame| self.queue.push_front(frame));
                let (more, end) = (self.more_at == Some(first), first + 1 == header.frames);
                Step::Frame(first, windowed(more, end, self.places))
            }
        }
    }

    /// Takes a clear to send. Returns `None` if it makes no sense.
    pub fn cleared(
        &mut self,
        header: &MessageHeader,
        clear: &Clear,
        now: Time,
        timing: &Timing,
    ) -> Option<Cleared> {
        let past = u64::from(clear.base) + u64::from(64 - clear.wanted.leading_zeros());
        if past > u64::from(header.frames) {
            return None;
        }
        if clear.turn == 0 {
            // No receive is posted. The receiver says so again when it is asked again.
            if self.turn == 0 {
                (self.is_held, self.is_flying, self.tries) = (true, false, 0);
                self.asked_at = None;
                self.deadline = Some(now + timing.patience / 4);
            }
            return Some(Cleared::default());
        }
        if self.turn != 0 && clear.turn.wrapping_sub(self.turn).cast_signed() <= 0 {
            return Some(Cleared::default());
        }
        let trip = self.asked_at.take().map(|at| now.saturating_sub(at));
        (self.turn, self.tries, self.deadline) = (clear.turn, 0, None);
        (self.is_held, self.is_flying, self.asks) = (false, false, false);
        self.memory = clear.memory;
        let again = self.clear(header, clear);
        if self.queue.is_empty() {
            self.deadline = Some(now + timing.most);
        }
        Some(Cleared { again, trip })
    }

    /// Puts what was cleared into the queue. Returns how many frames were sent before.
    ///
    /// Frames that were placed are not sent again while the way of those writes lasts, which loses
    /// nothing: the receiver only asks for them because they are late. A second write could come
    /// when the message is over, and its memory gone; that would end the way.
    fn clear(&mut self, header: &MessageHeader, clear: &Clear) -> u32 {
        let (low, mut again) = (self.high, 0);
        for frame in (0..64).filter(|bit| clear.wanted >> bit & 1 == 1).map(|bit| clear.base + bit)
        {
            if self.queue.len() >= MOST_QUEUED {
                break;
            }
            if self.is_placed(frame) || self.queue.contains(&frame) {
                continue;
            }
            again += u32::from(frame < low);
            self.queue.push_back(frame);
            self.high = self.high.max(frame + 1);
        }
        if self.high > low {
            let at = (self.high - 1).saturating_sub(self.early).max(low);
            self.more_at = (self.high < header.frames).then_some(at);
        }
        again
    }

    pub fn next_timeout(&self) -> Option<Time> {
        self.deadline
    }

    /// Has the last frame sent again, if it was not answered in time. Returns whether it was not.
    pub fn time_out(&mut self, now: Time) -> bool {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return false;
        }
        (self.deadline, self.asked_at, self.is_flying) = (None, None, false);
        self.tries += 1;
        self.asks = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::ZERO;

    /// Asks a sender for all frames of a message of ten, but for the first one.
    fn ask(windows: &mut Windows, header: &MessageHeader, turn: u16) -> Cleared {
        let memory = Some(RemoteMemory::from_bytes([3; RemoteMemory::ENCODED]));
        let clear = Clear { turn, base: 1, wanted: 0x1ff, memory };
        windows.cleared(header, &clear, NOW, &Timing::default()).expect("it makes sense")
    }

    /// A receiver on a busy machine asked again for frames that were being placed. They were written
    /// a second time, when the message was over and its memory gone, which ended the way of all
    /// writes to that peer.
    #[test]
    fn frames_that_were_placed_are_sent_again_only_once_the_way_of_the_writes_has_ended() {
        let header = MessageHeader::new(10_000, 7, 1000, 1).expect("few frames");
        let trips = RoundTrips::new(Timing::default());
        let mut windows = Windows::new(0, true);
        let step = |windows: &mut Windows| windows.step(&header, NOW, &trips);
        assert!(matches!(step(&mut windows), Some((Step::Frame(0, _), false))));
        ask(&mut windows, &header, 1);
        let placed = step(&mut windows);
        assert!(matches!(placed, Some((Step::Place { first: 1, count: 9, .. }, false))));
        assert_eq!(ask(&mut windows, &header, 2).again, 0);
        assert!(step(&mut windows).is_none());
        // The sender asks whether the message is over, and by no frame that may overtake a write.
        let later = windows.next_timeout().expect("the acknowledgement may be lost");
        assert!(windows.time_out(later));
        assert!(matches!(step(&mut windows), Some((Step::Frame(0, flags), true)) if flags.end));
        windows.set_places(false);
        assert_eq!(ask(&mut windows, &header, 3).again, 9);
        assert!(matches!(step(&mut windows), Some((Step::Frame(1, _), false))));
    }
}
