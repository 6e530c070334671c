//! What may happen to a frame of RoCE on one direction of the link.

/// What one direction does to frames of RoCE, each with its probability from 0 to 1.
///
/// What strikes a frame depends on the seed, the direction, and how many frames of RoCE went that
/// way since the faults were set: not on other traffic, nor on time, except that nothing is held
/// back for longer than [`Faults::LONGEST`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Faults {
    /// The frame is lost.
    pub loss: f64,
    /// There is a second copy of the frame.
    pub repetition: f64,
    /// The frame is held back, until some later ones have overtaken it.
    pub delay: f64,
    /// One to three bits behind the UDP header are flipped, so that only the ICRC can tell: the sum
    /// in the UDP header is made to fit, or left out. Of a frame and its second copy, each is
    /// struck or not by itself.
    pub corruption: f64,
    /// How many frames overtake one that is held back, at most, or come between the copies of one.
    pub overtakers: u32,
}

impl Faults {
    /// A perfect cable. If only a probability is changed, up to four frames overtake.
    pub const NONE: Self =
        Self { loss: 0.0, repetition: 0.0, delay: 0.0, corruption: 0.0, overtakers: 4 };

    /// The longest that a frame is held back where too few follow it.
    pub const LONGEST: std::time::Duration = std::time::Duration::from_millis(10);
}

impl Default for Faults {
    /// [`Faults::NONE`].
    fn default() -> Self {
        Self::NONE
    }
}
