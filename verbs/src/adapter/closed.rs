//! A NIC whose device is closed, for whoever still has a handle to the NIC.

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

use crate::progress::Shared;

/// A device in the place of one that was closed: nothing comes by it, and what is sent is lost.
pub(crate) struct Closed {
    capabilities: Capabilities,
    address: Address,
    statistics: Statistics,
    /// The time of the device that was closed, when that was.
    since: (Time, Instant),
    /// Never readable: nobody writes to the other end.
    readiness: [UnixStream; 2],
}

impl Closed {
    /// What takes a device's place.
    ///
    /// # Errors
    /// When there are no descriptors left.
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

impl Shared {
    /// Ends all connections, of which peers are told, and closes the device, whose address is free
    /// when this returns. Whoever still has a handle to the NIC has one that reaches nobody.
    ///
    /// Where that can't be done, the device is closed with the last handle instead: by a thread
    /// that has the NIC in hand, as one that runs a handler may, or when no descriptor is left.
    pub fn close(&self) {
        if self.duty.is_mine() {
            return;
        }
        let mut machine = self.duty.claim();
        machine.catch_up();
        machine.control().end_all();
        self.pay(&mut machine);
        match machine.close() {
            Ok(closed) => *machine = closed,
            Err(why) => tracing::debug!(%why, "the device stays open until the NIC is let go"),
        }
        self.release(machine);
        self.bystanders.wake_all();
    }
}
