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
///
/// A single block is the message itself, without a copy, unless blocks may come by themselves: then
/// `with_apart` is true.
pub fn pack(blocks: &[Block], with_apart: bool) -> Bytes {
    if let ([Block::Here(bytes)], false) = (blocks, with_apart) {
        return bytes.clone();
    }
    let len: usize = blocks.iter().map(|block| 8 + block.bytes().len()).sum();
    let mut message = BytesMut::with_capacity(len);
    for block in blocks {
        message.extend_from_slice(&block.word().to_le_bytes());
    }
    blocks.iter().for_each(|block| message.extend_from_slice(block.bytes()));
    message.freeze()
}

/// Unpacks a message of `count` blocks, as [`pack`] makes it. Returns `None` if the message has
/// fewer blocks, or further bytes, or a block that comes by itself although none may.
pub fn unpack(mut message: Bytes, count: usize, with_apart: bool) -> Option<Vec<Block>> {
    if (count, with_apart) == (1, false) {
        return Some(vec![Block::Here(message)]);
    }
    let lengths = 8_usize.checked_mul(count).filter(|len| *len <= message.len())?;
    let lengths = message.split_to(lengths);
    let mut blocks = Vec::with_capacity(count);
    for word in lengths.as_chunks::<8>().0 {
        let word = u64::from_le_bytes(*word);
        let len = usize::try_from(word & !MARK).ok()?;
        blocks.push(match word & MARK {
            0 if len > message.len() => return None,
            0 => Block::Here(message.split_to(len)),
            _ if with_apart => Block::Apart(len),
            _ => return None,
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
            let here = |at| Block::Here(Bytes::from(vec![at as u8; 3 * at]));
            let apart = |at| if at % 2 == 1 { Block::Apart(at << 20) } else { here(at) };
            let blocks: Vec<_> = (0..count).map(apart).collect();
            assert_eq!(unpack(pack(&blocks, true), count, true), Some(blocks), "{count} blocks");
            let blocks: Vec<_> = (0..count).map(here).collect();
            assert_eq!(unpack(pack(&blocks, false), count, false), Some(blocks), "{count} blocks");
        }
    }

    #[test]
    fn a_single_block_is_the_message_itself_where_no_block_comes_by_itself() {
        let block = Bytes::from_static(b"all of it");
        assert_eq!(pack(&[Block::Here(block.clone())], false), block);
    }

    #[test]
    fn what_is_no_such_message_is_none() {
        let blocks = [Block::Here(Bytes::from_static(b"ab")), Block::Apart(1 << 20)];
        let message = pack(&blocks, true);
        for len in 0..message.len() {
            assert_eq!(unpack(message.slice(..len), 2, true), None, "{len} bytes of it");
        }
        assert_eq!(unpack(message.clone(), 2, false), None, "a block is missing");
        assert_eq!(unpack([&message[..], b"d"].concat().into(), 2, true), None);
        assert_eq!(unpack(Bytes::from(vec![0x7F; 40]), 2, true), None);
        assert_eq!(unpack(Bytes::new(), usize::MAX, true), None);
    }
}
