//! The fingerprint of a run, by which runs are compared.

use crate::Time;

/// An odd number without a pattern, which spreads each bit of a word over the higher bits.
const SPREAD: u64 = 0xF135_7AEA_2E62_A9C5;

/// The kind of an event at a station.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StationEvent {
    Sent = 1,
    Arrived = 2,
    Woke = 3,
}

/// A hash over all events at stations.
///
/// There are four sums, which the processor computes side by side, since each step of a sum waits
/// for the step before. A step is reversible: runs that differ in a single word differ in the hash.
/// The hash is no defence against an attacker.
#[derive(Debug)]
pub(crate) struct Trace {
    sums: [u64; 4],
    /// Whether nothing more is taken in.
    pub(crate) is_off: bool,
}

impl Trace {
    pub(crate) const fn new() -> Self {
        Self { sums: [1, 2, 3, 4], is_off: false }
    }

    pub(crate) fn take(&mut self, at: Time, seen: StationEvent, station: u32, frame: &[u8]) {
        if self.is_off {
            return;
        }
        let what = u64::from(station) << 8 | seen as u64;
        self.step([at.as_nanos(), what, frame.len() as u64, 0]);
        let (words, rest) = frame.as_chunks::<8>();
        let (fours, others) = words.as_chunks::<4>();
        for [a, b, c, d] in fours {
            self.step([word(*a), word(*b), word(*c), word(*d)]);
        }
        let mut last = [0; 4];
        for (to, from) in last.iter_mut().zip(others) {
            *to = word(*from);
        }
        let mut end = [0; 8];
        end[..rest.len()].copy_from_slice(rest);
        last[3] = word(end);
        self.step(last);
    }

    #[inline]
    fn step(&mut self, words: [u64; 4]) {
        let ([e, f, g, h], [a, b, c, d]) = (self.sums, words);
        self.sums = [stir(e, a), stir(f, b), stir(g, c), stir(h, d)];
    }

    pub(crate) fn hash(&self) -> u64 {
        self.sums.iter().fold(0, |hash, sum| {
            let mixed = (hash ^ sum).wrapping_mul(SPREAD);
            mixed ^ mixed >> 32
        })
    }
}

#[inline]
const fn word(bytes: [u8; 8]) -> u64 {
    u64::from_le_bytes(bytes)
}

#[inline]
const fn stir(sum: u64, word: u64) -> u64 {
    (sum.rotate_left(29) ^ word).wrapping_mul(SPREAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(at: u64, seen: StationEvent, station: u32, frame: &[u8]) -> u64 {
        let mut trace = Trace::new();
        trace.take(Time::from_nanos(at), seen, station, frame);
        trace.hash()
    }

    #[test]
    fn every_part_of_an_event_is_in_the_hash() {
        let mut frame = vec![0; 100];
        let mut hashes = vec![
            hash(0, StationEvent::Sent, 0, &frame),
            hash(1, StationEvent::Sent, 0, &frame),
            hash(0, StationEvent::Arrived, 0, &frame),
            hash(0, StationEvent::Sent, 1, &frame),
            hash(0, StationEvent::Sent, 0, &frame[..99]),
        ];
        for at in 0..100 {
            frame[at] = 1;
            hashes.push(hash(0, StationEvent::Sent, 0, &frame));
            frame[at] = 0;
        }
        let count = hashes.len();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), count);
    }
}
