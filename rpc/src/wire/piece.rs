//! The kinds of messages about a stream.

use bytes::Bytes;

use crate::status::Code;

/// The kind of a message that goes from a stream's sender to its reader, or back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PieceKind {
    /// A whole piece, or the last fragment of one.
    Last,
    /// A fragment of a piece that has this many bytes in all, and of which more fragments follow.
    More(usize),
    /// Several whole pieces, each behind its length, as [`put`] writes them and [`take`] reads
    /// them.
    Several,
    /// The end of the stream: with [`Code::Ok`], or with an error whose message is the payload.
    End(Code),
    /// A message of the reader, which wants no more pieces.
    Stop,
}

impl PieceKind {
    pub fn word(self) -> u64 {
        match self {
            Self::Last => 0,
            Self::More(len) => 1 | (len as u64) << 8,
            Self::Stop => 2,
            Self::Several => 4,
            Self::End(code) => 3 | u64::from(code.number()) << 8,
        }
    }

    /// Reads a kind from its word; `None` if the word is no kind.
    pub fn from_word(word: u64) -> Option<Self> {
        match word {
            0 => Some(Self::Last),
            2 => Some(Self::Stop),
            4 => Some(Self::Several),
            more if more & 0xff == 1 => usize::try_from(more >> 8).ok().map(Self::More),
            end if end & 0xff == 3 => {
                u8::try_from(end >> 8).ok().map(|code| Self::End(Code::from_number(code)))
            }
            _ => None,
        }
    }
}

/// The number of bytes that the length in front of each piece takes.
const LENGTH: usize = 4;

/// Appends a piece, behind its length, unless `pieces` would then be longer than `most` bytes.
/// Returns whether the piece was appended.
pub fn put(piece: &[u8], most: usize, pieces: &mut Vec<u8>) -> bool {
    let fits = pieces.len() + LENGTH + piece.len() <= most;
    // Messages of Active Messages are shorter than this length can express.
    let Some(length) = u32::try_from(piece.len()).ok().filter(|_| fits) else { return false };
    pieces.extend_from_slice(&length.to_be_bytes());
    pieces.extend_from_slice(piece);
    true
}

/// Takes the first piece off; `None` if the bytes are not as [`put`] writes them.
pub fn take(pieces: &mut Bytes) -> Option<Bytes> {
    let length = u32::from_be_bytes(*pieces.first_chunk()?) as usize;
    let end = LENGTH.checked_add(length).filter(|&end| end <= pieces.len())?;
    Some(pieces.split_to(end).slice(LENGTH..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_kind_that_is_read_equals_the_one_that_was_written() {
        let kinds = [PieceKind::Last, PieceKind::Stop, PieceKind::Several];
        let kinds = kinds.into_iter().chain([0, 70_000, 1 << 40].map(PieceKind::More));
        for kind in kinds.chain([PieceKind::End(Code::DataLoss)]) {
            assert_eq!(PieceKind::from_word(kind.word()), Some(kind));
        }
        assert_eq!(PieceKind::from_word(5), None);
    }

    #[test]
    fn several_pieces_come_out_as_they_went_in_and_no_more_than_fit() {
        let mut several = Vec::new();
        let pieces: [&[u8]; 3] = [b"one", b"", b"another"];
        assert!(pieces.iter().all(|piece| put(piece, 22, &mut several)));
        assert_eq!(several.len(), 22);
        assert!(!put(b"", 25, &mut several) && put(b"", 26, &mut several));
        let mut bytes = Bytes::from(several);
        for piece in pieces.into_iter().chain([b"".as_slice()]) {
            assert_eq!(take(&mut bytes).as_deref(), Some(piece));
        }
        assert_eq!(take(&mut bytes), None);
    }

    #[test]
    fn a_length_beyond_the_end_is_of_no_piece() {
        for bytes in [&[0, 0, 0][..], &[0, 0, 0, 2, 1], &[0xff; 9]] {
            assert_eq!(take(&mut Bytes::copy_from_slice(bytes)), None);
        }
    }
}
