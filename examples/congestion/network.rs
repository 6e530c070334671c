//! What the simulated networks are made of.

use std::time::Duration;

use doorbell_simulation::{Bandwidth, LinkConfig, SwitchConfig};

use crate::cable::LINE_RATE;

/// A cable of the usual rate that takes so long each way.
pub fn cable(latency: Duration) -> LinkConfig {
    LinkConfig {
        latency,
        bandwidth: Bandwidth::bits_per_second(LINE_RATE),
        mtu: 9000,
        ..LinkConfig::default()
    }
}

/// A switch with a buffer of so many bytes a port, which may mark packets from a quarter of that on.
pub fn switch(buffer: usize, ecn: bool) -> SwitchConfig {
    SwitchConfig {
        latency: Duration::from_nanos(500),
        buffer,
        ecn_threshold: ecn.then_some(buffer / 4),
    }
}
