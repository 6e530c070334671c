//! Destinations of datagrams.

use std::fmt;
use std::sync::Arc;

use doorbell_core::connect::Route;
use doorbell_core::nic::{AddressId, Data};
use doorbell_core::wire::{Qkey, Qpn};

use crate::connect::reach;
use crate::control::ControlOp;
use crate::error::ConnectError;
use crate::link::Way;
use crate::nic::{Nic, find};
use crate::work::Datagram;

/// The destination of datagrams: a queue pair, its key, and the route to its NIC.
///
/// Clones are handles to the same destination. The last of them must be kept until the datagrams
/// that were sent there have completed: an uncompleted one breaks its queue pair.
#[derive(Clone, Debug)]
pub struct Destination(Arc<Known>);

struct Known {
    nic: Nic,
    address: AddressId,
    way: Way,
    qpn: Qpn,
    qkey: Qkey,
}

impl Destination {
    pub(crate) fn named(&self) -> (AddressId, Qpn, Qkey) {
        (self.0.address, self.0.qpn, self.0.qkey)
    }

    /// Returns the number of the queue pair.
    pub fn qpn(&self) -> Qpn {
        self.0.qpn
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {:?}", self.qpn, self.nic)
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        self.nic.engine().submit(ControlOp::DropAddress(self.address, self.way.clone()));
    }
}

impl Nic {
    /// Makes a destination from the address of a NIC, and the number and key of a queue pair. The
    /// address may name a host, as for a [connection](crate::Unconnected::connect).
    ///
    /// # Errors
    /// Returns an error when the address can't be reached, the host's name is not known, or the NIC
    /// has no room for another destination.
    pub async fn destination(
        &self,
        to: &str,
        qpn: Qpn,
        qkey: Qkey,
    ) -> Result<Destination, ConnectError> {
        let address = find(self.address(), to).await?;
        let way = Arc::new(Route::new(reach(self, &address).await?));
        self.destination_by(way, qpn, qkey)
    }

    pub(super) fn destination_by(
        &self,
        way: Way,
        qpn: Qpn,
        qkey: Qkey,
    ) -> Result<Destination, ConnectError> {
        let address = self.engine().with(|adapter| adapter.control().address(&way))?;
        Ok(Destination(Arc::new(Known { nic: self.clone(), address, way, qpn, qkey })))
    }
}

impl Datagram {
    /// Makes a request to send `data` as one packet. The destination must be kept until the request
    /// completes.
    #[inline]
    pub fn new(data: impl Into<Data>, to: &Destination) -> Self {
        Self::to(to.named(), data.into())
    }
}
