//! Which frames are a process's.

use doorbell_core::nic::Numbering;
use doorbell_core::wire::{Ethernet, Grh, Qpn};

use crate::sys::filter::Test;

/// Where the word with the destination queue pair stands: it is the lower 24 bits.
const DESTINATION: usize = Ethernet::LEN + Grh::LEN + 4;
const NUMBER: u32 = 0x00FF_FFFF;

/// Those to this interface whose BTH names a queue pair of this numbering's process, or queue pair
/// 1, which is everybody's.
pub(super) fn own(numbering: Numbering) -> [Test; 2] {
    let below = 24 - numbering.tag_bits;
    let tag = (NUMBER >> below << below, numbering.tag << below);
    let number = Test::word(DESTINATION, &[tag, (NUMBER, Qpn::GSI.get())]);
    // What rules out the frames of others comes first: their sender waits for each socket.
    [number, Test::to_interface()]
}
