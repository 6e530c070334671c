//! What a message about a stream says.

use crate::status::Code;

/// The kind of a message that goes from a stream's sender to its reader, or back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PieceKind {
    /// A piece, or its last fragment.
    Last,
    /// A fragment of a piece, of which more follow.
    More,
    /// The stream has ended: well, or with an error whose message follows.
    End(Code),
    /// The reader wants no more.
    Stop,
}

impl PieceKind {
    pub fn word(self) -> u64 {
        match self {
            Self::Last => 0,
            Self::More => 1,
            Self::Stop => 2,
            Self::End(code) => 3 | u64::from(code.number()) << 8,
        }
    }

    /// The kind of a word; `None` of a word that is no kind.
    pub fn from_word(word: u64) -> Option<Self> {
        match word {
            0 => Some(Self::Last),
            1 => Some(Self::More),
            2 => Some(Self::Stop),
            end if end & 0xff == 3 && end >> 16 == 0 => {
                Some(Self::End(Code::from_number((end >> 8) as u8)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_the_same_when_their_words_are_read() {
        let kinds =
            [PieceKind::Last, PieceKind::More, PieceKind::Stop, PieceKind::End(Code::DataLoss)];
        for kind in kinds {
            assert_eq!(PieceKind::from_word(kind.word()), Some(kind));
        }
        assert_eq!(PieceKind::from_word(4), None);
    }
}
