//! Access to the fields of headers whose length is constant. Offsets are checked at compile time, so
//! no access is checked at run time.

/// The `N` bytes of a header from byte `AT` on.
#[inline(always)]
pub(crate) const fn at<const AT: usize, const N: usize, const LEN: usize>(
    header: &[u8; LEN],
) -> [u8; N] {
    const { assert!(AT + N <= LEN, "a field lies within its header") }
    match header.split_at(AT).1.first_chunk() {
        Some(field) => *field,
        None => unreachable!(),
    }
}

/// Two bytes of a header from byte `AT` on, as a number.
#[inline(always)]
pub(crate) const fn be16<const AT: usize, const LEN: usize>(header: &[u8; LEN]) -> u16 {
    u16::from_be_bytes(at::<AT, 2, LEN>(header))
}

/// Four bytes of a header from byte `AT` on, as a number.
#[inline(always)]
pub(crate) const fn be32<const AT: usize, const LEN: usize>(header: &[u8; LEN]) -> u32 {
    u32::from_be_bytes(at::<AT, 4, LEN>(header))
}

/// Eight bytes of a header from byte `AT` on, as a number.
#[inline(always)]
pub(crate) const fn be64<const AT: usize, const LEN: usize>(header: &[u8; LEN]) -> u64 {
    u64::from_be_bytes(at::<AT, 8, LEN>(header))
}

/// Puts bytes to the front of `out`, and returns what is behind them.
///
/// # Panics
/// When `out` is shorter. What is encoded comes from this program, which has made room for it.
#[inline(always)]
pub(crate) fn put<const N: usize>(out: &mut [u8], bytes: [u8; N]) -> &mut [u8] {
    match out.split_first_chunk_mut::<N>() {
        Some((front, behind)) => {
            *front = bytes;
            behind
        }
        None => no_room(),
    }
}

/// Ends an encoding that was given too little room.
#[cold]
#[inline(never)]
pub(crate) fn no_room() -> ! {
    panic!("headers are encoded where there is room for them")
}

/// The low 16 bits of a number, which are all of it where it is a length that was checked.
#[inline(always)]
pub(crate) const fn low16(number: usize) -> u16 {
    (number as u64 & 0xFFFF) as u16
}

/// The low 32 bits of a number, which are all of it where it is a length that was checked.
#[inline(always)]
pub(crate) const fn low32(number: usize) -> u32 {
    (number as u64 & 0xFFFF_FFFF) as u32
}

/// A table with an entry for each byte.
pub(crate) struct ByByte<T>(pub [T; 256]);

impl<T> ByByte<T> {
    /// The entry of a byte.
    #[inline(always)]
    #[expect(
        clippy::indexing_slicing,
        reason = "there are as many entries as bytes can have values"
    )]
    pub const fn of(&self, byte: u8) -> &T {
        &self.0[byte as usize]
    }
}
