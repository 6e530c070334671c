//! The places of receives: words that tell without a lock which receives have their outcomes, and
//! that carry those outcomes which are short messages.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bytes::Bytes;

use crate::matching::Envelope;
use crate::tagged::wire::{Short, bytes_of_words};

/// Names a posted receive, also when it is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiveId {
    /// The place of the receive, which another may have later.
    pub place: u32,
    /// Tells the receive from others that have had its place.
    pub generation: u32,
}

/// The places of all receives. They stay where they are while there come to be more of them.
///
/// Whoever holds the lock on the endpoint's state writes a place, for the receive that has it. The
/// holder of that receive reads it.
#[derive(Debug, Default)]
pub struct Places {
    /// Pieces, each twice as long as the one before.
    pieces: [OnceLock<Box<[Place]>>; PIECES],
}

/// The place of a receive.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Place {
    /// The generation of the receive that had its outcome here last.
    come: AtomicU32,
    /// The generation of the receive whose outcome was taken out of these words last.
    taken: AtomicU32,
    /// The length of the short message which is the outcome, or [`NOT_HERE`].
    len: AtomicU64,
    source: AtomicU64,
    bits: AtomicU64,
    body: [AtomicU64; Short::WORDS],
}

/// The length of an outcome that is under the lock on the endpoint's state.
const NOT_HERE: u64 = u64::MAX;

/// The number of places of the first piece.
const FIRST: u32 = 64;
/// The number of pieces, which have room for all places that 32 bits count.
const PIECES: usize = 27;

/// The outcome of a receive, as far as its place tells.
#[derive(PartialEq, Eq, Debug)]
pub enum Seen<B> {
    /// The outcome has not come.
    Nothing,
    /// The outcome has come, and is under the lock on the endpoint's state.
    Elsewhere,
    /// The outcome is a short message, of whose body the caller has made this.
    Short(Envelope, B),
}

/// The body of a short message in a place.
#[derive(Debug)]
pub struct Held<'a> {
    len: usize,
    words: &'a [AtomicU64; Short::WORDS],
}

impl Held<'_> {
    /// The most bytes of a short message.
    pub const MOST: usize = Short::MOST;

    /// Returns the number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes, in memory of their own.
    #[inline(always)]
    pub fn to_bytes(&self) -> Bytes {
        bytes_of_words(self.len, self.words.iter().map(|word| word.load(Ordering::Relaxed)))
    }

    /// Copies the bytes to the beginning of a slice. What it has no room for is left out.
    #[inline]
    pub fn copy_to(&self, slice: &mut [u8]) {
        let count = self.len.min(slice.len());
        for (to, word) in slice[..count].chunks_mut(8).zip(self.words) {
            let word = word.load(Ordering::Relaxed).to_le_bytes();
            match <&mut [u8; 8]>::try_from(&mut *to) {
                Ok(to) => *to = word,
                Err(_) => to.iter_mut().zip(word).for_each(|(to, byte)| *to = byte),
            }
        }
    }
}

/// Returns the piece that a place is in, and where in the piece.
#[inline]
fn piece_of(place: u32) -> (usize, usize) {
    let from_first = u64::from(place) + u64::from(FIRST);
    let piece = from_first.ilog2() - FIRST.ilog2();
    (piece as usize, (from_first - (u64::from(FIRST) << piece)) as usize)
}

impl Places {
    /// Makes sure that a place exists.
    pub fn reach(&self, place: u32) {
        let (piece, _) = piece_of(place);
        let len = (FIRST as usize) << piece;
        self.pieces[piece].get_or_init(|| (0..len).map(|_| Place::default()).collect());
    }

    /// Notes that the outcome of a receive has come, which is under the lock.
    #[inline]
    pub fn has_come(&self, id: ReceiveId) {
        if let Some(place) = self.place(id.place) {
            place.len.store(NOT_HERE, Ordering::Relaxed);
            place.come.store(id.generation, Ordering::Release);
        }
    }

    /// Puts the outcome of a receive here, which is a short message.
    #[inline]
    pub fn put(&self, id: ReceiveId, envelope: Envelope, short: &Short) {
        let Some(place) = self.place(id.place) else { return };
        place.source.store(envelope.source, Ordering::Relaxed);
        place.bits.store(envelope.bits, Ordering::Relaxed);
        place.len.store(short.len() as u64, Ordering::Relaxed);
        for (to, from) in place.body.iter().zip(short.words()) {
            to.store(*from, Ordering::Relaxed);
        }
        place.come.store(id.generation, Ordering::Release);
    }

    /// Returns whether the outcome of a receive has come.
    #[inline]
    pub fn has(&self, id: ReceiveId) -> bool {
        self.place(id.place).is_some_and(|of| of.come.load(Ordering::Acquire) == id.generation)
    }

    /// Looks at the place of a receive, whose outcome the caller has not taken yet. Of a short
    /// message that is there, `makes` makes what the caller wants.
    #[inline(always)]
    pub fn look<B>(&self, id: ReceiveId, makes: impl FnOnce(&Held<'_>) -> B) -> Seen<B> {
        let Some(place) = self.place(id.place) else { return Seen::Nothing };
        if place.come.load(Ordering::Acquire) != id.generation {
            return Seen::Nothing;
        }
        let len = place.len.load(Ordering::Relaxed);
        if len == NOT_HERE {
            return Seen::Elsewhere;
        }
        let source = place.source.load(Ordering::Relaxed);
        let bits = place.bits.load(Ordering::Relaxed);
        let held = Held { len: len as usize, words: &place.body };
        Seen::Short(Envelope { source, bits }, makes(&held))
    }

    /// Notes that the short message which is the outcome of a receive was taken out of its place,
    /// which another receive may have from now on.
    #[inline]
    pub fn is_taken(&self, id: ReceiveId) {
        if let Some(place) = self.place(id.place) {
            place.taken.store(id.generation, Ordering::Release);
        }
    }

    /// Returns whether the short message was taken out of the place.
    #[inline]
    pub fn was_taken(&self, id: ReceiveId) -> bool {
        self.place(id.place).is_some_and(|of| of.taken.load(Ordering::Acquire) == id.generation)
    }

    #[inline]
    fn place(&self, place: u32) -> Option<&Place> {
        let (piece, at) = piece_of(place);
        self.pieces[piece].get()?.get(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tagged::wire::short_words;

    #[test]
    fn each_receive_has_a_place_of_its_own() {
        let places = Places::default();
        let all = (0..1000).chain([1 << 20, (1 << 20) + 1]);
        let ids: Vec<_> = all.map(|place| ReceiveId { place, generation: place + 1 }).collect();
        for &id in &ids {
            places.reach(id.place);
            places.has_come(id);
        }
        assert!(ids.iter().all(|&id| places.has(id)));
        let unreached = ReceiveId { place: 1 << 24, generation: 7 };
        assert!(!places.has(unreached), "nobody has reached for that place");
        assert_eq!(piece_of(u32::MAX).0, PIECES - 1);
    }

    #[test]
    fn a_short_message_comes_out_of_its_place_as_it_went_in() {
        let places = Places::default();
        places.reach(3);
        let longest = "long".repeat(12);
        for (generation, body) in (1..).zip(["", "a", "eight by", "nine byte", &longest]) {
            let id = ReceiveId { place: 3, generation };
            let envelope = Envelope { source: 5, bits: u64::MAX };
            let (words, count) = short_words(7, body.as_bytes()).expect("the body is short");
            let mut short = Short::default();
            assert!(short.read(&words[..count]).is_some());
            assert!(!places.has(id));
            places.put(id, envelope, &short);
            let bytes = Bytes::copy_from_slice(body.as_bytes());
            assert_eq!(places.look(id, |held| held.to_bytes()), Seen::Short(envelope, bytes));
            for room in 0..60 {
                let mut slice = vec![b'-'; room];
                let seen = places.look(id, |held| held.copy_to(&mut slice));
                assert_eq!(seen, Seen::Short(envelope, ()));
                let (copied, rest) = slice.split_at(body.len().min(room));
                assert!(body.as_bytes().starts_with(copied), "{copied:?}");
                assert!(rest.iter().all(|&byte| byte == b'-'), "{rest:?}");
            }
            assert!(!places.was_taken(id));
            places.is_taken(id);
            assert!(places.was_taken(id));
        }
        let id = ReceiveId { place: 3, generation: 100 };
        places.has_come(id);
        assert_eq!(places.look(id, |held| held.len()), Seen::Elsewhere);
    }
}
