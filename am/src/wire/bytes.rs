//! Bytes in a row: laid out, and taken off again.

/// Takes as many bytes off the front.
pub(super) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    bytes.split_off(..N)?.first_chunk().copied()
}

/// Lays parts in a row, with zeros behind them. What does not fit is cut.
pub(super) fn laid<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut bytes = [0; N];
    let all = parts.iter().copied().flatten();
    bytes.iter_mut().zip(all).for_each(|(to, from)| *to = *from);
    bytes
}
