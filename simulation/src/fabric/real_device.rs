//! Real devices of a fabric, with the packets that are under way between them, and their time.

use std::collections::BTreeMap;
use std::time::Duration;

use doorbell_core::encap::{Full, Path, PathId};
use doorbell_core::nic::Outbox;
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::Headers;
use doorbell_transports::{AnyDevice, Clock};

/// The time of a fabric over real devices: the clock's time, and the idle times that were skipped.
pub(crate) struct RealTime {
    pub(crate) clock: Clock,
    /// The sum of all idle times that were skipped.
    pub(crate) skipped: Duration,
    /// The time at which something has arrived last.
    pub(crate) last: Time,
    pub(crate) next: usize,
    /// The packets that count as lost, since they were awaited for too long.
    pub(crate) forgotten: u64,
}

impl RealTime {
    pub(crate) fn now(&self) -> Time {
        self.clock.now() + self.skipped
    }
}

/// A node's device, with the counts of packets through it.
pub(crate) struct RealDevice {
    pub(crate) device: AnyDevice,
    /// The paths to all nodes. The node's path to itself is never used.
    pub(crate) paths: Vec<Path>,
    /// The last ticket of each lossless link, and the last ticket that was delivered when the NIC
    /// was about to collect.
    pub(crate) tickets: BTreeMap<u32, (u64, u64)>,
    pub(crate) arrived: u64,
}

impl RealDevice {
    pub(crate) fn path(&self, to: usize) -> Path {
        self.paths[to].in_the_clear()
    }

    /// Asks the device which tickets were delivered. Returns whether there are more than before.
    pub(crate) fn hear(&mut self) -> bool {
        let mut news = false;
        for (&path, (_, delivered)) in &mut self.tickets {
            let before = std::mem::replace(delivered, self.device.delivered(PathId(path)));
            news |= *delivered != before;
        }
        news
    }
}

impl Outbox for RealDevice {
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        let ticket = self.device.push(path, headers, payload)?;
        self.tickets.entry(path.id().0).or_default().0 = ticket;
        Ok(ticket)
    }

    fn prepare(&mut self, path: PathId) {
        self.device.prepare(path);
    }

    fn flush(&mut self) {
        self.device.flush();
    }

    fn delivered(&mut self, path: PathId) -> u64 {
        self.device.delivered(path)
    }
}
