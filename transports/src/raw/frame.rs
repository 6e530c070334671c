//! The size of frames.

use doorbell_core::wire::Ethernet;

/// The bytes of the longest frame: what an IP length field can say, and the Ethernet header.
pub const LONGEST: usize = Ethernet::LEN + u16::MAX as usize;
