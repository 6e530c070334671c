//! Questions that endpoints ask each other, beside the messages of programs.

use crate::proof::Proof;
use crate::wire::MOST_WORDS;

/// A question of an endpoint to another. The first word of a request to the handler
/// [`SYSTEM`](crate::wire::SYSTEM).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Are the handlers listed in the payload the same as yours, as far as both sides have them?
    /// The answer's payload is the first difference, if there is one.
    Compare = 1,
    /// Do you admit the tag that this side knows, of which the second and third words are a proof,
    /// or no tag if there are no such words? A yes says where payloads may be placed: an address, a
    /// key and a length. A no has no words, and leaves the tag that was shown before.
    Show = 2,
    /// Do you still use the link, which has no users on this side any more? The answer is 1 for a
    /// yes. After a 0 the link is to be ended: see [`Usage`](crate::credits::Usage).
    Leave = 3,
    /// How many of your credits do you give up? The answer is their number.
    Recall = 4,
    /// Do you share your segment, so that it can be mapped? The answer is 1 for a yes.
    Lend = 5,
    /// Can you list your [named](crate::kinds) handlers? The second word is the number of bytes of
    /// the listing that are known. The answer is the length of the listing, and the bytes that
    /// follow.
    Names = 6,
    /// Have you handled what was sent before this question? The answer comes in its turn, and says
    /// that. The side that asks sends nothing more, and ends the connection when it has the answer.
    Close = 7,
    /// Calls are given up. The words that follow are their numbers, or the [tickets](super::awaits::LATER)
    /// of those that are answered late. The answer says that this was heard.
    GiveUp = 8,
}

/// Encodes a proof as words.
pub fn words_of_proof(Proof(bytes): Proof) -> [u64; 2] {
    let number = u128::from_be_bytes(bytes);
    [number >> 64, number & u128::from(u64::MAX)].map(|half| u64::try_from(half).unwrap_or(0))
}

/// Decodes the words of [`words_of_proof`]. Returns `None` for any other number of words.
pub fn proof_of_words(words: &[u64]) -> Option<Proof> {
    let &[high, low] = words else { return None };
    Some(Proof((u128::from(high) << 64 | u128::from(low)).to_be_bytes()))
}

/// The most calls that one question is about. Their numbers fit the words of any message.
pub const CALLS_ASKED: usize = 4 * MOST_WORDS;

/// Packs the numbers of calls into words, four in each, the first lowest, with zeros behind them.
pub fn packed(calls: &[u16]) -> impl Iterator<Item = u64> {
    let word = |four: &[u16]| four.iter().rev().fold(0, |word, &call| word << 16 | u64::from(call));
    calls.chunks(4).map(word)
}

/// Unpacks the numbers of calls that [`packed`] has put into words.
pub fn unpacked(words: &[u64]) -> impl Iterator<Item = u16> {
    let four = |word: &u64| {
        let [a, b, c, d, e, f, g, h] = word.to_le_bytes();
        [[a, b], [c, d], [e, f], [g, h]]
    };
    words.iter().flat_map(four).map(u16::from_le_bytes).take(CALLS_ASKED)
}

impl Ask {
    pub fn from_word(word: u64) -> Option<Self> {
        use Ask::{Close, Compare, GiveUp, Leave, Lend, Names, Recall, Show};
        let all = [Compare, Show, Leave, Recall, Lend, Names, Close, GiveUp];
        all.into_iter().find(|&ask| ask as u64 == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_read_as_it_was_put_into_words() {
        let proof = Proof([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
        let words = words_of_proof(proof);
        assert_eq!(words, [0x0102_0304_0506_0708, 0x090a_0b0c_0d0e_0f10]);
        assert_eq!(proof_of_words(&words), Some(proof));
        assert_eq!((proof_of_words(&words[..1]), proof_of_words(&[0; 3])), (None, None));
    }

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
