//! What a test has found.

use doorbell_verbs::Capabilities;

use super::costs::Breakdown;
use super::latencies::Summary;
use super::logp::Known;

/// What a test found.
#[derive(Clone, PartialEq, Debug)]
pub struct Figures {
    /// The device's name; nothing for the kernel's own sockets.
    pub device: Option<&'static str>,
    /// Round trips, or messages.
    pub iters: u64,
    pub found: Found,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Found {
    Latency(Summary),
    /// Messages a second.
    Rate(f64),
    /// A share of a processor.
    Share(f64),
    /// The parameters of LogP, and what the device can do that they were measured on.
    LogP(Box<Known>, Capabilities),
    /// What the host's time is spent on.
    Costs(Box<Breakdown>),
}
