//! Keeping queues short: the window grows while packets wait for less than a target in the queues on
//! their path, and shrinks when they wait for longer or when switches mark them.
//!
//! * **Delay** is treated as Swift does (Kumar et al., "Swift: Delay is Simple and Effective for
//!   Congestion Control in the Datacenter", SIGCOMM 2020): the target is the longer the smaller the
//!   window, so that of several connections that share a queue the small ones grow while the large
//!   ones shrink.
//! * **Marks** are treated as DCTCP does (RFC 8257): the window shrinks by half the share of packets
//!   that are marked. Where there are any, the target for the delay is longer: a path of several
//!   busy links has several queues, and delay can't tell them from a long one.
//! * **Loss** of a packet alone, which is repaired, says nothing of congestion. Where much is lost,
//!   the window becomes what has arrived, as in SMaRTT (arXiv 2404.01630); where packets wait and
//!   some are lost, it is halved.
//! * **Drains**: a connection that began when a queue was long takes this for the path. So now and
//!   then it sends little for two round trips. If it has much of the queue, that shows it the path.

use super::{Algorithm, RoundTrip};

/// How long packets may wait in queues, in nanoseconds, where the window is large.
const TARGET: f32 = 50_000.0;
/// How much longer than that packets may wait where the window is small, in nanoseconds.
const RANGE: f32 = 100_000.0;
/// How many times as long they may wait where switches mark packets, and so say what is too much.
const MARKED_TARGET: f32 = 3.0;
/// The window from which on the target is the shortest, and that up to which it is the longest.
const LARGE: f32 = 100.0;
const SMALL: f32 = 0.1;

/// The smallest window, in packets: one packet is sent in 32 round trips.
const LEAST: f32 = 1.0 / 32.0;
/// The largest window after a time-out, or after much was lost.
const AFTER_LOSS: f32 = 0.5;

/// The packets by which a window of one packet or more grows in a round trip in which no packet
/// waits. Where they have not waited for many round trips, it grows faster, up to so many times.
const GROWTH: f32 = 0.3;
const CALM_AFTER: u32 = 16;
const MOST_CALM: u32 = 16;
/// The packets by which such a window grows beside that, and those by which the smallest does. As
/// this is no share of the window, small windows catch up with large ones.
const STEP: f32 = 0.08;
const LEAST_STEP: f32 = 0.03;

/// The most that a window shrinks by in a round trip, and that one of less than a packet does, for
/// which a round trip shows one packet only.
const SHRINKING: f32 = 0.5;
const LEAST_SHRINKING: f32 = 0.1;
/// How much of the delay beyond the target a window shrinks by.
const BY_DELAY: f32 = 0.8;

/// How many round trips the shares of marked and of lost packets are averaged over.
const MARKS_OVER: f32 = 4.0;
const LOSSES_OVER: f32 = 16.0;
/// The share of marks beyond which a window only grows by steps.
const FEW_MARKS: f32 = 0.01;
/// The share of losses up to which these are taken for the network's, and not for congestion.
const FEW_LOSSES: f32 = 0.1;
/// How much a window shrinks by in a round trip with losses if there are more.
const BY_LOSS: f32 = 0.3;
/// The window below which a packet that is lost counts, if others wait: that beyond this share of
/// the target. It found a buffer full.
const FEW: f32 = 4.0;
const WAITING: f32 = 0.6;
/// How long the packet waits at most that took least, in nanoseconds, where one of several paths is
/// clear. Then marks and losses are reasons to take that path, and not to send less.
const CLEAR: f32 = 80_000.0;
/// How many packets show how long packets wait at least.
const MANY: f32 = 8.0;

/// The round trips between two drains, at first and later on.
const FIRST_DRAIN: u32 = 8;
const DRAINS: u32 = 128;
/// The share of the window that is left in a drain, and the smallest window that is drained.
const DRAINED: f32 = 0.25;
const LEAST_DRAINED: f32 = 2.0;

/// The state of the algorithm.
pub(crate) struct ByDelay {
    window: f32,
    /// Whether the window has never been too large: it is doubled until then.
    starting: bool,
    /// Whether a packet was ever marked.
    sees_marks: bool,
    /// For how many round trips packets have hardly waited.
    calm: u32,
    /// How long packets waited in the round trip before, in nanoseconds. What they wait in one
    /// alone may be a host's affair, which had no processor.
    queue: f32,
    /// How long the packet waited that waited least of the last few.
    clearest: f32,
    /// The share of packets that were marked, smoothed.
    marked: f32,
    /// The share of packets that were lost, smoothed.
    lost: f32,
    drains: Drains,
}

/// When the window is drained.
struct Drains {
    /// How many round trips there were since the last drain.
    since: u32,
    /// How many there are between two drains.
    period: u32,
}

impl Drains {
    /// Counts a round trip, and returns whether the next is one of a drain.
    fn next(&mut self, may_begin: bool) -> bool {
        self.since += 1;
        if self.since >= self.period && may_begin {
            (self.since, self.period) = (0, DRAINS.min(2 * self.period));
        }
        self.since < 2 && self.period > FIRST_DRAIN
    }

    /// Whether the round trip that has ended was one of a drain, or the one behind it.
    fn is_draining(&self) -> bool {
        self.since < 2 && self.period > FIRST_DRAIN
    }
}

impl ByDelay {
    /// Begins with a window of so many packets.
    pub fn new(window: u32) -> Self {
        let drains = Drains { since: 0, period: FIRST_DRAIN };
        Self {
            window: window as f32,
            starting: true,
            sees_marks: false,
            calm: 0,
            queue: 0.0,
            clearest: 0.0,
            marked: 0.0,
            lost: 0.0,
            drains,
        }
    }

    /// How long packets may wait in queues.
    fn target(&self) -> f32 {
        let of = |window: f32| window.sqrt().recip();
        let share = (of(self.window) - of(LARGE)) / (of(SMALL) - of(LARGE));
        let times = if self.sees_marks { MARKED_TARGET } else { 1.0 };
        times * (TARGET + RANGE * share.clamp(0.0, 1.0))
    }

    /// The share by which the window is to shrink, given for how long packets waited.
    fn excess(&self, seen: &RoundTrip, queue: f32) -> f32 {
        let target = self.target();
        if seen.lost > 0 && self.window < FEW && queue > WAITING * target {
            return SHRINKING;
        }
        let by_marks = if seen.marked > 0 { self.marked / 2.0 } else { 0.0 };
        let beyond = (queue - target).max(0.0);
        let by_delay = BY_DELAY * beyond / (seen.shortest as f32 + queue).max(1.0);
        let by_loss = if seen.lost > 0 && self.lost > FEW_LOSSES { BY_LOSS } else { 0.0 };
        let most = if self.window < 1.0 { LEAST_SHRINKING } else { SHRINKING };
        by_marks.max(by_delay).max(by_loss).min(most)
    }

    /// Grows, given for how long packets waited.
    fn grow(&mut self, queue: f32) {
        let room = (1.0 - queue / self.target()).max(0.0);
        self.starting &= room > 0.5;
        let step = LEAST_STEP + (STEP - LEAST_STEP) * self.window.min(1.0);
        self.window += match (self.starting, self.marked > FEW_MARKS) {
            (true, _) => self.window,
            (false, true) => step,
            (false, false) => {
                self.calm = if room > 0.8 { self.calm.saturating_add(1) } else { 0 };
                let faster = self.calm.saturating_sub(CALM_AFTER).clamp(1, MOST_CALM);
                room * GROWTH * self.window.min(1.0) * faster as f32 + step
            }
        };
    }

    /// How long the packet waits that waits least of a few. So a small window, of which a round trip
    /// shows a packet or two, is judged as a large one: a host that was busy once is no queue, and of
    /// several paths a clear one counts.
    fn of_clearest(&mut self, queue: f32, seen: &RoundTrip) -> f32 {
        let follows = (seen.arrived as f32 / MANY).min(1.0);
        self.clearest = queue.min(self.clearest + (queue - self.clearest) * follows);
        self.clearest
    }

    /// Shrinks to so many packets.
    fn shrink_to(&mut self, window: f32) {
        (self.window, self.starting) = (window, false);
    }
}

impl Algorithm for ByDelay {
    fn round_trip(&mut self, seen: &RoundTrip, most: f32) -> f32 {
        let queue = seen.delay.map(|delay| delay.saturating_sub(seen.shortest) as f32);
        let queue = queue.map(|queue| self.of_clearest(queue, seen));
        let some_path_is_clear = seen.spread && queue.is_some_and(|queue| queue < CLEAR);
        let seen = match some_path_is_clear {
            true => &RoundTrip { marked: 0, lost: 0, ..*seen },
            false => seen,
        };
        let (arrived, lost) = (seen.arrived.max(1) as f32, seen.lost as f32);
        self.sees_marks |= seen.marked > 0;
        let marked = (seen.marked as f32 / arrived).min(1.0);
        self.marked += (marked - self.marked) / MARKS_OVER;
        self.lost += (lost / (lost + arrived) - self.lost) / LOSSES_OVER;
        let before = if self.window < FEW { f32::MAX } else { self.queue };
        let lasting = queue.unwrap_or(0.0).min(before);
        self.queue = queue.unwrap_or(self.queue);
        let excess = self.excess(seen, lasting);
        if lost >= 2.0 && 3.0 * lost > arrived {
            let share = arrived / (arrived + lost);
            self.shrink_to(self.window.min((arrived * share).max(AFTER_LOSS)));
        } else if excess > 0.0 {
            self.shrink_to(self.window * (1.0 - excess));
        } else if let Some(queue) = queue
            && 2.0 * arrived >= self.window
            && self.lost < FEW_LOSSES
            && !self.drains.is_draining()
        {
            self.grow(queue);
        }
        self.window = self.window.clamp(LEAST, most);
        let may_drain = !self.starting && self.window >= LEAST_DRAINED;
        let share = if self.drains.next(may_drain) { DRAINED } else { 1.0 };
        self.window * share
    }

    fn timed_out(&mut self, spread: bool) -> f32 {
        // A path that is dead is left, and the others may be clear.
        let left = if spread { self.window } else { self.window / 2.0 };
        self.shrink_to(left.clamp(LEAST, AFTER_LOSS));
        self.window
    }

    fn was_early(&mut self, before: f32) -> f32 {
        self.window = self.window.max(before);
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: f32 = 64.0;

    /// A round trip on a path of 80 µs in which so many packets arrived, which waited for so long.
    fn round(arrived: u32, waited_micros: u64) -> RoundTrip {
        let (shortest, delay) = (80_000, Some(80_000 + 1000 * waited_micros));
        RoundTrip { delay, shortest, arrived, marked: 0, lost: 0, spread: false }
    }

    /// An algorithm whose window was too large once, and is about so large now. Packets have waited
    /// long in the round trip before.
    fn settled(window: f32) -> ByDelay {
        let mut settled = ByDelay::new(2);
        (settled.window, settled.starting, settled.queue) = (window, false, 1e9);
        settled
    }

    #[test]
    fn the_window_doubles_until_packets_wait() {
        let mut algorithm = ByDelay::new(2);
        let windows = [1, 4, 8].map(|arrived| algorithm.round_trip(&round(arrived, 0), MOST));
        assert_eq!(windows, [4.0, 8.0, 16.0]);
        let slower = algorithm.round_trip(&round(16, 40), MOST);
        assert!((16.0..18.0).contains(&slower), "{slower}");
    }

    #[test]
    fn the_window_does_not_grow_where_it_is_not_used() {
        let mut algorithm = settled(10.0);
        assert_eq!(algorithm.round_trip(&round(4, 0), MOST), 10.0);
        assert!(algorithm.round_trip(&round(10, 0), MOST) > 10.0);
    }

    #[test]
    fn the_window_shrinks_where_packets_wait_or_are_marked_and_at_most_by_half() {
        for (waited, marked) in [(200, 0), (10, 10), (5000, 10)] {
            let mut algorithm = settled(10.0);
            let seen = RoundTrip { marked, ..round(10, waited) };
            let window = algorithm.round_trip(&seen, MOST);
            assert!((5.0..9.5).contains(&window), "{waited} and {marked}: {window}");
        }
    }

    #[test]
    fn packets_that_wait_long_in_one_round_trip_alone_leave_a_large_window_as_it_is() {
        let mut algorithm = settled(10.0);
        let windows = [0, 5000].map(|waited| algorithm.round_trip(&round(10, waited), MOST));
        assert!(windows[1] >= windows[0] && windows[1] < windows[0] + 0.2, "{windows:?}");
        assert!(algorithm.round_trip(&round(10, 5000), MOST) < 6.0);
    }

    #[test]
    fn packets_lost_alone_do_not_matter_and_many_together_do() {
        let mut algorithm = settled(30.0);
        for _ in 0..50 {
            algorithm.round_trip(&RoundTrip { lost: 2, ..round(30, 10) }, MOST);
        }
        assert!(algorithm.window > 30.0, "{}", algorithm.window);
        let mut algorithm = settled(30.0);
        let left = algorithm.round_trip(&RoundTrip { lost: 20, ..round(10, 10) }, MOST);
        assert!(left <= 10.0, "{left}");
    }

    #[test]
    fn marks_and_losses_of_one_path_do_not_matter_while_another_is_clear() {
        for (waited, grows) in [(5, true), (120, false)] {
            let mut algorithm = settled(10.0);
            let seen = RoundTrip { marked: 8, lost: 4, spread: true, ..round(10, waited) };
            assert_eq!(algorithm.round_trip(&seen, MOST) > 10.0, grows, "{waited}");
        }
    }

    #[test]
    fn of_two_windows_that_see_the_same_queue_the_smaller_grows_and_the_larger_shrinks() {
        let [mut small, mut large] = [0.3, 20.0].map(settled);
        assert!(small.round_trip(&round(1, 90), MOST) > 0.3);
        assert!(large.round_trip(&round(20, 90), MOST) < 20.0);
    }

    #[test]
    fn a_drain_leaves_a_quarter_of_the_window_for_two_round_trips() {
        let mut algorithm = settled(20.0);
        let windows: Vec<_> = (0..200)
            .map(|_| algorithm.round_trip(&round(20, 45), MOST) / algorithm.window)
            .collect();
        let drained: Vec<_> = (0..200).filter(|&at| windows[at] < 1.0).collect();
        assert_eq!(drained, [7, 8, 23, 24, 55, 56, 119, 120]);
    }

    #[test]
    fn whatever_is_seen_the_window_is_between_a_32nd_and_the_most() {
        let extremes = [0, 1, 3, 1000, u32::MAX];
        let mut algorithm = ByDelay::new(16);
        for at in 0..3125 {
            let [arrived, marked, lost] =
                [1, 5, 25].map(|step| extremes[at / step % extremes.len()]);
            let delay = [None, Some(0), Some(80_000), Some(1 << 40), Some(u64::MAX)][at / 125 % 5];
            let shortest = [1, 80_000, u64::MAX, 0, 1 << 40][at / 625];
            let spread = at % 2 == 0;
            let seen = RoundTrip { delay, shortest, arrived, marked, lost, spread };
            let window = algorithm.round_trip(&seen, MOST);
            assert!((LEAST * DRAINED..=MOST).contains(&window), "{seen:?}: {window}");
            if at % 7 == 0 {
                assert!((LEAST..=AFTER_LOSS).contains(&algorithm.timed_out(spread)));
            }
        }
    }
}
