//! What became of the frames.

/// How many frames there were, and what became of them.
///
/// Every frame that comes to be, by being sent or as a copy of another, ends once:
/// `sent + duplicated + flooded` is `delivered + lost + cut + partitioned + restarted + oversized +
/// tail_dropped + filtered + looped + undeliverable` and what is still
/// [on its way](crate::Network::in_flight).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Counters {
    /// Sent by stations.
    pub sent: u64,
    /// Second copies made by a cable.
    pub duplicated: u64,
    /// Copies made by a switch that flooded: one less than the ports it flooded to.
    pub flooded: u64,

    /// Brought to a station.
    pub delivered: u64,
    /// Lost by a cable.
    pub lost: u64,
    /// On a cable when it was cut, or sent into it since.
    pub cut: u64,
    /// Kept from a station by a partition.
    pub partitioned: u64,
    /// Lost because the station that they were for, or waited in, was restarted.
    pub restarted: u64,
    /// Dropped before a cable whose MTU they exceeded.
    pub oversized: u64,
    /// Dropped before an output port of a switch whose buffer was full.
    pub tail_dropped: u64,
    /// Not forwarded, as their destination is behind the port that they came from.
    pub filtered: u64,
    /// Dropped for having crossed more switches than there are, which takes a loop.
    pub looped: u64,
    /// Without a way to go: no cable at the station, no other port at the switch, or too short to
    /// have an Ethernet header.
    pub undeliverable: u64,

    /// Corrupted by a cable. A frame may be so more than once.
    pub corrupted: u64,
    /// Held back by a cable, so that later frames could overtake.
    pub reordered: u64,
    /// Marked Congestion Experienced by a switch.
    pub marked: u64,
}
