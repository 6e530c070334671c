//! A switch: learnt addresses, and the ports by which frames leave.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use doorbell_core::wire::{Ethernet, Mac};

use crate::ids::{LaneId, SwitchPort};
use crate::parts::config::SwitchConfig;
use crate::parts::flow;

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
    addresses: ByAddress<SwitchPort>,
    /// The ports of equal cost by which frames to an address may leave, where that was said.
    routes: ByAddress<Box<[SwitchPort]>>,
    /// A number by which this switch chooses otherwise among ports than another for the same frame.
    salt: u64,
}

/// A table by Ethernet address. Nothing depends on the order of its entries.
type ByAddress<T> = HashMap<u64, T, BuildHasherDefault<AddressHasher>>;

/// An address as a number.
fn number(Mac([a, b, c, d, e, f]): Mac) -> u64 {
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

/// Spreads the number of an address.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        let product = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = product ^ product >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
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
    pub(crate) fn new(config: SwitchConfig, salt: u64) -> Self {
        Self {
            config,
            ports: Vec::new(),
            addresses: ByAddress::default(),
            routes: ByAddress::default(),
            salt,
        }
    }

    /// Has frames to an address leave by one of these ports.
    pub(crate) fn add_route(&mut self, to: Mac, ports: Box<[SwitchPort]>) {
        self.routes.insert(number(to), ports);
    }

    /// Adds a port with its outgoing lane.
    pub(crate) fn add_port(&mut self, out: LaneId) -> SwitchPort {
        self.ports.push(out);
        SwitchPort(self.ports.len() as u32 - 1)
    }

    pub(crate) fn ports(&self) -> &[LaneId] {
        &self.ports
    }

    /// Learns the port of the frame's sender, and decides where the frame goes. `flow` is the number
    /// of the frame's flow, which is computed if it is needed and not known.
    pub(crate) fn route(
        &mut self,
        came_in: SwitchPort,
        frame: &[u8],
        flow: &mut Option<u64>,
    ) -> Route {
        let Ok((header, _)) = Ethernet::parse(frame) else { return Route::Nowhere };
        let destination = number(header.destination);
        if let Some(ports) = self.routes.get(&destination) {
            let port = match ports[..] {
                [only] => only,
                _ => {
                    let flow = *flow.get_or_insert_with(|| flow::hash(frame));
                    let choice = flow::choice(flow, self.salt) % ports.len() as u64;
                    ports[choice as usize]
                }
            };
            return Route::To(self.ports[port.0 as usize]);
        }
        self.learn(header.source, came_in);
        // Group addresses are never learnt, and so frames to them are always flooded.
        match self.addresses.get(&destination) {
            Some(port) if *port == came_in => Route::Filter,
            Some(port) => Route::To(self.ports[port.0 as usize]),
            None => Route::Flood,
        }
    }

    fn learn(&mut self, source: Mac, port: SwitchPort) {
        if let Some(known) = self.addresses.get_mut(&number(source)) {
            *known = port;
        } else if source.0[0] & GROUP == 0 && self.addresses.len() < MOST_ADDRESSES {
            self.addresses.insert(number(source), port);
        }
    }
}
