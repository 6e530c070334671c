//! Frames that came by two sockets.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// So many bytes of a frame, and its length, tell it from all others: the headers have its number.
const TELLING: usize = 128;

/// Which of two sockets a frame came by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    Old,
    New,
}

/// What is known of a frame: its length and how it begins.
pub type Head<'a> = (usize, &'a [u8]);

/// Tells which of the frames of two sockets came by both.
#[derive(Default)]
pub struct Doubles {
    state: RandomState,
    /// How much more often each frame was taken from the old socket than from the new one. What is
    /// even is forgotten.
    ahead: HashMap<u64, i32>,
}

impl Doubles {
    /// How many frames that came by one socket only are remembered: more than both rings hold. Beyond
    /// them all are forgotten, and a frame may be taken twice, which a network may do.
    const MOST: usize = 2048;
    /// The bytes that they take at most, in a table that is half full.
    pub const MEMORY: usize = Self::MOST * 2 * (size_of::<(u64, i32)>() + 1);

    fn key(&self, (len, begin): Head<'_>) -> u64 {
        self.state.hash_one((len, &begin[..begin.len().min(TELLING)]))
    }

    /// Takes note that a frame is taken, as it came by one socket.
    pub fn note(&mut self, by: By, head: Head<'_>) {
        let key = self.key(head);
        if self.ahead.len() == Self::MOST {
            self.ahead.clear();
        }
        *self.ahead.entry(key).or_default() += by.step();
    }

    /// Whether a frame was taken already, when it came by the other socket, and is to be passed over
    /// for that once.
    pub fn pass(&mut self, by: By, head: Head<'_>) -> bool {
        let key = self.key(head);
        let Some(ahead) = self.ahead.get_mut(&key).filter(|ahead| **ahead * by.step() < 0) else {
            return false;
        };
        *ahead += by.step();
        if *ahead == 0 {
            self.ahead.remove(&key);
        }
        true
    }
}

impl By {
    const fn step(self) -> i32 {
        match self {
            By::Old => 1,
            By::New => -1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(number: u32) -> Vec<u8> {
        let mut frame = vec![0; 300];
        frame[60..64].copy_from_slice(&number.to_be_bytes());
        frame
    }

    fn takes(doubles: &mut Doubles, by: By, frame: &[u8]) -> bool {
        let head = (frame.len(), frame);
        let double = doubles.pass(by, head);
        if !double {
            doubles.note(by, head);
        }
        !double
    }

    /// Of two sockets whose times overlap, each frame is taken once, whichever is looked at first.
    #[test]
    fn what_comes_by_both_is_taken_once() {
        let looks = [(By::Old, 0..6), (By::New, 4..9), (By::Old, 6..7), (By::New, 9..12)];
        let mut doubles = Doubles::default();
        let mut taken = vec![];
        for (by, numbers) in looks {
            taken.extend(numbers.filter(|&number| takes(&mut doubles, by, &frame(number))));
        }
        assert_eq!(taken, (0..12).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_sent_twice_is_taken_twice() {
        let mut doubles = Doubles::default();
        let [one, other] = [frame(1), frame(2)];
        let mut taken = |by, frame| takes(&mut doubles, by, frame);
        assert!(taken(By::Old, &one) && taken(By::Old, &one));
        assert!(!taken(By::New, &one) && taken(By::New, &other) && !taken(By::New, &one));
        assert!(taken(By::New, &one) && !taken(By::Old, &other) && !taken(By::Old, &one));
        assert!(doubles.ahead.is_empty(), "what is even is forgotten");
    }

    /// Frames of the same headers and different lengths are not the same.
    #[test]
    fn a_length_tells_frames_apart() {
        let mut doubles = Doubles::default();
        assert!(takes(&mut doubles, By::Old, &[0; 200]));
        assert!(takes(&mut doubles, By::New, &[0; 201]));
    }

    #[test]
    fn a_flood_is_forgotten_and_not_kept() {
        let mut doubles = Doubles::default();
        for number in 0..10 * Doubles::MOST as u32 {
            assert!(takes(&mut doubles, By::New, &frame(number)));
            assert!(doubles.ahead.len() <= Doubles::MOST);
        }
    }
}
