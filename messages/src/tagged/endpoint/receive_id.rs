//! The numbers of receives, and words that tell without a lock which have their outcomes.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Names a posted receive, also when it is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiveId {
    /// The place of the receive, which another may have later.
    pub place: u32,
    /// Tells the receive from others that have had its place.
    pub generation: u32,
}

/// A word for each place of a receive: the generation of the receive that had its outcome there
/// last. The words stay where they are while there come to be more of them.
#[derive(Debug, Default)]
pub struct Words {
    /// Pieces, each twice as long as the one before.
    pieces: [OnceLock<Box<[AtomicU32]>>; PIECES],
}

/// The number of words of the first piece.
const FIRST: u32 = 64;
/// The number of pieces, which have room for all places that 32 bits count.
const PIECES: usize = 27;

/// Returns the piece that a place is in, and where in the piece.
#[inline]
fn piece_of(place: u32) -> (usize, usize) {
    let from_first = u64::from(place) + u64::from(FIRST);
    let piece = from_first.ilog2() - FIRST.ilog2();
    (piece as usize, (from_first - (u64::from(FIRST) << piece)) as usize)
}

impl Words {
    /// Makes sure that there is a word for a place.
    pub fn reach(&self, place: u32) {
        let (piece, _) = piece_of(place);
        let len = (FIRST as usize) << piece;
        self.pieces[piece].get_or_init(|| (0..len).map(|_| AtomicU32::new(0)).collect());
    }

    /// Notes that a receive has its outcome.
    #[inline]
    pub fn has_come(&self, id: ReceiveId) {
        if let Some(word) = self.word(id.place) {
            word.store(id.generation, Ordering::Release);
        }
    }

    /// Returns whether a receive has its outcome.
    #[inline]
    pub fn is_here(&self, id: ReceiveId) -> bool {
        self.word(id.place).is_some_and(|word| word.load(Ordering::Acquire) == id.generation)
    }

    #[inline]
    fn word(&self, place: u32) -> Option<&AtomicU32> {
        let (piece, at) = piece_of(place);
        self.pieces[piece].get()?.get(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_has_a_word_of_its_own() {
        let words = Words::default();
        let places = (0..1000).chain([1 << 20, (1 << 20) + 1]);
        let ids: Vec<_> = places.map(|place| ReceiveId { place, generation: place + 1 }).collect();
        for &id in &ids {
            words.reach(id.place);
            words.has_come(id);
        }
        assert!(ids.iter().all(|&id| words.is_here(id)));
        let unreached = ReceiveId { place: 1 << 24, generation: 7 };
        assert!(!words.is_here(unreached), "nobody has reached for that word");
        assert_eq!(piece_of(u32::MAX).0, PIECES - 1);
    }
}
