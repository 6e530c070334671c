//! A connection manager beside a NIC.

use std::time::Duration;

use doorbell_core::cm::{Config, ConnectionManager, Datagram};
use doorbell_core::connect::Route;
use doorbell_core::encap::PathId;
use doorbell_core::nic::{Nic, Seed};
use doorbell_core::time::Time;
use doorbell_core::wire::CaGuid;

/// A node's connection manager, and how it was made, for when the node begins anew.
pub(crate) struct Manager {
    pub(crate) own: ConnectionManager<Route>,
    pub(crate) config: Config,
    /// What the NIC had no room for.
    waits: Option<Datagram<Route>>,
}

impl Manager {
    pub(crate) fn new(config: Config, seed: u64) -> Self {
        let own = ConnectionManager::new(config.clone(), Seed::from_number(seed));
        Self { own: own.expect("a configuration that can be"), config, waits: None }
    }

    /// What begins anew in its place: as it was made, but for a GUID of its own.
    pub(crate) fn anew(self, seed: u64) -> Self {
        let guid = CaGuid(self.config.guid.0.wrapping_add(1 << 32));
        Self::new(Config { guid, ..self.config }, seed)
    }

    /// Tells the time, and hands over what has come and what is to be sent, as far as there is
    /// room. Paths are numbered as `number` says.
    pub(crate) fn turn(&mut self, nic: &mut Nic, now: Time, number: impl Fn(&Route) -> PathId) {
        self.own.advance(now);
        while let Some(received) = nic.management() {
            self.own.receive(&Route::back(&received), &received.bytes);
        }
        while let Some(datagram) = self.waits.take().or_else(|| self.own.transmit()) {
            let path = datagram.way.path(number(&datagram.way));
            if nic.manage(path, datagram.bytes).is_err() {
                self.waits = Some(datagram);
                break;
            }
        }
    }
}

/// As a node's is made unless told otherwise: of an adapter of its own, the process that the NICs
/// of a fabric customarily are.
pub(crate) fn customary(node: usize) -> Config {
    let time_wait = Duration::from_millis(50);
    Config { time_wait, ..Config::new(CaGuid(0xDB00 + node as u64)) }
}
