//! A device that takes the place of one that was closed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use doorbell_core::encap::{Full, Path, PathId};
use doorbell_core::nic::{Inbox, Outbox, Way};
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::Headers;
use doorbell_transports::{Address, Capabilities, Device, ReachError, Statistics};

/// A device that was closed: it receives nothing, and drops what is sent. Handles to a NIC that was
/// closed end here.
pub(crate) struct Closed {
    capabilities: Capabilities,
    address: Address,
    statistics: Statistics,
    /// The time of the closed device, and the system's clock, when it was closed.
    since: (Time, Instant),
    /// A pair of sockets on which nobody writes, so that the device is never readable.
    readiness: [UnixStream; 2],
}

impl Closed {
    /// Makes the device that takes the place of `device`.
    ///
    /// # Errors
    /// Returns an error when the process has no descriptors left.
    pub fn in_place_of(device: &mut impl Device) -> io::Result<Self> {
        Ok(Self {
            capabilities: *device.capabilities(),
            address: device.address().clone(),
            statistics: device.statistics(),
            since: (device.now(), Instant::now()),
            readiness: UnixStream::pair()?.into(),
        })
    }
}

impl Outbox for Closed {
    fn push(&mut self, _: &Path, _: Headers, _: impl Payload) -> Result<u64, Full> {
        Ok(0)
    }

    fn flush(&mut self) {}

    fn delivered(&mut self, _: PathId) -> u64 {
        0
    }
}

impl Device for Closed {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn receive(&mut self, _: &mut impl Inbox) -> usize {
        0
    }

    fn now(&self) -> Time {
        let (then, since) = self.since;
        then + since.elapsed()
    }

    fn address(&self) -> &Address {
        &self.address
    }

    fn reach(&mut self, peer: &Address) -> Result<Option<Way>, ReachError> {
        let source = io::Error::new(io::ErrorKind::NotConnected, "the NIC here is closed");
        Err(ReachError::System { address: peer.clone(), source })
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.readiness[0].as_fd()
    }

    fn arm(&mut self, _: Option<Time>) -> io::Result<()> {
        Ok(())
    }

    fn disarm(&mut self) {}

    fn statistics(&mut self) -> Statistics {
        self.statistics
    }
}
