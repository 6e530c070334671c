//! Doing to frames what faults ask for.

use std::collections::VecDeque;
use std::time::Instant;

use doorbell_simulation::{Luck, Odds};

use super::counters::Counters;
use super::faults::Faults;
use super::roce::Roce;

/// One direction's faults, its luck, and what it holds back.
#[derive(Debug)]
pub struct Harm {
    loss: Odds,
    repetition: Odds,
    delay: Odds,
    corruption: Odds,
    overtakers: u64,
    luck: Luck,
    held: Vec<Held>,
}

/// A frame that is held back.
#[derive(Debug)]
struct Held {
    frame: Vec<u8>,
    /// How many are yet to overtake it.
    overtakers: u64,
    /// When it goes on even so.
    until: Instant,
}

impl Harm {
    pub fn new(faults: &Faults, seed: u64, stream: u32) -> Self {
        Self {
            loss: Odds::of("loss", faults.loss),
            repetition: Odds::of("repetition", faults.repetition),
            delay: Odds::of("delay", faults.delay),
            corruption: Odds::of("corruption", faults.corruption),
            overtakers: faults.overtakers.into(),
            luck: Luck::stream(seed, stream),
            held: Vec::new(),
        }
    }

    /// Passes a frame on to `out`, or not, and what it lets go.
    pub fn pass(
        &mut self,
        frame: Vec<u8>,
        now: Instant,
        out: &mut VecDeque<Vec<u8>>,
        counters: &mut Counters,
    ) {
        let Some(roce) = Roce::find(&frame) else { return out.push_back(frame) };
        counters.roce += 1;
        // All is drawn, asked for or not, so that one fault does not change another's luck.
        let lost = self.luck.chance(self.loss);
        let repeated = self.luck.chance(self.repetition);
        let between = self.luck.below(self.overtakers + 1);
        let delayed = self.luck.chance(self.delay);
        let overtakers = 1 + self.luck.below(self.overtakers);
        let corrupted = [(); 2].map(|()| self.luck.chance(self.corruption));
        let mut corruption = Luck::new(self.luck.draw());
        if lost {
            counters.lost += 1;
            return;
        }
        let copy = repeated.then(|| frame.clone());
        let delays = delayed && self.overtakers > 0;
        counters.delayed += u64::from(delays);
        counters.repeated += u64::from(repeated);
        let all = [(Some(frame), if delays { overtakers } else { 0 }), (copy, between)];
        for ((frame, overtakers), corrupted) in all.into_iter().zip(corrupted) {
            let Some(mut frame) = frame else { continue };
            if corrupted {
                roce.corrupt(&mut frame, &mut corruption);
                counters.corrupted += 1;
            }
            if overtakers == 0 {
                out.push_back(frame);
            } else {
                // One more, because this very frame is about to be counted.
                let overtakers = overtakers + 1;
                self.held.push(Held { frame, overtakers, until: now + Faults::LONGEST });
            }
        }
        self.overtake(out);
    }

    /// A frame has come by those that are held back.
    fn overtake(&mut self, out: &mut VecDeque<Vec<u8>>) {
        self.held.iter_mut().for_each(|held| held.overtakers -= 1);
        out.extend(self.held.extract_if(.., |held| held.overtakers == 0).map(|held| held.frame));
    }

    /// Lets go what was held back for too long.
    pub fn release(&mut self, now: Instant, out: &mut VecDeque<Vec<u8>>) {
        out.extend(self.held.extract_if(.., |held| held.until <= now).map(|held| held.frame));
    }

    /// Lets go all that is held back.
    pub fn release_all(&mut self, out: &mut VecDeque<Vec<u8>>) {
        out.extend(self.held.drain(..).map(|held| held.frame));
    }

    /// When the next one has been held back for too long.
    pub fn next(&self) -> Option<Instant> {
        self.held.iter().map(|held| held.until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of RoCE with a number, which is where the packet's number is.
    fn frame(number: u16) -> Vec<u8> {
        let mut frame = vec![0; 14 + 20 + 8 + 12 + 8 + 4];
        frame[12..15].copy_from_slice(&[8, 0, 0x45]);
        frame[23] = 17;
        frame[36..38].copy_from_slice(&4791_u16.to_be_bytes());
        frame[39] = 32;
        frame[52..54].copy_from_slice(&number.to_be_bytes());
        frame
    }

    fn number(frame: &[u8]) -> usize {
        usize::from(u16::from_be_bytes([frame[52], frame[53]]))
    }

    fn run(faults: Faults, seed: u64, count: u16) -> (Vec<Vec<u8>>, Counters) {
        let mut harm = Harm::new(&faults, seed, 0);
        let (mut out, mut counters) = (VecDeque::new(), Counters::default());
        let now = Instant::now();
        for index in 0..count {
            harm.pass(frame(index), now, &mut out, &mut counters);
        }
        harm.release(now, &mut out);
        let early = out.len();
        harm.release(now + Faults::LONGEST, &mut out);
        assert_eq!(harm.next(), None, "{early}");
        (out.into(), counters)
    }

    #[test]
    fn nothing_happens_where_nothing_is_asked_for() {
        let (out, counters) = run(Faults::NONE, 1, 100);
        assert!(out.iter().map(|frame| number(frame)).eq(0..100));
        assert_eq!(counters, Counters { roce: 100, ..Counters::default() });
    }

    #[test]
    fn the_same_seed_does_the_same_harm_and_the_counters_tell_of_it() {
        let faults =
            Faults { loss: 0.1, repetition: 0.1, delay: 0.1, corruption: 0.1, overtakers: 3 };
        let (out, counters) = run(faults, 7, 1_000);
        assert_eq!(run(faults, 7, 1_000), (out.clone(), counters));
        assert_ne!(run(faults, 8, 1_000).0, out);
        assert_eq!(out.len() as u64, 1_000 - counters.lost + counters.repeated);
        for count in [counters.lost, counters.repeated, counters.delayed, counters.corrupted] {
            assert!((60..140).contains(&count), "{counters:?}");
        }
    }

    #[test]
    fn at_most_so_many_frames_overtake_one() {
        let faults = Faults { delay: 0.2, overtakers: 3, ..Faults::NONE };
        let (out, _) = run(faults, 2, 1_000);
        let mut late = [0; 4];
        for (place, frame) in out.iter().enumerate() {
            let later = out[..place].iter().filter(|other| number(other) > number(frame));
            late[later.count()] += 1;
        }
        assert!(late[1..].iter().all(|&count| count > 0), "{late:?}");
    }

    #[test]
    fn what_is_not_roce_is_left_alone() {
        let faults = Faults { loss: 1.0, ..Faults::NONE };
        let mut harm = Harm::new(&faults, 1, 0);
        let (mut out, mut counters) = (VecDeque::new(), Counters::default());
        harm.pass(vec![8; 60], Instant::now(), &mut out, &mut counters);
        assert_eq!((out.len(), counters.lost), (1, 0));
    }
}
