//! What a responder notes of the packets that come, beside carrying them out, where its peer is told
//! of each packet by [reports](crate::wire::Report).

use crate::nic::selective::held::Held;
use crate::time::Time;
use crate::wire::Psn;

/// The arrivals that the next report to the peer tells of.
#[derive(Default)]
pub(crate) struct Arrivals {
    /// The packets from beyond a gap that are kept, once any were.
    pub held: Option<Box<Held>>,
    /// When the last packet came that was accepted.
    pub accepted_at: Time,
    /// The packet that came last and when, if it was not the expected one, since the last
    /// acknowledgement.
    pub newest: Option<(Psn, Time)>,
    /// A read whose sender asks when it came, and when that was.
    pub read: Option<(Psn, Time)>,
    /// How many packets came that a switch had marked, modulo 2³².
    pub marked: u32,
    /// How many packets came that had come before, modulo 256.
    pub repeated: u8,
}

impl Arrivals {
    /// Whether packets are kept that wait for the expected one.
    #[inline(always)]
    pub fn holds(&self) -> bool {
        self.held.as_ref().is_some_and(|held| !held.is_empty())
    }
}
