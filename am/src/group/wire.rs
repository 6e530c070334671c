//! The messages between members of a group, and the encoding of their words.

#![deny(clippy::indexing_slicing, clippy::cast_possible_truncation)]
#![cfg_attr(
    test,
    allow(
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        reason = "a test that slices wrongly fails"
    )
)]

use bytes::Bytes;

use crate::group::collective::Collective;
use crate::group::failure::{Cause, Failure};
use crate::kinds::{Call, Notice};

/// The most members of a group: ranks take 20 bits of a word.
pub(super) const MOST_MEMBERS: usize = 1 << RANK_BITS;

/// The number of bits that a rank takes in a word.
const RANK_BITS: u32 = 20;
/// The bits of a rank at the lower end of a word.
const RANK_MASK: u64 = (1 << RANK_BITS) - 1;

/// The first message on a connection: the sender's rank, the size of the group, and a digest of the
/// members' service numbers. The answer is a [`Verdict`].
pub(super) const HELLO: Call<(u32, u32, u64), u64> = Call::new("doorbell.group.hello");
/// The first piece of a message: context, sequence number, [`Label`], length of the whole, bytes.
pub(super) const PIECE: Notice<(u64, u64, u64, u64, Bytes)> = Notice::new("doorbell.group.piece");
/// A request of the receiver of a longer message for the rest of it: context, sequence number,
/// [`Label`].
pub(super) const CLEAR: Notice<(u64, u64, u64)> = Notice::new("doorbell.group.clear");
/// A further piece of a message: context, sequence number, [`Label`], offset, bytes.
pub(super) const MORE: Notice<(u64, u64, u64, u64, Bytes)> = Notice::new("doorbell.group.more");
/// A notice to a member that another has waited for it for long, and for what: context, sequence
/// number, [`Label`].
pub(super) const WAITS: Notice<(u64, u64, u64)> = Notice::new("doorbell.group.waits");
/// A notice that a collective or a member has failed: context, [`Cause`] and rank, the last
/// collective that is not concerned, two details, text.
pub(super) const BROKEN: Notice<(u64, u64, u64, u64, u64, String)> =
    Notice::new("doorbell.group.broken");
/// A call by which a member says that it leaves: context, rank in the whole group, the last
/// sequence number that the member has used.
pub(super) const LEAVE: Call<(u64, u32, u64)> = Call::new("doorbell.group.leave");

/// The answer of a member to a [`HELLO`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// The two members are of the same group.
    Welcome,
    /// The endpoint's group has another size or other members.
    OtherGroup,
    /// The endpoint's member is about to leave.
    Leaving,
}

impl Verdict {
    pub fn word(self) -> u64 {
        self as u64
    }

    pub fn from_word(word: u64) -> Self {
        match word {
            0 => Self::Welcome,
            2 => Self::Leaving,
            _ => Self::OtherGroup,
        }
    }
}

/// The label of a collective's message: what the message belongs to, beside the context and the
/// sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Label {
    pub collective: Collective,
    /// The round of the collective's schedule.
    pub round: u32,
    /// The sender's rank in the whole group.
    pub from: u32,
}

impl Label {
    #[inline]
    pub fn word(self) -> u64 {
        let Self { collective: Collective { operation, root }, round, from } = self;
        let parts = [root.into(), round.into(), from.into()];
        parts.into_iter().fold(operation.code(), |word, part: u64| word << RANK_BITS | part)
    }

    /// Decodes a label, or returns `None` if the word is no label of a group of `size` members.
    #[inline]
    pub fn from_word(word: u64, size: usize) -> Option<Self> {
        let part = |at: u32| (word >> (at * RANK_BITS) & RANK_MASK) as u32;
        let (root, round, from) = (part(2), part(1), part(0));
        let operation = Collective::operation_of(word >> (3 * RANK_BITS))?;
        let label = Self { collective: Collective { operation, root }, round, from };
        ((from as usize) < size && (root as usize) < size).then_some(label)
    }
}

/// The words and the text of a failure, as [`BROKEN`] sends them.
type BrokenWords = (u64, u64, u64, u64, u64, String);

/// Encodes a failure in a context, for [`BROKEN`].
pub(super) fn words_of_failure(context: u64, failure: &Failure) -> BrokenWords {
    let (code, details, text): (u64, [u64; 2], &str) = match &failure.cause {
        Cause::Gone(why) => (0, [0, 0], why),
        Cause::Left => (1, [0, 0], ""),
        Cause::GaveUp => (2, [0, 0], ""),
        Cause::Mismatch { here, there } => (3, [here.word(), there.word()], ""),
        Cause::Unreached(why) => (4, [0, 0], why),
        Cause::TooLong { len, longest } => (5, [*len, *longest], ""),
        Cause::Malformed => (6, [0, 0], ""),
        Cause::OtherGroup => (7, [0, 0], ""),
        Cause::Unlike(why) => (8, [0, 0], why),
    };
    /// The most bytes of a text: a message may have room for as few as 512 bytes in all.
    const LONGEST: usize = 256;
    let (text, _) = text.split_at(text.floor_char_boundary(LONGEST));
    let word = code << 32 | u64::from(failure.whole);
    (context, word, failure.after, details[0], details[1], text.to_owned())
}

/// Decodes a failure, or returns `None` if the words are no failure in a group of `size` members.
pub(super) fn failure_of_words(
    word: u64,
    after: u64,
    details: [u64; 2],
    text: String,
    size: usize,
) -> Option<Failure> {
    let whole = (word & 0xFFFF_FFFF) as u32;
    let cause = match word >> 32 {
        0 => Cause::Gone(text.into()),
        1 => Cause::Left,
        2 => Cause::GaveUp,
        3 => {
            let [here, there] = details.map(Collective::from_word);
            Cause::Mismatch { here: here?, there: there? }
        }
        4 => Cause::Unreached(text.into()),
        5 => Cause::TooLong { len: details[0], longest: details[1] },
        6 => Cause::Malformed,
        7 => Cause::OtherGroup,
        8 => Cause::Unlike(text.into()),
        _ => return None,
    };
    ((whole as usize) < size).then_some(Failure { whole, after, cause })
}

#[cfg(test)]
mod tests {
    use doorbell_collectives::Operation;

    use super::*;

    #[test]
    fn a_label_is_read_as_it_is_written() {
        for (operation, root, round, from) in [
            (Operation::Barrier, 0, 9, 1023),
            (Operation::ExclusiveScan, 0, 0, 0),
            (Operation::Broadcast, 1022, 1, 7),
        ] {
            let label = Label { collective: Collective { operation, root }, round, from };
            assert_eq!(Label::from_word(label.word(), 1024), Some(label));
        }
    }

    #[test]
    fn a_label_of_a_rank_beyond_the_group_is_none() {
        let collective = Collective { operation: Operation::Gather, root: 3 };
        let word = Label { collective, round: 0, from: 2 }.word();
        assert!(Label::from_word(word, 4).is_some());
        assert_eq!(Label::from_word(word, 3), None, "there is no member 3 to be the root");
        assert_eq!(Label::from_word(word, 2), None, "there is no member 2 to send");
        assert_eq!(Label::from_word(15 << 60, 4), None, "there is no such operation");
    }

    #[test]
    fn a_failure_is_read_as_it_is_written() {
        let here = Collective { operation: Operation::Gather, root: 3 };
        let there = Collective { operation: Operation::Barrier, root: 0 };
        for cause in [
            Cause::Gone("no sign of life".into()),
            Cause::Left,
            Cause::GaveUp,
            Cause::Mismatch { here, there },
            Cause::Unreached("nobody there".into()),
            Cause::TooLong { len: 9, longest: 8 },
            Cause::Malformed,
            Cause::OtherGroup,
            Cause::Unlike("gives elements of another type".into()),
        ] {
            let failure = Failure { whole: 2, after: 77, cause };
            let (_, word, after, first, second, text) = words_of_failure(5, &failure);
            let read = failure_of_words(word, after, [first, second], text.clone(), 3);
            assert_eq!(read, Some(failure));
            assert_eq!(failure_of_words(word, after, [first, second], text, 2), None);
        }
        assert_eq!(failure_of_words(99 << 32, 0, [0; 2], String::new(), 3), None);
    }
}
