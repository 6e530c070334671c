//! A connection manager beside a NIC.

use std::time::Duration;

use doorbell_core::cm::{Config, ConnectionManager, Datagram};
use doorbell_core::connect::Route;
use doorbell_core::encap::PathId;
use doorbell_core::nic::{Nic, Seed};
use doorbell_core::time::Time;
use doorbell_core::wire::CaGuid;

/// A node's connection manager, with the configuration from which it is made again when the node
/// restarts.
pub(crate) struct Manager {
    pub(crate) own: ConnectionManager<Route>,
    pub(crate) config: Config,
    /// A datagram for which the NIC had no room.
    waits: Option<Datagram<Route>>,
}

impl Manager {
    pub(crate) fn new(config: Config, seed: u64) -> Self {
        let own = ConnectionManager::new(config.clone(), Seed::from_number(seed));
        Self { own: own.expect("a configuration that can be"), config, waits: None }
    }

    /// Makes the manager of a restarted node: the same configuration with another GUID.
    pub(crate) fn anew(self, seed: u64) -> Self {
        let guid = CaGuid(self.config.guid.0.wrapping_add(1 << 32));
        Self::new(Config { guid, ..self.config }, seed)
    }

    /// Tells the manager the time, hands received datagrams to it, and its datagrams to the NIC as
    /// far as there is room. Paths are numbered as `number` says.
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

/// The configuration of a node's manager unless the caller changes it, with the GUID of an adapter
/// of its own.
pub(crate) fn default_config(node: usize) -> Config {
    let time_wait = Duration::from_millis(50);
    Config { time_wait, ..Config::new(CaGuid(0xDB00 + node as u64)) }
}
