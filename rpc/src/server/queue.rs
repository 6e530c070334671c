//! Load shedding: which calls an overloaded server refuses, because their handlers would begin too
//! late.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::status::Status;

/// The calls of a server that were taken in and whose handlers have not begun yet.
///
/// The queue predicts how long a new call will wait: the number of calls before it, times the mean
/// time between the beginnings of two handlers. That time is measured while calls wait, so it
/// covers all that the runtime does between two handlers, on however many threads.
pub struct Queue {
    /// The longest that a call may wait before its handler begins.
    longest: Duration,
    origin: Instant,
    waiting: AtomicUsize,
    /// The mean time between the beginnings of two handlers, in nanoseconds.
    pace: AtomicU64,
    /// When the latest handler began, if other calls waited behind it; [`NEVER`] otherwise. Times
    /// are nanoseconds since `origin`.
    begun: AtomicU64,
    /// The number of the poll of Active Messages that is going on.
    look: AtomicU64,
    /// When the first handler was about to begin inline in that poll.
    look_began: AtomicU64,
}

/// The value of a time that is not known.
const NEVER: u64 = u64::MAX;

/// The weight of a new measurement in the mean: one part in this many.
const WEIGHT: u64 = 16;

impl Queue {
    /// Makes a queue in which no call waits, and none may wait for longer than `longest`.
    pub fn new(longest: Duration) -> Self {
        let [pace, look, look_began] = [0; 3].map(AtomicU64::new);
        let (waiting, begun) = (AtomicUsize::new(0), AtomicU64::new(NEVER));
        Self { longest, origin: Instant::now(), waiting, pace, begun, look, look_began }
    }

    /// The number of calls that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Checks whether a call that is taken in now can be expected to begin in time.
    ///
    /// # Errors
    /// When too many calls wait already.
    pub fn expects_in_time(&self) -> Result<(), Status> {
        let ahead = self.waiting() as u64;
        let wait = ahead.saturating_mul(self.pace.load(Ordering::Relaxed));
        if wait <= nanoseconds(self.longest) { Ok(()) } else { Err(self.overloaded()) }
    }

    /// Checks whether a handler may begin inline, in the poll of Active Messages with the number
    /// `look`. Calls that are received in one poll have all waited since that poll began.
    ///
    /// # Errors
    /// When the poll has gone on for too long.
    pub fn may_begin_inline(&self, look: u64, now: Instant) -> Result<(), Status> {
        let now = self.time(now);
        if self.look.swap(look, Ordering::Relaxed) != look {
            self.look_began.store(now, Ordering::Relaxed);
            return Ok(());
        }
        let gone_on = now.saturating_sub(self.look_began.load(Ordering::Relaxed));
        if gone_on <= nanoseconds(self.longest) { Ok(()) } else { Err(self.overloaded()) }
    }

    /// Counts a call in that begins to wait.
    fn enters(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call out that waits no more, because its task runs or was dropped, and measures the
    /// time since the beginning before.
    fn leaves(&self, now: Instant) {
        let now = self.time(now);
        let others_wait = self.waiting.fetch_sub(1, Ordering::Relaxed) > 1;
        let before = self.begun.swap(if others_wait { now } else { NEVER }, Ordering::Relaxed);
        if before != NEVER {
            // A pause of the whole process says nothing about handlers, so no time counts for more
            // than the longest wait.
            let time = now.saturating_sub(before).min(nanoseconds(self.longest));
            let pace = self.pace.load(Ordering::Relaxed);
            let mean = (pace * (WEIGHT - 1) + time) / WEIGHT;
            self.pace.store(mean, Ordering::Relaxed);
        }
    }

    fn time(&self, now: Instant) -> u64 {
        nanoseconds(now.saturating_duration_since(self.origin))
    }

    #[cold]
    fn overloaded(&self) -> Status {
        Status::resource_exhausted(format!(
            "the server is overloaded: the call would have waited for longer than the {:?} of the \
             server's `shed_after`",
            self.longest
        ))
    }
}

/// A duration in nanoseconds, capped at about a century so that a few of them can be added.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(u64::MAX >> 6)
}

/// The wait of one call, from when it was taken in until its task begins or is dropped.
pub struct Waiting {
    /// The queue of the server and the time when the call entered it; `None` if the server has no
    /// queue, or the wait is over.
    queued: Option<(Arc<Queue>, Instant)>,
}

impl Waiting {
    /// Begins the wait of a call in `queue`, if the server has a queue.
    pub fn new(queue: Option<&Arc<Queue>>) -> Self {
        let queued = queue.map(|queue| {
            queue.enters();
            (queue.clone(), Instant::now())
        });
        Self { queued }
    }

    /// Ends the wait, because the task of the call runs now.
    ///
    /// # Errors
    /// When the call has waited for too long, or until its deadline. Its handler must not begin
    /// then.
    pub fn begins(mut self, deadline: Option<Instant>) -> Result<(), Status> {
        let queued = self.queued.take();
        if queued.is_none() && deadline.is_none() {
            return Ok(());
        }
        let now = Instant::now();
        if let Some((queue, since)) = queued {
            queue.leaves(now);
            if now.saturating_duration_since(since) > queue.longest {
                return Err(queue.overloaded());
            }
        }
        match deadline {
            Some(deadline) if deadline <= now => Err(Status::deadline_exceeded(
                "the call's time was over before its handler could begin",
            )),
            _ => Ok(()),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some((queue, _)) = &self.queued {
            queue.leaves(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_micros(200);
    const HANDLER: Duration = Duration::from_micros(20);

    /// Has `handlers` handlers begin one after the other, each after a time. Returns when the last
    /// begins.
    fn begin(queue: &Queue, handlers: usize, mut now: Instant, each: Duration) -> Instant {
        for _ in 0..handlers {
            now += each;
            queue.leaves(now);
        }
        now
    }

    /// Offers `calls` calls to the queue. Returns how many it takes in.
    fn take_in(queue: &Queue, calls: usize) -> usize {
        (0..calls)
            .filter(|_| {
                let in_time = queue.expects_in_time().is_ok();
                if in_time {
                    queue.enters();
                }
                in_time
            })
            .count()
    }

    #[test]
    fn a_queue_takes_as_many_calls_as_begin_in_time_once_it_knows_how_fast_they_begin() {
        let queue = Queue::new(LONGEST);
        let mut now = queue.origin;
        assert_eq!(take_in(&queue, 200), 200, "nothing is known yet");
        now = begin(&queue, 200, now, HANDLER);
        let fit = 1 + (LONGEST.as_nanos() / HANDLER.as_nanos()) as usize;
        for _ in 0..20 {
            let taken = take_in(&queue, 1000);
            assert!(taken.abs_diff(fit) <= 1, "{taken} calls of {fit}");
            now = begin(&queue, taken, now, HANDLER);
        }
        assert_eq!(queue.waiting(), 0);
    }

    #[test]
    fn pauses_of_a_process_leave_room_for_calls_whose_handlers_are_fast_again() {
        let queue = Queue::new(LONGEST);
        let mut now = queue.origin;
        for _ in 0..100 {
            assert!(take_in(&queue, 2) > 0);
            now = begin(&queue, queue.waiting(), now, Duration::from_secs(3600));
        }
        for _ in 0..100 {
            take_in(&queue, 10);
            now = begin(&queue, queue.waiting(), now, HANDLER);
        }
        assert_eq!(take_in(&queue, 10), 10);
    }

    #[test]
    fn handlers_begin_inline_until_their_look_has_gone_on_for_too_long() {
        let queue = Queue::new(LONGEST);
        let began = queue.origin;
        for look in 1..4 {
            let began = began + 10 * LONGEST * look;
            for elapsed in [Duration::ZERO, HANDLER, LONGEST] {
                assert!(queue.may_begin_inline(look.into(), began + elapsed).is_ok());
            }
            assert!(queue.may_begin_inline(look.into(), began + LONGEST + HANDLER).is_err());
        }
    }
}
