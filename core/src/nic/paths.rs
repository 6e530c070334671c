//! Several paths of one connection: its packets name different UDP source ports, by which routers
//! choose among routes of equal cost.
//!
//! Which routes there are is not known, and need not be. A connection has a few labels, and changes
//! the label every few packets: of two that are drawn, it takes the one whose packets have waited
//! less in queues lately. One whose packets were lost, with nothing arriving by it since, is avoided
//! for a time that grows with each such loss: so a route that is dead costs a few packets. REPS
//! (arXiv 2407.21625) shows that little state is enough; it uses labels again whose packets arrived
//! unmarked.

use std::collections::VecDeque;
use std::time::Duration;

use crate::common::xorshift::xorshift;
use crate::time::Time;
use crate::wire::{PathMtu, Psn, UdpPort};

/// The most paths of a connection.
pub const MOST_PATHS: u8 = 16;

/// The bytes that are sent by a path before another has its turn: the fewer, the shorter are queues.
pub(crate) const BURST: u32 = 4 << 10;
/// The bytes that are sent by a path in a row where a device sends several packets in one go.
pub(crate) const BURST_OF_RUNS: u32 = 64 << 10;

/// The most bursts whose path is remembered.
const REMEMBERED: usize = 64;
/// How long it is taken for known how long packets wait by a path, and what they are taken to wait
/// where that is not known, and at least where they were marked, in nanoseconds.
const KNOWN_FOR: Duration = Duration::from_micros(200);
const UNKNOWN: u64 = 10_000;
const MARKED: u64 = 60_000;

/// How long a path is avoided when a burst by it was lost, the first time and at most.
const AVOIDED: Duration = Duration::from_millis(1);
const LONGEST_AVOIDED: u8 = 10;

/// The paths of a connection.
pub(crate) struct Paths {
    paths: Box<[State]>,
    /// The path by which packets leave.
    current: u8,
    /// How many bytes were sent by it in a row, and how many may be.
    sent: u32,
    burst: u32,
    /// The bursts that were sent last, the oldest first.
    bursts: VecDeque<Burst>,
    /// The packets that were sent again last, and by which paths, the oldest first.
    again: VecDeque<(Psn, u8)>,
    /// How many marked packets the peer had reported.
    marked: u32,
    random: u32,
}

/// How packets have fared by a path, and its label.
#[derive(Clone, Copy)]
struct State {
    label: UdpPort,
    /// How many bursts by it were lost since something has arrived by it.
    lost: u8,
    avoided_until: Time,
    /// How long a packet waited in queues by it, in nanoseconds, and when that was learned.
    waited: u64,
    at: Time,
}

/// Packets that were sent by one path in a row.
struct Burst {
    first: Psn,
    path: u8,
    /// Whether a packet of the burst was lost.
    lost: bool,
}

impl Paths {
    /// Makes up to `count` paths for a connection whose first packet is `first`.
    pub fn new(count: u8, first: Psn, burst: u32) -> Self {
        let mut random = first.get().wrapping_mul(0x9E37_79B1) | 1;
        let state = |_| State {
            // Ports from 49152 on are nobody's, and are what adapters use as labels.
            label: UdpPort(0xC000 | xorshift(&mut random) as u16 & 0x3FFF),
            lost: 0,
            avoided_until: Time::ZERO,
            waited: 0,
            at: Time::ZERO,
        };
        let paths = (0..count.clamp(1, MOST_PATHS)).map(state).collect();
        Self {
            paths,
            current: 0,
            sent: 0,
            burst,
            bursts: VecDeque::new(),
            again: VecDeque::new(),
            marked: 0,
            random,
        }
    }

    /// The label of the path by which packets leave.
    pub fn label(&self) -> UdpPort {
        self.paths[usize::from(self.current)].label
    }

    /// How many packets may be sent by the path until another has its turn.
    #[inline]
    pub fn packets_left(&self, mtu: PathMtu) -> usize {
        (self.burst.saturating_sub(self.sent) as usize).div_ceil(mtu.bytes()).max(1)
    }

    /// Goes on to another path if it is time. Returns its label then.
    #[inline]
    pub fn turn(&mut self, now: Time) -> Option<UdpPort> {
        (self.sent >= self.burst).then(|| self.choose(now))
    }

    /// Goes on to another path, since the present one may be dead. Returns its label.
    pub fn leave(&mut self, now: Time) -> UdpPort {
        let state = &mut self.paths[usize::from(self.current)];
        state.avoided_until = state.avoided_until.max(now + AVOIDED);
        self.choose(now)
    }

    /// Goes on to another path: of two that are drawn, to the one whose packets wait less.
    fn choose(&mut self, now: Time) -> UdpPort {
        let [one, other] = [self.draw(now), self.draw(now)];
        self.current = if self.waits(other, now) < self.waits(one, now) { other } else { one };
        self.sent = 0;
        self.label()
    }

    /// Draws a path that is not avoided; any, if all are.
    fn draw(&mut self, now: Time) -> u8 {
        let count = self.paths.len() as u32;
        let from = xorshift(&mut self.random) % count;
        let mut others = (0..count).map(|at| ((from + at) % count) as u8);
        let open = others.find(|path| self.paths[usize::from(*path)].avoided_until <= now);
        open.unwrap_or(from as u8)
    }

    /// How long a packet waits in queues by a path, as far as is known.
    fn waits(&self, path: u8, now: Time) -> u64 {
        let State { waited, at, .. } = self.paths[usize::from(path)];
        if now.since(at) < KNOWN_FOR { waited } else { UNKNOWN }
    }

    /// Notes that packets are sent for the first time, `first` and others behind it.
    #[inline]
    pub fn sent(&mut self, first: Psn, bytes: usize) {
        if self.bursts.back().is_none_or(|burst| burst.path != self.current) {
            if self.bursts.len() == REMEMBERED {
                self.bursts.pop_front();
            }
            self.bursts.push_back(Burst { first, path: self.current, lost: false });
        }
        self.sent_others(bytes);
    }

    /// Notes that other bytes are sent by the path.
    #[inline]
    pub fn sent_others(&mut self, bytes: usize) {
        self.sent = self.sent.saturating_add(bytes as u32);
    }

    fn burst_of(&mut self, psn: Psn) -> Option<&mut Burst> {
        self.bursts.iter_mut().rev().find(|burst| psn.distance_from(burst.first) >= 0)
    }

    /// Forgets that a packet was sent again, and returns by which path.
    fn take_again(&mut self, psn: Psn) -> Option<u8> {
        let at = self.again.iter().rposition(|(again, _)| *again == psn)?;
        self.again.remove(at).map(|(_, path)| path)
    }

    /// Learns that packet `newest` has arrived, how many marked ones in all, modulo 2³², and how long
    /// it, or one that was sent shortly before, has waited in queues, in nanoseconds.
    pub fn arrived(&mut self, newest: Psn, marked: u32, waited: u64, now: Time) {
        let is_marked = std::mem::replace(&mut self.marked, marked) != marked;
        let sent_again = self.take_again(newest);
        let first = self.burst_of(newest).map(|burst| burst.path);
        let Some(path) = sent_again.or(first) else { return };
        let waited = if is_marked { waited.max(MARKED) } else { waited };
        let state = &mut self.paths[usize::from(path)];
        *state = State { label: state.label, lost: 0, avoided_until: Time::ZERO, waited, at: now };
    }

    /// Learns that packet `psn` was lost, and is sent again now, with so many bytes. Returns the label
    /// of another path if it is to leave by one, since it was lost by the current one.
    pub fn lost(&mut self, psn: Psn, bytes: usize, now: Time) -> Option<UdpPort> {
        let sent_again = self.take_again(psn);
        let (path, counts) = match (sent_again, self.burst_of(psn)) {
            (Some(path), _) => (path, true),
            // Of a burst, the first loss counts.
            (None, Some(burst)) => (burst.path, !std::mem::replace(&mut burst.lost, true)),
            (None, None) => (self.current, false),
        };
        if counts {
            let state = &mut self.paths[usize::from(path)];
            state.avoided_until = now + AVOIDED * 2_u32.pow(u32::from(state.lost));
            state.lost = (state.lost + 1).min(LONGEST_AVOIDED);
        }
        let label = (path == self.current).then(|| self.choose(now));
        if self.again.len() == REMEMBERED {
            self.again.pop_front();
        }
        self.again.push_back((psn, self.current));
        self.sent_others(bytes);
        label
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(1_000_000 * millis)
    }

    /// Sends bursts of one packet, and returns the path of each.
    fn send(paths: &mut Paths, packets: std::ops::Range<u32>, now: Time) -> Vec<u8> {
        packets
            .map(|psn| {
                paths.turn(now);
                paths.sent(Psn::new(psn), BURST as usize);
                paths.current
            })
            .collect()
    }

    #[test]
    fn paths_have_labels_of_their_own_and_all_are_tried() {
        let mut paths = Paths::new(8, Psn::new(77), BURST);
        let mut labels: Vec<_> = paths.paths.iter().map(|path| path.label.0).collect();
        labels.sort_unstable();
        labels.dedup();
        assert!(labels.len() == 8 && labels[0] >= 0xC000, "{labels:?}");
        let mut used = send(&mut paths, 0..100, at(0));
        used.sort_unstable();
        used.dedup();
        assert_eq!(used, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn the_path_changes_after_some_bytes_and_not_with_each_packet() {
        let mut paths = Paths::new(8, Psn::new(77), BURST);
        let turns = (0..64).filter(|_| {
            let turned = paths.turn(at(0)).is_some();
            paths.sent(Psn::new(0), 1024);
            turned
        });
        assert_eq!(turns.count(), 15);
    }

    #[test]
    fn paths_whose_packets_wait_have_fewer_and_after_a_while_as_many_as_the_others() {
        let mut paths = Paths::new(8, Psn::new(77), BURST);
        let sent = send(&mut paths, 0..64, at(0));
        for (psn, path) in (0..64).zip(sent) {
            paths.arrived(Psn::new(psn), 0, if path < 4 { 40_000 } else { 0 }, at(0));
        }
        let slow = |sent: Vec<u8>| sent.into_iter().filter(|path| *path < 4).count();
        assert!((150..350).contains(&slow(send(&mut paths, 100..1100, at(0)))));
        assert!((400..600).contains(&slow(send(&mut paths, 1100..2100, at(1)))));
    }

    #[test]
    fn a_path_that_loses_is_avoided_for_a_while_and_for_longer_each_time() {
        let mut paths = Paths::new(4, Psn::new(77), BURST);
        let [dead] = send(&mut paths, 0..1, at(0))[..] else { panic!("one path") };
        assert!(paths.lost(Psn::new(0), 0, at(0)).is_some() && paths.current != dead);
        assert!(!send(&mut paths, 1..100, at(0)).contains(&dead));
        let again = send(&mut paths, 100..200, at(1));
        let last = 100 + again.iter().rposition(|path| *path == dead).expect("it is tried") as u32;
        paths.lost(Psn::new(last), 0, at(1));
        assert!(!send(&mut paths, 200..300, at(2)).contains(&dead));
        let again = send(&mut paths, 300..400, at(3));
        let last = 300 + again.iter().rposition(|path| *path == dead).expect("it is tried") as u32;
        paths.arrived(Psn::new(last), 0, 0, at(3));
        assert_eq!(paths.paths[usize::from(dead)].lost, 0);
    }

    #[test]
    fn where_all_paths_lose_one_is_used_all_the_same() {
        let mut paths = Paths::new(3, Psn::new(77), BURST);
        for psn in 0..30 {
            send(&mut paths, psn..psn + 1, at(0));
            paths.lost(Psn::new(psn), 0, at(0));
        }
        assert!(paths.paths.iter().all(|path| path.avoided_until > at(0)));
        assert_eq!(send(&mut paths, 30..40, at(0)).len(), 10);
        assert!(paths.bursts.len() <= REMEMBERED);
    }
}
