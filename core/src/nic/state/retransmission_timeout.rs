//! The retransmission time-out (RTO): how long to wait for an acknowledgement before sending again.
//!
//! The time is learned from the path, as TCP does (RFC 6298), from packets that asked for an
//! acknowledgement and were sent once (Karn's rule). What is acknowledged after a time-out for
//! which one packet before it was sent again counts, too: so a path that has become slow is
//! learned, though the acknowledgement may be that of the retransmission.

use std::time::Duration;

use crate::nic::keep_alive::clock_jumps::ClockJumps;
use crate::time::{Time, nanos};
use crate::wire::Psn;

/// The shortest time beyond the round trip. With less, a turn of the peer that came late would
/// count as a loss.
const SHORTEST: Duration = Duration::from_micros(1500);

/// How long a peer of this implementation keeps an acknowledgement back as a rule, once packets have
/// ceased to come.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_micros(100);

/// How often the time before a probe is doubled at most.
const MOST_DOUBLINGS: u8 = 3;

/// The longest time-out that may be reached.
const LONGEST: Duration = Duration::from_secs(4);

/// The retransmission time-out of a queue pair. All times are in nanoseconds, which take half as
/// much room as durations, since each queue pair has them.
pub(crate) struct Rto {
    /// The time-out in force.
    timeout: u64,
    /// The time-out once an acknowledgement has ended the back-off.
    settled: u64,
    /// The time-out as long as nothing is known of the path. A path that falls silent counts as
    /// unknown.
    initial: u64,
    /// The shortest time beyond the round trip.
    margin: u64,
    /// The smoothed round trip and its deviation, once there was a sample.
    smoothed: Option<(u64, u64)>,
    /// The shortest round trip that was seen, which is that of the path without queues.
    shortest: u64,
    /// The packet whose acknowledgement will tell a round trip.
    sampled_psn: Psn,
    /// Whether the acknowledgement of `sampled_psn` is waited for.
    is_sampling: bool,
    /// How often the time before a probe was doubled since the last sample.
    doublings: u8,
    /// The peer's last count of packets that came twice.
    repeated: u8,
    /// When the sampled packet was sent.
    sampled_at: Time,
}

impl Rto {
    /// Makes a time-out that begins with `initial`, for a peer that delays acknowledgements by at
    /// most `peer_delay`.
    pub fn new(initial: Duration, peer_delay: Duration) -> Self {
        let within = |time: Duration| nanos(time.clamp(SHORTEST, LONGEST));
        let margin = within(peer_delay.saturating_mul(2));
        let time = within(initial).max(margin);
        Self {
            timeout: time,
            settled: time,
            initial: time,
            margin,
            smoothed: None,
            shortest: u64::MAX,
            sampled_psn: Psn::new(0),
            is_sampling: false,
            doublings: 0,
            repeated: 0,
            sampled_at: Time::ZERO,
        }
    }

    #[inline]
    pub fn timeout(&self) -> Duration {
        Duration::from_nanos(self.timeout)
    }

    /// How long an acknowledgement takes at most, as a rule. As long as nothing is known of the path,
    /// that is taken to be a quarter of the time-out.
    pub fn probe_timeout(&self) -> Duration {
        let margin = nanos(ACKNOWLEDGED_WITHIN);
        let once = Duration::from_nanos(match self.smoothed {
            Some((smoothed, deviation)) => smoothed + 4 * deviation + margin,
            None => self.initial / 4,
        });
        once * (1 << self.doublings)
    }

    /// The shortest round trip that was seen, or what may be one as long as nothing is known of the
    /// path.
    pub fn shortest_round_trip(&self) -> Duration {
        Duration::from_nanos(self.shortest.min(self.initial / 2))
    }

    /// Notes that a packet which asks for an acknowledgement was sent for the first time.
    #[inline]
    pub fn start_sample(&mut self, psn: Psn, now: Time) {
        if !self.is_sampling {
            (self.sampled_psn, self.is_sampling, self.sampled_at) = (psn, true, now);
        }
    }

    /// Notes that a packet came twice, and so was sent again too early. Until a packet that was sent
    /// once shows how long the path takes, probes wait for twice as long: else, where the path has
    /// become slow, every packet would be sent again, and none would show it.
    pub fn was_early(&mut self) {
        self.doublings = MOST_DOUBLINGS.min(self.doublings + 1);
    }

    /// Takes the peer's count of packets that came twice, modulo 256.
    #[inline]
    pub fn take_repeated(&mut self, count: u8) {
        if std::mem::replace(&mut self.repeated, count) != count {
            self.was_early();
        }
    }

    /// Notes that a packet is sent again: its acknowledgement would not tell which of the two was
    /// received.
    pub fn discard_sample_of(&mut self, psn: Psn) {
        self.is_sampling &= self.sampled_psn != psn;
    }

    /// Notes that everything unacknowledged is sent again.
    pub fn discard_sample(&mut self) {
        self.is_sampling = false;
    }

    /// Doubles the time-out, since nothing was heard for that long. It grows up to `most`, unless
    /// that is zero or the path takes longer: a requester that gives up after a while must send
    /// again in the last part of that, too.
    pub fn back_off(&mut self, most: Duration) {
        let longest = nanos(LONGEST);
        let most = if most.is_zero() { longest } else { nanos(most).max(self.settled) };
        self.timeout = (self.timeout * 2).max(self.initial).min(most).min(longest);
    }

    /// Ends the back-off, since something came from the peer, though it acknowledges nothing.
    pub fn end_back_off(&mut self) {
        self.timeout = self.settled;
    }

    /// Learns from an acknowledgement of everything up to `psn`. Where the clock jumped after the
    /// sample was sent, the round trip is only known to lie between two values, and what was
    /// learned before is corrected no further than into that interval.
    #[inline]
    pub fn take_sample(&mut self, psn: Psn, now: Time, jumps: &ClockJumps) {
        self.timeout = self.settled;
        if self.is_sampling && psn.distance_from(self.sampled_psn) >= 0 {
            self.is_sampling = false;
            let [least, most] = [jumps.latest_time(self.sampled_at), self.sampled_at]
                .map(|sent| nanos(now.since(sent)));
            self.learn(self.smoothed.map_or(least, |(smoothed, _)| smoothed.clamp(least, most)));
        }
    }

    /// Learns from a report that `newest` has just arrived, while something is missing. What is
    /// acknowledged later than it arrived, everything before `acked`, would teach a wrong time.
    pub fn take_exact_sample(&mut self, newest: Psn, acked: Psn, now: Time, jumps: &ClockJumps) {
        if !self.is_sampling {
            return;
        }
        if self.sampled_psn == newest {
            self.take_sample(newest, now, jumps);
        } else if acked.distance_from(self.sampled_psn) > 0 {
            self.is_sampling = false;
        }
    }

    /// Learns a round trip.
    fn learn(&mut self, round_trip: u64) {
        (self.shortest, self.doublings) = (self.shortest.min(round_trip), 0);
        let (smoothed, deviation) = match self.smoothed {
            None => (round_trip, round_trip / 2),
            Some((smoothed, deviation)) => {
                let error = smoothed.abs_diff(round_trip);
                ((7 * smoothed + round_trip) / 8, (3 * deviation + error) / 4)
            }
        };
        self.smoothed = Some((smoothed, deviation));
        // On a steady path the deviation vanishes. But packets that did not ask for an
        // acknowledgement are acknowledged later than those that did, by as much as the peer delays
        // it.
        let margin = (4 * deviation).max(self.margin);
        self.settled = (smoothed + margin).min(nanos(LONGEST));
        self.timeout = self.settled;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1000)
    }

    #[test]
    fn a_time_out_is_learned_from_the_path_and_doubles_while_nothing_is_heard() {
        let mut rto = Rto::new(Duration::from_millis(10), Duration::ZERO);
        assert_eq!(rto.timeout(), Duration::from_millis(10));
        rto.start_sample(Psn::new(5), at(0));
        rto.start_sample(Psn::new(6), at(500));
        rto.take_sample(Psn::new(4), at(900), &ClockJumps::default());
        assert_eq!(rto.timeout(), Duration::from_millis(10), "the sample was not answered yet");
        rto.take_sample(Psn::new(6), at(1000), &ClockJumps::default());
        assert_eq!(rto.timeout(), Duration::from_millis(3), "1 ms and four times half of it");
        rto.back_off(Duration::ZERO);
        rto.back_off(Duration::ZERO);
        assert_eq!(rto.timeout(), Duration::from_millis(20), "from what it was at first");
        rto.take_sample(Psn::new(7), at(2000), &ClockJumps::default());
        assert_eq!(rto.timeout(), Duration::from_millis(3));
    }

    #[test]
    fn on_a_steady_path_a_peer_still_has_time_to_delay_its_answer() {
        let mut rto = Rto::new(Duration::from_millis(10), Duration::ZERO);
        for number in 0..100 {
            rto.start_sample(Psn::new(number), at(0));
            rto.take_sample(Psn::new(number), at(150), &ClockJumps::default());
        }
        assert_eq!(rto.timeout(), Duration::from_micros(150) + SHORTEST);
    }

    #[test]
    fn a_sample_that_was_sent_within_a_jump_of_the_clock_teaches_no_more_than_is_known() {
        let mut rto = Rto::new(Duration::from_millis(10), Duration::ZERO);
        let mut jumps = ClockJumps::default();
        for round in 0..100 {
            // It may have been sent at once, or after the pause of a millisecond.
            let [sent, read, answered] = [0, 1000, 1020].map(|micros| at(round * 10_000 + micros));
            rto.start_sample(Psn::new(5), sent);
            jumps.note(sent, read);
            rto.take_sample(Psn::new(5), answered, &jumps);
        }
        assert_eq!(rto.timeout(), Duration::from_micros(20) + SHORTEST);
        for _ in 0..100 {
            rto.start_sample(Psn::new(6), at(0));
            rto.take_sample(Psn::new(6), at(3000), &ClockJumps::default());
        }
        assert!(rto.timeout() >= Duration::from_micros(2900) + SHORTEST);
    }

    #[test]
    fn any_sign_of_life_ends_the_doubling_of_a_time_out() {
        let mut rto = Rto::new(Duration::from_millis(10), Duration::ZERO);
        rto.back_off(Duration::ZERO);
        rto.end_back_off();
        assert_eq!(rto.timeout(), Duration::from_millis(10));
    }

    #[test]
    fn a_packet_that_was_sent_twice_is_no_sample() {
        let mut rto = Rto::new(Duration::from_millis(10), Duration::ZERO);
        rto.start_sample(Psn::new(5), at(0));
        rto.discard_sample();
        rto.take_sample(Psn::new(5), at(50), &ClockJumps::default());
        assert_eq!(rto.timeout(), Duration::from_millis(10));
    }

    #[test]
    fn probes_come_later_until_a_packet_that_was_sent_once_shows_how_long_the_path_takes() {
        let mut rto = Rto::new(Duration::from_millis(10), Duration::ZERO);
        let mut times = Vec::new();
        for _ in 0..5 {
            times.push(rto.probe_timeout().as_micros());
            rto.was_early();
        }
        assert_eq!(times, [2500, 5000, 10_000, 20_000, 20_000]);
        rto.start_sample(Psn::new(5), at(0));
        rto.take_sample(Psn::new(5), at(1000), &ClockJumps::default());
        assert_eq!(rto.probe_timeout(), Duration::from_micros(3100), "1 ms, four times half of it");
    }

    #[test]
    fn a_time_out_grows_no_longer_than_the_limit_of_a_requester_that_gives_up() {
        let mut rto = Rto::new(Duration::from_millis(2), Duration::ZERO);
        for _ in 0..10 {
            rto.back_off(Duration::from_millis(125));
        }
        assert_eq!(rto.timeout(), Duration::from_millis(125));
    }

    #[test]
    fn a_time_out_stays_within_its_bounds() {
        let mut rto = Rto::new(Duration::ZERO, Duration::ZERO);
        assert_eq!(rto.timeout(), SHORTEST);
        for _ in 0..40 {
            rto.back_off(Duration::ZERO);
        }
        assert_eq!(rto.timeout(), LONGEST);
    }
}
