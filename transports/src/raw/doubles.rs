//! Frames that came by two sockets.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// So many bytes of a frame, and its length, tell it from all others: the headers have its number.
const TELLING: usize = 128;

/// What is known of a frame: its length and how it begins.
pub type Head<'a> = (usize, &'a [u8]);

/// Frames that were taken from one socket, and are to be passed over when the other has them.
#[derive(Default)]
pub struct Doubles {
    state: RandomState,
    /// How often each was taken.
    taken: HashMap<u64, u32>,
}

impl Doubles {
    /// How many are remembered: more than two rings hold. Beyond them all are forgotten, and a
    /// frame may be taken twice, which a network may do.
    const MOST: usize = 2048;
    /// The bytes that they take at most, in a table that is half full, and while it grows.
    pub const MEMORY: usize = Self::MOST * 3 * (size_of::<(u64, u32)>() + 1);

    fn key(&self, (len, begin): Head<'_>) -> u64 {
        self.state.hash_one((len, &begin[..begin.len().min(TELLING)]))
    }

    /// Takes note that a frame is taken.
    pub fn note(&mut self, head: Head<'_>) {
        let key = self.key(head);
        if self.taken.len() == Self::MOST {
            self.taken.clear();
        }
        *self.taken.entry(key).or_default() += 1;
    }

    /// Whether a frame was taken already, and is to be passed over for that once.
    pub fn pass(&mut self, head: Head<'_>) -> bool {
        let key = self.key(head);
        let Some(times) = self.taken.get_mut(&key) else { return false };
        *times -= 1;
        if *times == 0 {
            self.taken.remove(&key);
        }
        true
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

    fn head(frame: &[u8]) -> Head<'_> {
        (frame.len(), frame)
    }

    #[test]
    fn what_was_taken_is_passed_over_as_often() {
        let mut doubles = Doubles::default();
        let [one, other] = [frame(1), frame(2)];
        [&one, &other, &one].iter().for_each(|frame| doubles.note(head(frame)));
        let passes = [&one, &one, &one, &other, &other].map(|frame| doubles.pass(head(frame)));
        assert_eq!(passes, [true, true, false, true, false]);
        assert!(doubles.taken.is_empty(), "what is even is forgotten");
    }

    /// Frames of the same headers and different lengths are not the same.
    #[test]
    fn a_length_tells_frames_apart() {
        let mut doubles = Doubles::default();
        doubles.note(head(&[0; 200]));
        assert!(!doubles.pass(head(&[0; 201])) && doubles.pass(head(&[0; 200])));
    }

    #[test]
    fn a_flood_is_forgotten_and_not_kept() {
        let mut doubles = Doubles::default();
        for number in 0..10 * Doubles::MOST as u32 {
            doubles.note(head(&frame(number)));
            assert!(doubles.taken.len() <= Doubles::MOST);
        }
    }
}
