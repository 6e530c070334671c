//! The parameters of the model.

use std::fmt;

use crate::estimate::Estimate;

/// The parameters of LogP and LogGP, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Parameters {
    /// The overhead of sending, `o_s`: the time for which the processor that sends a message is
    /// busy with the message.
    pub send_overhead: Estimate,
    /// The overhead of receiving, `o_r`: the time for which the processor that receives a message
    /// is busy with the message.
    pub receive_overhead: Estimate,
    /// The latency `L` of a message: the time from one processor to the other, without the two
    /// overheads. May be near zero or below where the sender's processor carries the message all
    /// the way.
    pub latency: Estimate,
    /// The gap `g` between messages: the time between two messages at a steady rate.
    pub gap: Estimate,
    /// Whether the gap equals the processor's time `o_s + o_r`, within the intervals. Then the
    /// network by itself may have a smaller gap.
    pub gap_is_of_the_processor: bool,
    /// The gap per byte, `G`: the time that each further byte of a long message takes; `None` if no
    /// long message was measured.
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
