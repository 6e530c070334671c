//! The messages of [`Kind::Unanswered`](crate::wire::Kind::Unanswered), by their handler indices, and
//! how late answers are written.

/// The call ends without a reply.
pub const ENDS: u16 = 0;
/// The side that handles the [calls](super::packed) in the words asks whether they are still
/// awaited.
pub const ASKED: u16 = 1;
/// The caller answers with a bit for each call, from the lowest on. A set bit means that the
/// call was given up.
pub const TOLD: u16 = 2;
/// The request is answered late: its handler waits, and the request gives its credit back now.
/// Of a call, the word is the ticket of the late answer, and the call's number is free from
/// here on. Of a request that is no call, there is no word.
pub const LATER: u16 = 3;
/// The late answer to a request, which costs a credit of the side that answers. The first word
/// is a [`Late`].
pub const LATE: u16 = 4;

/// The lowest ticket of a late answer. Smaller numbers are those of calls, which have twelve bits in
/// a header.
pub const FIRST_TICKET: u64 = 1 << 12;

/// The sorts of late answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    /// The handler has replied: the words behind the first, and the payload, are the reply's.
    Reply,
    /// The request comes back. The second word is the reason.
    Returned,
    /// The handler has ended without a reply.
    Nothing,
}

/// The first word of a late answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Late {
    /// The ticket of the call that is answered; 0 for a request that was no call.
    pub ticket: u64,
    pub sort: Sort,
    /// The reply handler of a reply, or the request handler of a request that comes back.
    pub handler: u16,
}

impl Late {
    /// Encodes the value as a word: the ticket, the sort in four bits, the handler in twelve.
    pub fn word(self) -> u64 {
        self.ticket << 16 | (self.sort as u64) << 12 | u64::from(self.handler & 0xFFF)
    }

    /// Decodes a word, or returns `None` if there is no such sort of answer.
    pub fn from_word(word: u64) -> Option<Self> {
        let all = [Sort::Reply, Sort::Returned, Sort::Nothing];
        let sort = all.into_iter().find(|&sort| sort as u64 == word >> 12 & 0xF)?;
        let [low, high, ..] = (word & 0xFFF).to_le_bytes();
        Some(Self { ticket: word >> 16, sort, handler: u16::from_le_bytes([low, high]) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_answer_is_read_as_it_was_written_and_an_unknown_sort_is_none() {
        for sort in [Sort::Reply, Sort::Returned, Sort::Nothing] {
            for ticket in [0, FIRST_TICKET, (1 << 48) - 1] {
                let late = Late { ticket, sort, handler: 4095 };
                assert_eq!(Late::from_word(late.word()), Some(late));
            }
        }
        assert_eq!(Late::from_word(3 << 12), None);
    }
}
