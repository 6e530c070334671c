//! Questions that endpoints ask each other, beside the messages of programs.

use crate::wire::MOST_WORDS;

/// What the request of an endpoint to another, by [`SYSTEM`], says in its first word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Whether the handlers in the payload are the same as the other's, as far as both have them.
    Compare = 1,
    /// That the tag in the second word is shown from now on; without a second word, none. The
    /// answer says where payloads may be placed: an address, a key, a length. It has no words if
    /// the tag is not admitted: then what was shown before is shown still.
    Show = 2,
    /// That the link has no users on this side any more. The answer is 1 if it has on the other
    /// side; 0 if not, and the link is to be ended: see [`life`](crate::link).
    Leave = 3,
    /// That credits are wanted back which are not used. The answer says how many come back.
    Recall = 4,
    /// That the segment is to be mapped. The answer is 1 if it is granted for that.
    Lend = 5,
    /// What the [named](crate::kinds) handlers are. The second word is how many bytes of the
    /// listing are known. The answer says how many there are in all, and has those that follow.
    Names = 6,
}

/// What a message of [`Kind::Unanswered`] says of a call, in the field of the handler.
pub mod awaits {
    /// Nothing is replied.
    pub const ENDS: u16 = 0;
    /// Are the [calls](packed) in the words still awaited? It is asked by whoever handles
    /// them.
    pub const ASKED: u16 = 1;
    /// The answer: a bit for each of them, from the lowest on, which is set if nobody awaits it.
    pub const TOLD: u16 = 2;
}

/// How many calls one question is about: as many as words allow that go in any message.
pub const CALLS_ASKED: usize = 4 * MOST_WORDS;

/// The numbers of calls as words, four in each, lowest first, and zeros behind them.
pub fn packed(calls: &[u16]) -> impl Iterator<Item = u64> {
    let word = |four: &[u16]| four.iter().rev().fold(0, |word, &call| word << 16 | u64::from(call));
    calls.chunks(4).map(word)
}

/// The numbers of calls that [`packed`] has put into words.
pub fn unpacked(words: &[u64]) -> impl Iterator<Item = u16> {
    let four = |&word: &u64| [0, 16, 32, 48].map(|shift| (word >> shift) as u16);
    words.iter().flat_map(four).take(CALLS_ASKED)
}

impl Ask {
    pub fn from_word(word: u64) -> Option<Self> {
        [Self::Compare, Self::Show, Self::Leave, Self::Recall, Self::Lend, Self::Names]
            .into_iter()
            .find(|&ask| ask as u64 == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_calls_are_read_as_they_were_packed() {
        for count in 1..=CALLS_ASKED {
            let calls: Vec<u16> = (1..=count as u16).map(|call| call * 60).collect();
            let words: Vec<u64> = packed(&calls).collect();
            assert!(words.len() <= MOST_WORDS);
            let read: Vec<u16> = unpacked(&words).filter(|&call| call != 0).collect();
            assert_eq!(read, calls);
        }
    }
}
