//! A device with faults, which a seed decides.
//!
//! Faults strike packets as they arrive. Packets that are held back are copied to memory that was
//! set aside when the wrapper was made.

use std::fmt;
use std::io;
use std::time::Duration;

use doorbell_core::encap::{Full, Host, Path, PathId};
use doorbell_core::nic::{Flow, Inbox, Outbox};
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::{Headers, Malformed, Packet};
use thiserror::Error;

use super::held::{Held, InboxEvent};
use super::inner::leave_to_inside;
use super::splitmix::SplitMix64;
use crate::device::Device;

/// The faults of a device: the probability of each, from 0 to 1, and times.
///
/// Which faults strike a packet depends on the seed and on how many packets came before, not on the
/// other faults, except that a lost packet is struck by nothing else.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Faults {
    /// The probability that a packet is lost.
    pub loss: f64,
    /// The probability that a second copy of a packet comes later.
    pub duplication: f64,
    /// The probability that a packet is damaged on the way: its ICRC is wrong, and the inbox hears
    /// of something malformed.
    pub corruption: f64,
    /// The probability that a packet is held back, so that later ones may overtake it.
    pub reordering: f64,
    /// The longest time by which a second copy comes later.
    pub duplication_delay: Duration,
    /// The longest time for which a packet is held back.
    pub reordering_delay: Duration,
    /// The time by which every packet comes later.
    pub delay: Duration,
}

impl Faults {
    /// No faults at all. Where only a probability is changed, times are up to 100 µs.
    pub const NONE: Self = Self {
        loss: 0.0,
        duplication: 0.0,
        corruption: 0.0,
        reordering: 0.0,
        duplication_delay: Duration::from_micros(100),
        reordering_delay: Duration::from_micros(100),
        delay: Duration::ZERO,
    };

    /// Returns the faults that have a probability, with their names.
    fn probabilities(&self) -> [(&'static str, f64); 4] {
        [
            ("loss", self.loss),
            ("duplication", self.duplication),
            ("corruption", self.corruption),
            ("reordering", self.reordering),
        ]
    }
}

impl Default for Faults {
    /// Returns faults that never strike: [`Faults::NONE`].
    fn default() -> Self {
        Self::NONE
    }
}

/// The error of faults that a device can't have.
#[derive(Clone, Copy, PartialEq, Debug, Error)]
pub enum FaultsError {
    /// A probability is not from 0 to 1.
    #[error("{fault} has a probability of {found}: it must be from 0 to 1")]
    NoProbability {
        /// The name of the fault.
        fault: &'static str,
        /// The number that was given.
        found: f64,
    },
    /// The device is lossless, and the NIC relies on that.
    #[error(
        "{fault} of a {device} device, which is lossless: nothing above would notice; a delay is \
         the only fault that it can have"
    )]
    Lossless {
        /// The name of the fault.
        fault: &'static str,
        /// The name of the device.
        device: &'static str,
    },
}

/// Counts of how often each fault has struck.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct FaultCounts {
    /// How many packets were lost.
    pub lost: u64,
    /// How many packets came twice.
    pub repeated: u64,
    /// How many packets were damaged.
    pub damaged: u64,
    /// How many packets were held back.
    pub held: u64,
    /// How many packets came before their time, since no more could be held.
    pub hurried: u64,
}

/// A device around a device, which has faults strike packets.
pub struct Faulty<D> {
    inside: D,
    source: FaultSource,
    held: Held,
}

impl<D: fmt::Debug> fmt::Debug for Faulty<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty").field("inside", &self.inside).finish_non_exhaustive()
    }
}

impl<D: Device> Faulty<D> {
    /// The most packets that are held at a time. With one more, the earliest comes before its time.
    pub const MOST: usize = 1024;

    /// Makes faults strike the packets that a device receives. The seed decides which.
    ///
    /// # Errors
    /// When a probability is not from 0 to 1, or the device is lossless and the fault is more than
    /// a delay.
    pub fn new(inside: D, faults: Faults, seed: u64) -> Result<Self, FaultsError> {
        let capabilities = inside.capabilities();
        for (fault, found) in faults.probabilities() {
            if !(0.0..=1.0).contains(&found) {
                return Err(FaultsError::NoProbability { fault, found });
            }
            if capabilities.lossless && found > 0.0 {
                return Err(FaultsError::Lossless { fault, device: capabilities.name });
            }
        }
        let held = Held::new(capabilities.mtu.bytes(), Self::MOST);
        let source =
            FaultSource { faults, random: SplitMix64::new(seed), counts: FaultCounts::default() };
        Ok(Self { inside, source, held })
    }

    /// Returns how often each fault has struck.
    pub fn counts(&self) -> FaultCounts {
        FaultCounts { hurried: self.held.hurried, ..self.source.counts }
    }

    /// Returns the device inside.
    pub fn into_inside(self) -> D {
        self.inside
    }
}

/// The faults, and the generator that decides which strike.
struct FaultSource {
    faults: Faults,
    random: SplitMix64,
    counts: FaultCounts,
}

/// The faults that strike a packet which is not lost.
struct Decision {
    damaged: bool,
    /// The time by which the packet comes later.
    later: Duration,
    /// The time after which a second copy follows.
    again: Option<Duration>,
}

impl FaultSource {
    /// Decides on the next packet; `None` if it is lost. Numbers are drawn for every fault, so that
    /// one fault does not change what happens by another.
    fn decide(&mut self) -> Option<Decision> {
        let Self { faults, random, counts } = self;
        let mut time = |strikes: bool, most: Duration| {
            let nanos = random.up_to(most.as_nanos().try_into().unwrap_or(u64::MAX));
            strikes.then_some(Duration::from_nanos(nanos))
        };
        let (one, other) =
            (time(true, faults.duplication_delay), time(true, faults.reordering_delay));
        let again = random.strikes(faults.duplication).then_some(one).flatten();
        let back = random.strikes(faults.reordering).then_some(other).flatten();
        let damaged = random.strikes(faults.corruption);
        if random.strikes(faults.loss) {
            counts.lost += 1;
            return None;
        }
        counts.repeated += u64::from(again.is_some());
        counts.damaged += u64::from(damaged);
        counts.held += u64::from(back.is_some());
        let later = faults.delay.saturating_add(back.unwrap_or_default());
        Some(Decision { damaged, later, again })
    }
}

impl FaultSource {
    /// Returns the error of a damaged packet.
    fn damage(&mut self) -> Malformed {
        let expected = self.random.draw() as u32;
        Malformed::Icrc { found: !expected, expected }
    }
}

/// The inbox that the device inside hands packets to.
struct FaultyInbox<'a, I> {
    inbox: &'a mut I,
    source: &'a mut FaultSource,
    held: &'a mut Held,
    now: Time,
}

impl<I: Inbox> Inbox for FaultyInbox<'_, I> {
    fn packet<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>) {
        let Some(Decision { damaged, later, again }) = self.source.decide() else { return };
        let due = self.now + later;
        if let Some(again) = again {
            self.held.keep_packet(due + again, flow, packet, self.inbox);
        }
        if damaged {
            self.inbox.malformed(self.source.damage());
        } else if later.is_zero() {
            self.inbox.packet(flow, packet);
        } else {
            self.held.keep_packet(due, flow, packet, self.inbox);
        }
    }

    #[inline]
    fn arrived(&mut self, at: Time) {
        self.inbox.arrived(at);
    }

    fn malformed(&mut self, why: Malformed) {
        self.inbox.malformed(why);
    }

    fn gone(&mut self, link: PathId) {
        // The inbox hears of the end behind the packets that came from there before.
        if self.held.is_empty() {
            self.inbox.gone(link);
        } else {
            let due = self.now + self.source.faults.delay;
            self.held.keep(due, InboxEvent::Gone(link), self.inbox);
        }
    }

    fn port_closed(&mut self, at: Host, quoted: &[u8]) {
        self.inbox.port_closed(at, quoted);
    }
}

impl<D: Device> Outbox for Faulty<D> {
    #[inline]
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        self.inside.push(path, headers, payload)
    }

    #[inline]
    fn prepare(&mut self, path: PathId) {
        self.inside.prepare(path);
    }

    #[inline]
    fn flush(&mut self) {
        self.inside.flush();
    }

    #[inline]
    fn time(&self) -> Option<Time> {
        self.inside.time()
    }

    /// Returns 0 while packets are held: one of them may be a refusal, so nothing is known to be
    /// delivered before the NIC has heard it.
    #[inline]
    fn delivered(&mut self, path: PathId) -> u64 {
        match self.held.is_empty() {
            true => self.inside.delivered(path),
            false => 0,
        }
    }
}

impl<D: Device> Device for Faulty<D> {
    fn receive(&mut self, inbox: &mut impl Inbox) -> usize {
        let Self { inside, source, held } = self;
        let now = inside.now();
        let due = held.let_go_until(now, inbox);
        due + inside.receive(&mut FaultyInbox { inbox, source, held, now })
    }

    /// Settles only when no packets are held: the NIC has not taken those, and their senders are
    /// told when it has.
    fn settle(&mut self, owes: impl Fn(PathId) -> bool) {
        if self.held.is_empty() {
            self.inside.settle(owes);
        }
    }

    fn arm(&mut self, until: Option<Time>) -> io::Result<()> {
        let earlier = self.held.due().into_iter().chain(until).min();
        self.inside.arm(earlier)
    }

    leave_to_inside!(capabilities now address reach readiness disarm trouble statistics grants);
}
