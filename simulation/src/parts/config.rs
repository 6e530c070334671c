//! The configuration of cables and switches.

use std::fmt;
use std::time::Duration;

use crate::parts::faults::Faults;

/// The rate at which bits go onto a cable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bandwidth(Option<u64>);

impl Bandwidth {
    /// An unlimited rate, at which a frame leaves in no time, and never waits for another frame.
    pub const UNLIMITED: Self = Self(None);

    /// A rate in bits per second, which must not be zero. To let nothing through, cut the cable.
    pub const fn bits_per_second(bits: u64) -> Self {
        assert!(bits > 0, "a bandwidth of nothing: cut the link instead");
        Self(Some(bits))
    }

    /// A rate in units of 10^9 bits per second.
    pub const fn gigabits_per_second(gigabits: u64) -> Self {
        Self::bits_per_second(gigabits.saturating_mul(1_000_000_000))
    }

    /// The whole nanoseconds that `bytes` take; `None` at an unlimited rate. The remainder is kept
    /// in `carry`, in units of a nanosecond divided by the bits per second.
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

/// The properties of a cable.
///
/// ```
/// # use std::time::Duration;
/// # use doorbell_simulation::{Bandwidth, Faults, LinkConfig};
/// let config = LinkConfig {
///     latency: Duration::from_micros(5),
///     bandwidth: Bandwidth::gigabits_per_second(25),
///     forth: Faults { loss: 0.01, ..Faults::NONE },
///     ..LinkConfig::default()
/// };
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkConfig {
    /// The time from when the last bit of a frame leaves one end until it reaches the other end.
    pub latency: Duration,
    /// The rate at which bits go onto the cable, at each end. Only the bytes of frames count, and
    /// neither checksum nor preamble nor gap. Departures are rounded down to whole nanoseconds; the
    /// remainder is carried over to a frame that follows at once, so that many frames take exactly
    /// their time.
    pub bandwidth: Bandwidth,
    /// The longest frame, without the 14 bytes of its Ethernet header. Longer frames are dropped.
    pub mtu: usize,
    /// The faults of frames from the first end to the second.
    pub forth: Faults,
    /// The faults of frames from the second end to the first.
    pub back: Faults,
}

impl LinkConfig {
    /// Returns the configuration with these faults in both directions.
    #[must_use]
    pub const fn with_faults(self, faults: Faults) -> Self {
        Self { forth: faults, back: faults, ..self }
    }
}

impl Default for LinkConfig {
    /// A latency of a microsecond, unlimited bandwidth, the 1500 bytes of plain Ethernet, and no
    /// faults.
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

/// The properties of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwitchConfig {
    /// The time from when the last bit of a frame has come in until the frame is in the queue of an
    /// output port.
    pub latency: Duration,
    /// The bytes that each output port may hold. A frame takes room until its last bit has left,
    /// and is dropped if it does not fit as a whole.
    pub buffer: usize,
    /// The bytes in an output queue from which on frames are marked Congestion Experienced, if
    /// their ECN bits allow marks. The bytes of the frame itself don't count.
    pub ecn_threshold: Option<usize>,
}

impl Default for SwitchConfig {
    /// A latency of half a microsecond, a buffer of a mebibyte for each port, and no marks.
    fn default() -> Self {
        Self { latency: Duration::from_nanos(500), buffer: 1 << 20, ecn_threshold: None }
    }
}
