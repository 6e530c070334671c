//! The counts of frames by what became of them.

/// The numbers of frames that were sent or copied, and of what became of them.
///
/// Each frame that is sent, or made as a copy, ends once: `sent + duplicated + flooded` is the sum
/// of `delivered + lost + cut + partitioned + restarted + oversized + tail_dropped + filtered +
/// looped + undeliverable` and the frames that are still [on their way](crate::Network::in_flight).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Counters {
    /// Frames that stations have sent.
    pub sent: u64,
    /// Second copies that cables have made.
    pub duplicated: u64,
    /// Copies that switches have made by flooding: for each frame one less than the ports it was
    /// flooded to.
    pub flooded: u64,

    /// Frames that were delivered to a station.
    pub delivered: u64,
    /// Frames that a cable has lost.
    pub lost: u64,
    /// Frames that were on a cable when it was cut, or were sent into it since.
    pub cut: u64,
    /// Frames that a partition has kept from a station.
    pub partitioned: u64,
    /// Frames that were lost because their station was restarted, for which they were or in which
    /// they waited.
    pub restarted: u64,
    /// Frames that were dropped since they exceeded the MTU of a cable.
    pub oversized: u64,
    /// Frames that were dropped at an output port of a switch whose buffer was full.
    pub tail_dropped: u64,
    /// Frames that a switch has not forwarded, since their destination is behind the port by which
    /// they came.
    pub filtered: u64,
    /// Frames that were dropped in a loop, after they had crossed more switches than there are.
    pub looped: u64,
    /// Frames that could go nowhere: there was no cable at the station, no other port at the
    /// switch, or the frame was too short to have an Ethernet header.
    pub undeliverable: u64,

    /// Corruptions of frames by cables. A frame may be corrupted more than once.
    pub corrupted: u64,
    /// Frames that a cable has held back, so that later frames could overtake them.
    pub reordered: u64,
    /// Frames that a switch has marked Congestion Experienced.
    pub marked: u64,
}
