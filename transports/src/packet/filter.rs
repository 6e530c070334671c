//! The filter that passes a process its own frames.

use doorbell_core::nic::Numbering;
use doorbell_core::wire::{Ethernet, Grh, Qpn};

use crate::sys::filter::Test;

/// The offset of the word whose lower 24 bits are the destination queue pair.
const DESTINATION: usize = Ethernet::LEN + Grh::LEN + 4;
/// The bits of that word which are the number of the queue pair.
const NUMBER: u32 = 0x00FF_FFFF;

/// Returns tests for frames to this interface whose BTH names a queue pair of this numbering's
/// process, or queue pair 1, which belongs to all processes.
pub(super) fn own(numbering: Numbering) -> [Test; 2] {
    let below = 24 - numbering.tag_bits;
    let tag = (NUMBER >> below << below, numbering.tag << below);
    let number = Test::word(DESTINATION, &[tag, (NUMBER, Qpn::GSI.get())]);
    // The test that rules out frames of others comes first, since their sender waits for each
    // socket.
    [number, Test::to_interface()]
}
