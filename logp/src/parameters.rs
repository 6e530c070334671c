//! The parameters of the model.

use std::fmt;

use crate::estimate::Estimate;

/// The parameters of LogP and LogGP, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Parameters {
    /// `o_s`: for how long the processor that sends a message is busy with the message.
    pub send_overhead: Estimate,
    /// `o_r`: for how long the processor that receives a message is busy with the message.
    pub receive_overhead: Estimate,
    /// `L`: how long a message takes beside the two overheads. May be near zero or below where the
    /// sender's processor carries the message all the way.
    pub latency: Estimate,
    /// `g`: the time between two messages at a steady rate.
    pub gap: Estimate,
    /// Whether the gap is that of the processor, `o_s + o_r`, within the intervals: then the network
    /// by itself may have a smaller gap.
    pub gap_is_of_the_processor: bool,
    /// `G`: the time that each further byte of a long message takes; `None` if no long message was
    /// measured.
    pub gap_per_byte: Option<Estimate>,
    /// The time from a request to its answer.
    pub round_trip: Estimate,
}

impl fmt::Display for Parameters {
    /// The parameters with their intervals, in microseconds, and `G` in nanoseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |estimate: Estimate| Estimate {
            value: estimate.value / 1e3,
            low: estimate.low / 1e3,
            high: estimate.high / 1e3,
        };
        write!(
            f,
            "o_s {} µs, o_r {} µs, L {} µs, g {} µs, RTT {} µs",
            micros(self.send_overhead),
            micros(self.receive_overhead),
            micros(self.latency),
            micros(self.gap),
            micros(self.round_trip),
        )?;
        match self.gap_per_byte {
            Some(gap) => write!(f, ", G {gap} ns"),
            None => Ok(()),
        }
    }
}
