//! Frames that come by two sockets, and are passed over at the second one.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// How many bytes of a frame, with its length, tell it from all others: the headers have its
/// number.
const TELLING: usize = 128;

/// The length and the first bytes of a frame, which tell it from others.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    /// The length of the whole frame.
    pub len: usize,
    /// The first bytes of the frame.
    pub begin: &'a [u8],
}

/// Frames that were taken from one socket, and are to be passed over when the other has them.
#[derive(Default)]
pub struct Duplicates {
    state: RandomState,
    /// How often each frame was taken, by the hash of what tells it from others.
    taken: HashMap<u64, u32>,
}

impl Duplicates {
    /// The most frames that are remembered, more than two rings hold. With one more, all are
    /// forgotten, and a frame may be taken twice, as on any network.
    const MOST: usize = 2048;
    /// The most bytes of memory that the frames take, in a table that is half full, and while it
    /// grows.
    pub const MEMORY: usize = Self::MOST * 3 * (size_of::<(u64, u32)>() + 1);

    fn key(&self, Head { len, begin }: Head<'_>) -> u64 {
        self.state.hash_one((len, &begin[..begin.len().min(TELLING)]))
    }

    /// Records that a frame is taken from the first socket.
    pub fn note(&mut self, head: Head<'_>) {
        let key = self.key(head);
        if self.taken.len() == Self::MOST {
            self.taken.clear();
        }
        *self.taken.entry(key).or_default() += 1;
    }

    /// Returns whether a frame of the second socket was taken already. For each time that it was
    /// taken, it is passed over once.
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
        Head { len: frame.len(), begin: frame }
    }

    #[test]
    fn what_was_taken_is_passed_over_as_often() {
        let mut duplicates = Duplicates::default();
        let [one, other] = [frame(1), frame(2)];
        [&one, &other, &one].iter().for_each(|frame| duplicates.note(head(frame)));
        let passes = [&one, &one, &one, &other, &other].map(|frame| duplicates.pass(head(frame)));
        assert_eq!(passes, [true, true, false, true, false]);
        assert!(duplicates.taken.is_empty(), "what is even is forgotten");
    }

    /// Two frames with the same headers and different lengths are different frames.
    #[test]
    fn a_length_tells_frames_apart() {
        let mut duplicates = Duplicates::default();
        duplicates.note(head(&[0; 200]));
        assert!(!duplicates.pass(head(&[0; 201])) && duplicates.pass(head(&[0; 200])));
    }

    #[test]
    fn a_flood_is_forgotten_and_not_kept() {
        let mut duplicates = Duplicates::default();
        for number in 0..10 * Duplicates::MOST as u32 {
            duplicates.note(head(&frame(number)));
            assert!(duplicates.taken.len() <= Duplicates::MOST);
        }
    }
}
