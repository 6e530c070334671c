//! Process tags: the topmost bits of a queue pair number say which process of an interface the
//! queue pair belongs to.

use crate::wire::Qpn;

/// Returns the tag of the process that a queue pair number belongs to, where process tags have
/// `tag_bits` bits.
pub(crate) fn tag_of(qpn: Qpn, tag_bits: u32) -> u32 {
    qpn.get() >> 24_u32.saturating_sub(tag_bits)
}
