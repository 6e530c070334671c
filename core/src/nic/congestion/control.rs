//! The state of a connection whose congestion is controlled: what is gathered of the current round
//! trip, and when the next packet may be sent.

use std::collections::VecDeque;
use std::time::Duration;

use crate::common::xorshift::xorshift;
use crate::nic::congestion::by_delay::ByDelay;
use crate::nic::congestion::by_notifications::ByNotifications;
use crate::nic::congestion::{Algorithm, RoundTrip};
use crate::nic::selective::marks::Marks;
use crate::time::{Time, nanos};
use crate::wire::{PathMtu, Psn};

/// The bytes that are sent at first, when nothing is known of the path.
const AT_FIRST: u32 = 8 << 10;

/// The bytes of a packet's headers, about.
const HEADERS: u32 = 64;

/// The window below which packets are spaced out. Larger ones leave as acknowledgements come, in
/// bursts that a device sends in one go.
const SPACED: f32 = 8.0;
const ALWAYS_SPACED: f32 = 4.0;

/// How long packets wait in queues before they are spaced out, in nanoseconds: a host that had no
/// processor for a moment is no queue.
const QUEUED: u64 = 15_000;

/// The longest time in queues by which packets are spaced out, in nanoseconds.
const LONGEST_QUEUE: u64 = 1_000_000;

/// The longest time between two packets of a connection, in nanoseconds, unless the path takes
/// longer: a window that has become small by mistake recovers, and six hundred connections to one
/// port of 10 Gbit/s still share it.
const LONGEST_GAP: u64 = 2_000_000;

/// How long the shortest delay is remembered, at least: a route that has become longer is not taken for
/// a queue for ever. The window is drained many times meanwhile, which shows the path.
const REMEMBERED: Duration = Duration::from_secs(10);

/// The most packets whose time of sending is kept, and of how many in a window it is.
const TIMES: usize = 32;
const SAMPLES: f32 = 16.0;

/// The control of a connection.
pub(crate) struct Control {
    algorithm: Box<dyn Algorithm>,
    /// The most packets that may ever be under way.
    most: u32,
    /// The bytes of a packet with as much payload as it may have, and headers.
    packet: u32,
    /// How many packets may be under way; less than one means that so many are sent a round trip.
    window: f32,
    /// The time between two packets of full length, in nanoseconds, or 0 if packets are not spaced
    /// out.
    gap: u64,
    /// Before this no packet is sent.
    next_at: Time,
    /// When packets were sent: a few of those that may be under way, the oldest first.
    sent: VecDeque<(Psn, Time)>,
    /// The packet that was sent again last.
    again: Option<SentAgain>,
    /// When a packet was sent last, if that is known.
    last_sent: Option<Time>,
    /// The number behind the newest packet that is known to have arrived.
    newest: Psn,
    /// The shortest delay of the last one or two [periods](REMEMBERED), in nanoseconds: routes change.
    shortest: u64,
    /// The shortest delay of the period that is under way, and when that began.
    recent: u64,
    recent_since: Time,
    /// The delay in the last round trip, in nanoseconds.
    delay: u64,
    /// How long the packet has waited in queues that was measured last, in nanoseconds.
    pub waited: u64,
    /// The packets that begin a request, once parts of reads were requested in several requests, as
    /// a small window has it: what is requested again is never of two requests.
    pub begins: Option<Box<Marks>>,
    round: Round,
    /// When packets timed out, and the window before that.
    timed_out: Option<(Time, f32)>,
    /// How many marked packets the peer has reported, modulo 2³².
    reported: u32,
    /// How many marked packets there were in all when the round trip began, modulo 2³².
    marked: u32,
    /// How many marked responses, or notifications of marked packets, have come, modulo 2³².
    told_marked: u32,
    /// How many losses had been found when the round trip began, modulo 2³².
    lost: u32,
    /// The state of the generator by whose numbers the times between packets vary, so that many
    /// senders don't send at the same moments.
    random: u32,
}

/// A packet that was sent again.
struct SentAgain {
    psn: Psn,
    at: Time,
    /// Whether nothing had been sent for so long that nothing can have been under way any more.
    alone: bool,
}

/// The round trip that is under way.
struct Round {
    /// When the round trip began. It is over, too, when a packet has arrived that was sent again since.
    began: Time,
    /// The first packet that was not sent when it began. When this has arrived, it is over.
    end: Psn,
    /// Up to here everything had arrived when it began, if what has arrived beyond a gap is counted
    /// as if there were no gap.
    arrived: Psn,
    /// The shortest delay that was seen, in nanoseconds.
    delay: Option<u64>,
}

/// The state of a connection when an acknowledgement or a response has come, as the requester knows
/// it.
pub(crate) struct Progress {
    /// The packet that came to the peer last, or whose response has come.
    pub newest: Psn,
    /// How long the peer kept the acknowledgement back. `None` for a response, of which the peer
    /// doesn't say it.
    pub held: Option<Duration>,
    /// How many packets the peer received with marks in all, modulo 2³², if it has said so.
    pub marked: Option<u32>,
    /// How many packets in all were found lost, modulo 2³².
    pub lost: u32,
    /// Whether packets take several paths.
    pub spread: bool,
    /// The number behind those that have arrived, as many as have.
    pub arrived: Psn,
    /// The first packet that was not sent.
    pub unsent: Psn,
}

impl Control {
    /// Makes the control of a connection whose first packet is `first`, which has at `most` so many
    /// packets under way, and whose peer reports what came and when.
    pub fn new(first: Psn, mtu: PathMtu, most: u32) -> Self {
        let window = (AT_FIRST / mtu.bytes() as u32).clamp(2, 16).min(most);
        Self::with(Box::new(ByDelay::new(window)), first, mtu, window, most)
    }

    /// Makes the control of a connection whose peer sends notifications at most.
    pub fn by_notifications(first: Psn, mtu: PathMtu, most: u32) -> Self {
        Self::with(Box::new(ByNotifications::new(most)), first, mtu, most, most)
    }

    fn with(
        algorithm: Box<dyn Algorithm>,
        first: Psn,
        mtu: PathMtu,
        window: u32,
        most: u32,
    ) -> Self {
        Self {
            algorithm,
            most,
            packet: HEADERS + mtu.bytes() as u32,
            window: window as f32,
            gap: 0,
            next_at: Time::ZERO,
            sent: VecDeque::new(),
            again: None,
            last_sent: None,
            newest: first,
            shortest: u64::MAX,
            recent: u64::MAX,
            recent_since: Time::ZERO,
            delay: 0,
            waited: 0,
            begins: None,
            round: Round { began: Time::ZERO, end: first, arrived: first, delay: None },
            timed_out: None,
            reported: 0,
            marked: 0,
            told_marked: 0,
            lost: 0,
            random: first.get() | 1,
        }
    }

    /// How many packets may be under way.
    pub fn window(&self) -> u32 {
        self.window.ceil() as u32
    }

    /// When the next packet may be sent, if not yet.
    #[inline]
    pub fn waits_until(&self, now: Time) -> Option<Time> {
        (self.next_at > now).then_some(self.next_at)
    }

    /// Whether packets are spaced out.
    #[inline]
    pub fn is_spaced(&self) -> bool {
        self.gap > 0
    }

    /// Notes that packets were sent for the first time, `first` and others behind it, with so much
    /// payload in them or in the responses that they ask for.
    #[inline]
    pub fn sent(&mut self, first: Psn, bytes: usize, began: Time) {
        let spread = self.window / SAMPLES;
        let last = self.sent.back();
        let apart = last.is_none_or(|(psn, _)| first.distance_from(*psn) as f32 >= spread);
        self.last_sent = Some(began);
        if self.sent.len() < TIMES && apart {
            self.sent.push_back((first, began));
        }
        self.space_out(bytes as u32 + HEADERS, began);
    }

    /// Notes that packets were sent at a time that doesn't matter.
    #[inline]
    pub fn sent_unmeasured(&mut self) {
        self.last_sent = None;
    }

    /// Whether the time is to be measured that packet `first` takes, with so many under way before
    /// it: that of some packets of a window, and of none where little of it is used. Its size
    /// doesn't matter then.
    #[inline]
    pub fn measures(&self, first: Psn, under_way: u32) -> bool {
        let is_used = 2.0 * (under_way as f32 + 1.0) >= self.window;
        let spread = self.window / SAMPLES;
        let last = self.sent.back();
        let apart = last.is_none_or(|(psn, _)| first.distance_from(*psn) as f32 >= spread);
        self.sent.len() < TIMES && is_used && apart
    }

    /// Notes that packets were sent again, `first` and others behind it. The time of an
    /// acknowledgement would not tell which of the two was received (Karn's rule), unless it is too
    /// short for the second, or the first was sent too long ago.
    pub fn sent_again(&mut self, first: Psn, packets: u32, now: Time) {
        let beyond = first.add(packets);
        while self.sent.front().is_some_and(|(psn, _)| beyond.distance_from(*psn) > 0) {
            self.sent.pop_front();
        }
        let gone_after = self.delay.max(self.shortest);
        let alone = self.last_sent.is_some_and(|last| nanos(now.since(last)) > gone_after);
        self.again = Some(SentAgain { psn: first, at: now, alone });
        self.last_sent = Some(now);
        self.space_out(packets * self.packet, now);
    }

    /// Has the next packet wait, since so many bytes were sent.
    #[inline]
    fn space_out(&mut self, bytes: u32, now: Time) {
        if self.gap > 0 {
            // A varying half of the gap, and half of it: one gap on average.
            let varied =
                self.gap / 2 + self.gap * u64::from(xorshift(&mut self.random) as u16) / 0xFFFF;
            let wait = varied * u64::from(bytes) / u64::from(self.packet);
            self.next_at = self.next_at.max(now).after(wait);
        }
    }

    /// Returns a time that is up to twice as long, by chance.
    pub fn varied(&mut self, time: Duration) -> Duration {
        time + time * u32::from(xorshift(&mut self.random) as u16) / 0x1_0000
    }

    /// Notes that a response was marked, or that the peer tells of marked packets.
    pub fn was_marked(&mut self) {
        self.told_marked = self.told_marked.wrapping_add(1);
    }

    /// Learns what an acknowledgement or a response tells.
    pub fn learn(&mut self, progress: &Progress, now: Time) {
        if let Some(marked) = progress.marked {
            self.reported = self.reported.wrapping_add(since(marked, self.reported));
        }
        self.judge_time_out(progress, now);
        let again = self.measure_again(progress, now);
        if progress.newest.distance_from(self.newest) >= 0 {
            self.newest = progress.newest.add(1);
            self.measure(progress, now);
        }
        // A larger window has others that arrive, and of a short round trip losses would be too much.
        let over = again && self.window < ALWAYS_SPACED
            || self.newest.distance_from(self.round.end) > 0
            || progress.arrived.distance_from(self.round.end) > 0;
        if over {
            self.end_round(progress, now);
        }
    }

    /// Takes a time-out back if the peer says that it had packets before, which it kept: it had no
    /// processor, and the network is as it was.
    fn judge_time_out(&mut self, progress: &Progress, now: Time) {
        if let Some(held) = progress.held
            && let Some((at, window)) = self.timed_out.take()
            && nanos(held) > nanos(now.since(at))
        {
            let window = self.algorithm.was_early(window);
            self.set_window(window);
        }
    }

    /// Measures the delay of the packet that was sent again last, if it is the one that has arrived:
    /// where less time has passed than the path takes, it was the one before. Returns whether it was
    /// sent again since the round trip began.
    fn measure_again(&mut self, progress: &Progress, now: Time) -> bool {
        let arrived = self.again.as_ref().filter(|again| again.psn == progress.newest);
        let (Some(again), Some(held)) = (arrived, progress.held) else { return false };
        // What had arrived before it was sent again was the first.
        let Some(delay) = now.since(again.at).checked_sub(held).map(nanos) else { return false };
        if delay < self.shortest && !again.alone {
            return false;
        }
        let at = again.at;
        self.again = None;
        self.note_delay(delay, now);
        at >= self.round.began
    }

    /// Measures the delay of the packet that has just arrived, for the first time.
    fn measure(&mut self, progress: &Progress, now: Time) {
        let mut sent_at = None;
        while let Some((psn, at)) = self.sent.front()
            && progress.newest.distance_from(*psn) >= 0
        {
            sent_at = Some(*at);
            self.sent.pop_front();
        }
        if let (Some(at), Some(held)) = (sent_at, progress.held)
            && let Some(delay) = now.since(at).checked_sub(held)
        {
            self.note_delay(nanos(delay), now);
        }
    }

    fn note_delay(&mut self, delay: u64, now: Time) {
        // What took no time was measured by clocks of which one was set back.
        if delay == 0 {
            return;
        }
        if now.since(self.recent_since) >= REMEMBERED {
            (self.shortest, self.recent, self.recent_since) = (self.recent, u64::MAX, now);
        }
        self.recent = self.recent.min(delay);
        self.shortest = self.shortest.min(delay);
        self.waited = delay - self.shortest;
        self.round.delay = Some(self.round.delay.map_or(delay, |other| other.min(delay)));
    }

    fn end_round(&mut self, progress: &Progress, now: Time) {
        let marked = self.reported.wrapping_add(self.told_marked);
        let seen = RoundTrip {
            delay: self.round.delay,
            shortest: self.shortest,
            arrived: progress.arrived.distance_from(self.round.arrived).max(0) as u32,
            marked: since(marked, self.marked),
            lost: since(progress.lost, self.lost),
            spread: progress.spread,
        };
        self.delay = seen.delay.unwrap_or(self.delay);
        (self.marked, self.lost) = (marked, progress.lost);
        let (end, arrived) = (progress.unsent, progress.arrived);
        self.round = Round { began: now, end, arrived, delay: None };
        let window = self.algorithm.round_trip(&seen, self.most as f32);
        self.set_window(window);
    }

    /// Shrinks the window, since nothing was heard for the retransmission time-out.
    pub fn timed_out(&mut self, spread: bool, now: Time) {
        self.timed_out.get_or_insert((now, self.window));
        let window = self.algorithm.timed_out(spread);
        self.set_window(window);
    }

    fn set_window(&mut self, window: f32) {
        self.window = window;
        // A peer that had no processor for a while is no reason to send nothing for long.
        let delay = self.delay.min(self.shortest.saturating_add(LONGEST_QUEUE)) as f32;
        let waits = self.delay > self.shortest.saturating_add(QUEUED);
        self.gap = if window < SPACED && (waits || window < ALWAYS_SPACED) {
            ((delay / window) as u64).min(LONGEST_GAP.max(delay as u64))
        } else {
            0
        };
    }
}

/// By how much a counter that wraps has grown, if it has: an older count may come later.
fn since(now: u32, before: u32) -> u32 {
    (now.wrapping_sub(before) as i32).max(0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::from_nanos(1000 * micros)
    }

    /// The progress of a connection whose packets have come up to `newest`.
    fn progress(newest: u32, held_micros: u64, unsent: u32) -> Progress {
        Progress {
            newest: Psn::new(newest),
            held: Some(Duration::from_micros(held_micros)),
            marked: None,
            lost: 0,
            spread: false,
            arrived: Psn::new(newest + 1),
            unsent: Psn::new(unsent),
        }
    }

    fn control() -> Control {
        Control::new(Psn::new(0), PathMtu::Mtu4096, 32)
    }

    #[test]
    fn the_time_for_which_an_acknowledgement_was_kept_back_is_not_the_paths() {
        let mut control = control();
        control.sent(Psn::new(0), 4096, at(0));
        control.learn(&progress(0, 25, 1), at(125));
        assert_eq!((control.shortest, control.delay), (100_000, 100_000));
    }

    #[test]
    fn packets_that_were_sent_again_measure_nothing() {
        let mut control = control();
        control.sent(Psn::new(0), 4096, at(0));
        control.sent_again(Psn::new(0), 1, at(5000));
        control.learn(&progress(0, 0, 1), at(5100));
        assert_eq!(control.shortest, u64::MAX);
    }

    #[test]
    fn what_was_sent_again_is_measured_where_only_the_second_can_have_arrived() {
        let measured = |again, held, arrived| {
            let mut control = control();
            control.sent(Psn::new(0), 4096, at(0));
            control.learn(&progress(0, 0, 2), at(100));
            control.window = 1.0;
            control.sent(Psn::new(1), 4096, at(1000));
            control.sent_again(Psn::new(1), 1, at(again));
            control.learn(&progress(1, held, 2), at(arrived));
            (control.shortest, control.delay)
        };
        // Nothing was under way any more: the path has become shorter.
        assert_eq!(measured(5000, 0, 5060), (60_000, 60_000));
        assert_eq!(measured(5000, 10, 5110), (100_000, 100_000));
        // The first may have arrived.
        assert_eq!(measured(1050, 0, 1110), (100_000, 100_000));
        // The first has arrived: the peer has had it for longer than the second was under way.
        assert_eq!(measured(5000, 4000, 5100), (100_000, 100_000));
    }

    #[test]
    fn a_path_that_has_become_longer_is_not_taken_for_a_queue_for_ever() {
        let mut control = control();
        let mut shortest = |second: u32, took| {
            let now = at(1_000_000 * u64::from(second));
            control.sent(Psn::new(second), 4096, now);
            control.learn(&progress(second, 0, second + 1), now + Duration::from_micros(took));
            control.shortest
        };
        let seen: Vec<_> =
            (0..60).map(|second| shortest(second, 100 * u64::from(1 + second / 20))).collect();
        assert_eq!((seen[19], seen[20], seen[45], seen[59]), (100_000, 100_000, 200_000, 300_000));
    }

    #[test]
    fn packets_are_spaced_out_where_the_window_is_small_and_not_for_long() {
        let mut control = control();
        let mut now = at(0);
        for round in 0..150 {
            now = control.waits_until(now).unwrap_or(now) + Duration::from_millis(15);
            control.sent(Psn::new(round), 4096, now);
            let waits = control.waits_until(now).map(|at| at.since(now));
            assert!(waits.unwrap_or_default() <= Duration::from_millis(3), "{waits:?}");
            // The path takes 100 µs, and packets wait for 10 ms from the second on.
            let took = if round == 0 { 100 } else { 10_100 };
            control.learn(&progress(round, 0, round + 1), now + Duration::from_micros(took));
        }
        assert!(control.is_spaced() && control.window() == 1, "{}", control.window);
    }

    #[test]
    fn a_time_out_is_taken_back_if_the_peer_had_the_packet_before_and_was_busy() {
        let after = |held_micros| {
            let mut control = control();
            control.window = 20.0;
            control.sent(Psn::new(0), 4096, at(0));
            control.timed_out(false, at(5000));
            assert!(control.window < 1.0, "{}", control.window);
            control.learn(&progress(0, held_micros, 8), at(8000));
            control.window
        };
        assert!(after(7900) >= 20.0, "{}", after(7900));
        assert!(after(100) <= 1.0, "{}", after(100));
    }

    #[test]
    fn a_count_of_marks_that_comes_late_changes_nothing() {
        assert_eq!((since(7, 5), since(5, 7), since(1, u32::MAX)), (2, 0, 2));
    }
}
