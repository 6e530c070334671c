//! Packing the data of several members into one message.

use bytes::{Bytes, BytesMut};

/// Packs blocks into one message: first the lengths of all blocks, eight bytes each, then the
/// blocks. If there is only one block, it is the message.
pub(in crate::group) fn pack<'b>(
    blocks: impl ExactSizeIterator<Item = &'b Bytes> + Clone,
) -> Bytes {
    if blocks.len() == 1 {
        return blocks.into_iter().next().cloned().unwrap_or_default();
    }
    let len: usize = blocks.clone().map(|block| 8 + block.len()).sum();
    let mut message = BytesMut::with_capacity(len);
    for block in blocks.clone() {
        message.extend_from_slice(&(block.len() as u64).to_le_bytes());
    }
    blocks.for_each(|block| message.extend_from_slice(block));
    message.freeze()
}

/// Unpacks a message of `count` blocks; `None` if the message has fewer blocks, or further bytes.
pub(in crate::group) fn unpack(mut message: Bytes, count: usize) -> Option<Vec<Bytes>> {
    if count == 1 {
        return Some(vec![message]);
    }
    let lengths = message.len().checked_sub(count.checked_mul(8)?).map(|_| 8 * count)?;
    let lengths = message.split_to(lengths);
    let mut blocks = Vec::with_capacity(count);
    for len in lengths.as_chunks::<8>().0 {
        let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
        if len > message.len() {
            return None;
        }
        blocks.push(message.split_to(len));
    }
    message.is_empty().then_some(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_any_lengths_come_out_as_they_went_in() {
        for count in 0..5 {
            let blocks: Vec<_> = (0..count).map(|at| Bytes::from(vec![at as u8; 3 * at])).collect();
            assert_eq!(unpack(pack(blocks.iter()), count), Some(blocks), "{count} blocks");
        }
    }

    #[test]
    fn what_is_no_such_message_is_none() {
        let blocks = [Bytes::from_static(b"ab"), Bytes::from_static(b"c")];
        let message = pack(blocks.iter());
        for len in 0..message.len() {
            assert_eq!(unpack(message.slice(..len), 2), None, "{len} bytes of it");
        }
        assert_eq!(unpack([&message[..], b"d"].concat().into(), 2), None);
        assert_eq!(unpack(Bytes::from(vec![0xFF; 40]), 2), None);
        assert_eq!(unpack(Bytes::new(), usize::MAX), None);
    }
}
