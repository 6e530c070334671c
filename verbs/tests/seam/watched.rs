//! A device that lets a test watch what arrives, and that may pretend to take smaller packets.

use std::collections::HashSet;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use doorbell_core::encap::{Full, Path, PathId};
use doorbell_core::nic::{Inbox, Outbox, Way};
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::{Headers, PathMtu};
use doorbell_transports::{Address, Capabilities, Device, ReachError, Statistics};

/// The threads that have received from the device.
pub type Threads = Arc<Mutex<HashSet<ThreadId>>>;

/// A watcher of the device.
pub trait Watches: Send + 'static {
    /// Receives from the device inside.
    fn receive(&mut self, device: &mut impl Device, inbox: &mut impl Inbox) -> usize;
}

impl Watches for Threads {
    fn receive(&mut self, device: &mut impl Device, inbox: &mut impl Inbox) -> usize {
        self.lock().expect("nobody panics here").insert(thread::current().id());
        device.receive(inbox)
    }
}

pub struct Watched<D, W = Threads> {
    inside: D,
    watches: W,
    capabilities: Capabilities,
}

impl<D: Device, W: Watches> Watched<D, W> {
    pub fn by(watches: W, inside: D) -> Self {
        let capabilities = *inside.capabilities();
        Self { inside, watches, capabilities }
    }
}

impl<D: Device> Watched<D> {
    pub fn new(inside: D) -> (Self, Threads) {
        let threads = Threads::default();
        (Self::by(threads.clone(), inside), threads)
    }

    /// Wraps a device so that it takes packets of at most `mtu`.
    pub fn taking(inside: D, mtu: PathMtu) -> Self {
        let mut own = Self::new(inside).0;
        own.capabilities.mtu = mtu;
        own
    }
}

impl<D: Device, W: Watches> Outbox for Watched<D, W> {
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        self.inside.push(path, headers, payload)
    }

    fn prepare(&mut self, path: PathId) {
        self.inside.prepare(path);
    }

    fn flush(&mut self) {
        self.inside.flush();
    }

    fn delivered(&mut self, path: PathId) -> u64 {
        self.inside.delivered(path)
    }
}

impl<D: Device, W: Watches> Device for Watched<D, W> {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn receive(&mut self, inbox: &mut impl Inbox) -> usize {
        self.watches.receive(&mut self.inside, inbox)
    }

    fn settle(&mut self, owes: impl Fn(PathId) -> bool) {
        self.inside.settle(owes);
    }

    fn now(&self) -> Time {
        self.inside.now()
    }

    fn address(&self) -> &Address {
        self.inside.address()
    }

    fn reach(&mut self, peer: &Address) -> Result<Option<Way>, ReachError> {
        self.inside.reach(peer)
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.inside.readiness()
    }

    fn arm(&mut self, until: Option<Time>) -> io::Result<()> {
        self.inside.arm(until)
    }

    fn disarm(&mut self) {
        self.inside.disarm();
    }

    fn statistics(&mut self) -> Statistics {
        self.inside.statistics()
    }
}
