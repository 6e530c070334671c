//! Which frames are a process's.

use doorbell_core::nic::Numbering;
use doorbell_core::wire::{Mac, Qpn};

use crate::sys::filter::{Test, Width};

/// Where the word with the destination queue pair stands in a BTH: it is the lower 24 bits.
const DESTINATION: usize = 4;
const NUMBER: u32 = 0x00FF_FFFF;

/// Those whose BTH, at `bth` of the frame, names a queue pair of this numbering's process, or queue
/// pair 1, which is everybody's.
///
/// Of a frame that holds a run, the first packet is seen: so nobody puts packets for two processes
/// into one.
pub(super) fn own(bth: usize, numbering: Numbering) -> Test {
    let below = 24 - numbering.tag_bits;
    let tag = (NUMBER >> below << below, numbering.tag << below);
    let either = vec![tag, (NUMBER, Qpn::GSI.get())];
    Test { at: bth + DESTINATION, width: Width::Word, either }
}

/// Those for this interface: others come where a switch floods, and on cables that have no notion of
/// addresses.
pub(super) fn to(Mac([a, b, c, d, e, f]): Mac) -> [Test; 2] {
    let word = u32::from_be_bytes([a, b, c, d]);
    let half = u32::from(u16::from_be_bytes([e, f]));
    [
        Test { at: 0, width: Width::Word, either: vec![(u32::MAX, word)] },
        Test { at: 4, width: Width::Half, either: vec![(u32::MAX, half)] },
    ]
}
