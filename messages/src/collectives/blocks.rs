//! Packing the data of several members into one message.

use bytes::{Bytes, BytesMut};

/// The length from which a block does not go in messages with others. Such a block is sent by
/// itself, from the member that has it to the member that gets it, and messages for several members
/// only tell its length.
pub const APART: usize = 16 << 10;

/// A block of bytes of one member, as a message for several members has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Block {
    /// The bytes of the block, in the same message.
    Here(Bytes),
    /// The length of a block that comes by itself.
    Apart(usize),
}

/// The bit that marks the length of a block that comes by itself.
const MARK: u64 = 1 << 63;

impl Block {
    /// Returns the block of some bytes: themselves, or if they are many, their length.
    pub fn of(bytes: &Bytes) -> Self {
        match bytes.len() >= APART {
            true => Self::Apart(bytes.len()),
            false => Self::Here(bytes.clone()),
        }
    }

    fn word(&self) -> u64 {
        match self {
            Self::Here(bytes) => bytes.len() as u64,
            Self::Apart(len) => *len as u64 | MARK,
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Here(bytes) => bytes,
            Self::Apart(_) => &[],
        }
    }
}

/// Packs blocks into one message: first the lengths of all blocks, eight bytes each, then the bytes
/// of those that are here.
pub fn pack(blocks: &[Block]) -> Bytes {
    let len: usize = blocks.iter().map(|block| 8 + block.bytes().len()).sum();
    let mut message = BytesMut::with_capacity(len);
    for block in blocks {
        message.extend_from_slice(&block.word().to_le_bytes());
    }
    blocks.iter().for_each(|block| message.extend_from_slice(block.bytes()));
    message.freeze()
}

/// Unpacks a message of `count` blocks. Returns `None` if the message has fewer blocks, or further
/// bytes.
pub fn unpack(mut message: Bytes, count: usize) -> Option<Vec<Block>> {
    let lengths = 8_usize.checked_mul(count).filter(|len| *len <= message.len())?;
    let lengths = message.split_to(lengths);
    let mut blocks = Vec::with_capacity(count);
    for word in lengths.as_chunks::<8>().0 {
        let word = u64::from_le_bytes(*word);
        let len = usize::try_from(word & !MARK).ok()?;
        blocks.push(match word & MARK {
            0 if len > message.len() => return None,
            0 => Block::Here(message.split_to(len)),
            _ => Block::Apart(len),
        });
    }
    message.is_empty().then_some(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_any_lengths_come_out_as_they_went_in() {
        for count in 0..5 {
            let bytes = |at| Bytes::from(vec![at as u8; at * APART / 3]);
            let blocks: Vec<_> = (0..count).map(|at| Block::of(&bytes(at))).collect();
            assert_eq!(unpack(pack(&blocks), count), Some(blocks), "{count} blocks");
        }
        assert_eq!(Block::of(&Bytes::from(vec![0; APART])), Block::Apart(APART));
    }

    #[test]
    fn what_is_no_such_message_is_none() {
        let blocks = [Block::Here(Bytes::from_static(b"ab")), Block::Apart(1 << 20)];
        let message = pack(&blocks);
        for len in 0..message.len() {
            assert_eq!(unpack(message.slice(..len), 2), None, "{len} bytes of it");
        }
        assert_eq!(unpack([&message[..], b"d"].concat().into(), 2), None);
        assert_eq!(unpack(Bytes::from(vec![0x7F; 40]), 2), None);
        assert_eq!(unpack(Bytes::new(), usize::MAX), None);
    }
}
