//! A switch: learnt addresses, and the ports by which frames leave.

use std::collections::BTreeMap;

use doorbell_core::wire::{Ethernet, Mac};

use crate::ids::{LaneId, SwitchPort};
use crate::parts::config::SwitchConfig;

/// The most addresses that a switch learns. Corrupted frames have invented addresses, and a long
/// run has many.
const MOST_ADDRESSES: usize = 8_192;

/// The bit of an address's first byte that marks a group address.
const GROUP: u8 = 1;

#[derive(Debug)]
pub(crate) struct Switch {
    pub(crate) config: SwitchConfig,
    /// The outgoing lane of each port.
    ports: Vec<LaneId>,
    addresses: BTreeMap<Mac, SwitchPort>,
}

/// The forwarding decision for a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Route {
    To(LaneId),
    /// Forward the frame to each port but the one by which it came.
    Flood,
    /// Drop the frame, since its destination is behind the port by which it came.
    Filter,
    /// Drop the frame, which has no Ethernet header.
    Nowhere,
}

impl Switch {
    pub(crate) const fn new(config: SwitchConfig) -> Self {
        Self { config, ports: Vec::new(), addresses: BTreeMap::new() }
    }

    /// Adds a port with its outgoing lane.
    pub(crate) fn add_port(&mut self, out: LaneId) -> SwitchPort {
        self.ports.push(out);
        SwitchPort(self.ports.len() as u32 - 1)
    }

    pub(crate) fn ports(&self) -> &[LaneId] {
        &self.ports
    }

    /// Learns the port of the frame's sender, and decides where the frame goes.
    pub(crate) fn route(&mut self, came_in: SwitchPort, frame: &[u8]) -> Route {
        let Ok((header, _)) = Ethernet::parse(frame) else { return Route::Nowhere };
        self.learn(header.source, came_in);
        // Group addresses are never learnt, and so frames to them are always flooded.
        match self.addresses.get(&header.destination) {
            Some(port) if *port == came_in => Route::Filter,
            Some(port) => Route::To(self.ports[port.0 as usize]),
            None => Route::Flood,
        }
    }

    fn learn(&mut self, source: Mac, port: SwitchPort) {
        if let Some(known) = self.addresses.get_mut(&source) {
            *known = port;
        } else if source.0[0] & GROUP == 0 && self.addresses.len() < MOST_ADDRESSES {
            self.addresses.insert(source, port);
        }
    }
}
