//! The match bits of messages about the group itself: by which its members meet, and learn of ends.

/// The class of messages about the group, in the two highest bits. The bits of collectives have a
/// zero in the highest place.
const CONTROL: u64 = 2;

/// The bits that say of which kind a message about the group is.
pub const CONTROL_KIND: u64 = 0b11_1111 << 58;

/// The bits of a message about the group: of the kind `kind`, from the member `from`.
pub fn control(kind: u8, from: usize, number: u32) -> u64 {
    CONTROL << 62 | u64::from(kind) << 58 | (from as u64 & 0xFFFF) << 32 | u64::from(number)
}

/// The rank of the sender, and the number, of a message about the group.
pub fn of_control(bits: u64) -> (usize, u32) {
    ((bits >> 32 & 0xFFFF) as usize, bits as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_about_the_group_have_the_highest_bit_and_are_read_as_they_are_written() {
        let bits = control(3, 65_535, u32::MAX);
        assert_eq!((bits >> 62, of_control(bits)), (CONTROL, (65_535, u32::MAX)));
    }
}
