//! A switch: where frames go from it.

use std::collections::BTreeMap;

use doorbell_core::wire::{Ethernet, Mac};

use crate::config::SwitchConfig;
use crate::lane::LaneId;

/// The number of a port of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Port(pub(crate) u32);

/// How many addresses a switch remembers. Corruption makes addresses up, and a long run many.
const MOST_ADDRESSES: usize = 8_192;

/// The bit of an address's first byte that says that it is of a group.
const GROUP: u8 = 1;

#[derive(Debug)]
pub(crate) struct Switch {
    pub(crate) config: SwitchConfig,
    /// The lanes that go out, by port.
    ports: Vec<LaneId>,
    addresses: BTreeMap<Mac, Port>,
}

/// Where a frame goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Route {
    To(LaneId),
    /// To every port but the one that it came from.
    Flood,
    /// Back to where it came from, where it need not go.
    Filter,
    /// It can't be said.
    Nowhere,
}

impl Switch {
    pub(crate) const fn new(config: SwitchConfig) -> Self {
        Self { config, ports: Vec::new(), addresses: BTreeMap::new() }
    }

    /// Adds the port out of which a lane goes.
    pub(crate) fn add_port(&mut self, out: LaneId) -> Port {
        self.ports.push(out);
        Port(self.ports.len() as u32 - 1)
    }

    pub(crate) fn ports(&self) -> &[LaneId] {
        &self.ports
    }

    /// Learns where the frame's sender is, and says where it goes.
    pub(crate) fn route(&mut self, came_in: Port, frame: &[u8]) -> Route {
        let Ok((header, _)) = Ethernet::parse(frame) else { return Route::Nowhere };
        self.learn(header.source, came_in);
        // Group addresses are never learnt, and so always flooded.
        match self.addresses.get(&header.destination) {
            Some(port) if *port == came_in => Route::Filter,
            Some(port) => Route::To(self.ports[port.0 as usize]),
            None => Route::Flood,
        }
    }

    fn learn(&mut self, source: Mac, port: Port) {
        if let Some(known) = self.addresses.get_mut(&source) {
            *known = port;
        } else if source.0[0] & GROUP == 0 && self.addresses.len() < MOST_ADDRESSES {
            self.addresses.insert(source, port);
        }
    }
}
