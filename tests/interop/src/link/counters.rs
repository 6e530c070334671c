//! The counts of frames on one direction of the link.

/// The counts of frames on one direction of the link, and of what became of them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Frames that came from the sender.
    pub frames: u64,
    /// Those of them that faults may strike.
    pub roce: u64,
    /// Frames of RoCE that were lost on purpose.
    pub lost: u64,
    /// Second copies that were made.
    pub repeated: u64,
    /// Frames that were held back.
    pub delayed: u64,
    /// Frames, second copies among them, of which bits were flipped.
    pub corrupted: u64,
    /// Frames of any kind for which there was no room: nobody's purpose.
    pub dropped: u64,
}

impl Counters {
    /// How many times a frame of this direction did not arrive as it was sent, on purpose or not.
    pub(super) const fn harmed(&self) -> u64 {
        self.lost + self.repeated + self.delayed + self.corrupted + self.dropped
    }
}
