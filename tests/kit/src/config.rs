//! What cables and switches are like.

use std::fmt;
use std::time::Duration;

use crate::faults::Faults;

/// How fast bits go onto a cable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bandwidth(Option<u64>);

impl Bandwidth {
    /// A frame takes no time to leave, and none ever waits for another.
    pub const UNLIMITED: Self = Self(None);

    /// So many bits a second, of which there must be some: what lets nothing through is a cable
    /// that was cut.
    pub const fn bits_per_second(bits: u64) -> Self {
        assert!(bits > 0, "a bandwidth of nothing: cut the link instead");
        Self(Some(bits))
    }

    /// So many times 10^9 bits a second.
    pub const fn gigabits_per_second(gigabits: u64) -> Self {
        Self::bits_per_second(gigabits.saturating_mul(1_000_000_000))
    }

    /// The whole nanoseconds that `bytes` take, if they take any. What is left over is kept in
    /// `carry`, in parts of a nanosecond of which the bandwidth makes a whole one.
    pub(crate) const fn serialise(self, bytes: usize, carry: &mut u64) -> Option<u64> {
        let Some(bits) = self.0 else { return None };
        let parts = (bytes as u64).saturating_mul(8 * 1_000_000_000).saturating_add(*carry);
        *carry = parts % bits;
        Some(parts / bits)
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(bits) => write!(f, "{bits} bit/s"),
            None => write!(f, "unlimited"),
        }
    }
}

/// What a cable is like.
///
/// ```
/// # use std::time::Duration;
/// # use doorbell_kit::{Bandwidth, Faults, LinkConfig};
/// let config = LinkConfig {
///     latency: Duration::from_micros(5),
///     bandwidth: Bandwidth::gigabits_per_second(25),
///     forth: Faults { loss: 0.01, ..Faults::NONE },
///     ..LinkConfig::default()
/// };
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkConfig {
    /// From the last bit leaving one end to its reaching the other.
    pub latency: Duration,
    /// How fast bits go onto the cable, at each end. Only the bytes of frames count: neither check
    /// sum nor preamble nor gap. Departures are whole nanoseconds, rounded down; of frames back to
    /// back what was rounded off is not lost, so that many take exactly their time.
    pub bandwidth: Bandwidth,
    /// The longest frame, without the 14 bytes of its Ethernet header. Longer ones are dropped.
    pub mtu: usize,
    /// What goes wrong from the first end to the second.
    pub forth: Faults,
    /// What goes wrong from the second end to the first.
    pub back: Faults,
}

impl LinkConfig {
    /// The same with these faults in both directions.
    #[must_use]
    pub const fn with_faults(self, faults: Faults) -> Self {
        Self { forth: faults, back: faults, ..self }
    }
}

impl Default for LinkConfig {
    /// A microsecond, unlimited bandwidth, the 1500 bytes of plain Ethernet, no faults.
    fn default() -> Self {
        Self {
            latency: Duration::from_micros(1),
            bandwidth: Bandwidth::UNLIMITED,
            mtu: 1_500,
            forth: Faults::NONE,
            back: Faults::NONE,
        }
    }
}

/// What a switch is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwitchConfig {
    /// From the last bit of a frame being there to its standing in the queue of an output.
    pub latency: Duration,
    /// The bytes that each output port may hold. A frame is in there until its last bit has left,
    /// and dropped if it does not fit whole.
    pub buffer: usize,
    /// A frame that finds more bytes than this in its output's queue, itself not counted, is
    /// marked Congestion Experienced if its ECN bits say that its ends understand that.
    pub ecn_threshold: Option<usize>,
}

impl Default for SwitchConfig {
    /// Half a microsecond, a mebibyte for each port, no marks.
    fn default() -> Self {
        Self { latency: Duration::from_nanos(500), buffer: 1 << 20, ecn_threshold: None }
    }
}
