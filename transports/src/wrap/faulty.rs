//! Faults, by a seed.
//!
//! They strike packets as they arrive. What is held back is copied to memory that was set aside
//! when the wrapper was made.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fmt;
use std::io;
use std::time::Duration;

use doorbell_core::encap::{Full, Host, Outer, Path, PathId};
use doorbell_core::nic::{Flow, Inbox, Outbox};
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::{Headers, Malformed, Packet};
use thiserror::Error;

use super::leave_to_inside;
use super::luck::Luck;
use crate::device::Device;

/// What happens to packets: each fault with its probability from 0 to 1, and the times.
///
/// What strikes a packet depends on the seed and on how many came before, not on the other faults,
/// except that what is lost is struck by nothing else.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Faults {
    /// The packet is lost.
    pub loss: f64,
    /// A second copy of it comes later.
    pub duplication: f64,
    /// It is damaged on the way: its ICRC does not hold, and the inbox hears of something
    /// malformed.
    pub corruption: f64,
    /// It is held back, so that later ones may overtake it.
    pub reordering: f64,
    /// The longest time that a second copy comes later.
    pub duplication_delay: Duration,
    /// The longest time that a packet is held back.
    pub reordering_delay: Duration,
    /// How much later every packet comes.
    pub delay: Duration,
}

impl Faults {
    /// Nothing happens. If only a probability is changed, times are up to 100 µs.
    pub const NONE: Self = Self {
        loss: 0.0,
        duplication: 0.0,
        corruption: 0.0,
        reordering: 0.0,
        duplication_delay: Duration::from_micros(100),
        reordering_delay: Duration::from_micros(100),
        delay: Duration::ZERO,
    };

    /// The faults with a probability.
    fn probabilities(&self) -> [(&'static str, f64); 4] {
        [
            ("loss", self.loss),
            ("duplication", self.duplication),
            ("corruption", self.corruption),
            ("reordering", self.reordering),
        ]
    }
}

/// [No faults](Faults::NONE).
impl Default for Faults {
    fn default() -> Self {
        Self::NONE
    }
}

/// Faults that can't be.
#[derive(Clone, Copy, PartialEq, Debug, Error)]
pub enum FaultsError {
    /// A probability is none.
    #[error("{fault} has a probability of {found}: it must be from 0 to 1")]
    NoProbability {
        /// The fault.
        fault: &'static str,
        /// What it was given.
        found: f64,
    },
    /// The device does not do that, and what stands above it relies on that.
    #[error(
        "{fault} of a {device} device, which is lossless: nothing above would notice; a delay is \
         the only fault that it can have"
    )]
    Lossless {
        /// The fault.
        fault: &'static str,
        /// The device's name.
        device: &'static str,
    },
}

/// How often each fault struck.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Struck {
    /// Packets lost.
    pub lost: u64,
    /// Packets that came twice.
    pub repeated: u64,
    /// Packets damaged.
    pub damaged: u64,
    /// Packets held back.
    pub held: u64,
    /// Packets that came before their time, since no more could be held.
    pub hurried: u64,
}

/// A device around a device, with faults.
pub struct Faulty<D> {
    inside: D,
    fate: Fate,
    held: Held,
}

impl<D: fmt::Debug> fmt::Debug for Faulty<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty").field("inside", &self.inside).finish_non_exhaustive()
    }
}

impl<D: Device> Faulty<D> {
    /// The most packets that are held at a time. Of more, the first to come are hurried.
    pub const MOST: usize = 1024;

    /// Has faults strike what the device receives.
    ///
    /// # Errors
    /// When a probability is none, or the device is lossless and the fault is more than a delay.
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
        let fate = Fate { faults, luck: Luck::new(seed), struck: Struck::default() };
        Ok(Self { inside, fate, held })
    }

    /// How often each fault has struck.
    pub fn struck(&self) -> Struck {
        Struck { hurried: self.held.hurried, ..self.fate.struck }
    }

    /// The device inside.
    pub fn into_inside(self) -> D {
        self.inside
    }
}

/// What decides.
struct Fate {
    faults: Faults,
    luck: Luck,
    struck: Struck,
}

/// What is decided of a packet.
struct Decision {
    damaged: bool,
    /// How much later it comes.
    later: Duration,
    /// How much later than that it comes once more.
    again: Option<Duration>,
}

impl Fate {
    /// Draws for every fault, so that one does not change another's luck; nothing, if it is lost.
    fn decide(&mut self) -> Option<Decision> {
        let Self { faults, luck, struck } = self;
        let mut time = |strikes: bool, most: Duration| {
            let nanos = luck.up_to(most.as_nanos().try_into().unwrap_or(u64::MAX));
            strikes.then_some(Duration::from_nanos(nanos))
        };
        let (one, other) =
            (time(true, faults.duplication_delay), time(true, faults.reordering_delay));
        let again = luck.strikes(faults.duplication).then_some(one).flatten();
        let back = luck.strikes(faults.reordering).then_some(other).flatten();
        let damaged = luck.strikes(faults.corruption);
        if luck.strikes(faults.loss) {
            struck.lost += 1;
            return None;
        }
        struck.repeated += u64::from(again.is_some());
        struck.damaged += u64::from(damaged);
        struck.held += u64::from(back.is_some());
        let later = faults.delay.saturating_add(back.unwrap_or_default());
        Some(Decision { damaged, later, again })
    }
}

impl Fate {
    /// What is said of a damaged packet.
    fn damage(&mut self) -> Malformed {
        let expected = self.luck.draw() as u32;
        Malformed::Icrc { found: !expected, expected }
    }
}

/// Packets that wait for their time, in memory that was set aside.
struct Held {
    queue: BinaryHeap<Reverse<Waiting>>,
    /// The payloads' places, and those that are free.
    places: Box<[u8]>,
    free: Vec<usize>,
    place: usize,
    /// How many were ever held: of two with the same time, the one that came first goes first.
    count: u64,
    hurried: u64,
}

/// What waits, in the order of its time.
struct Waiting {
    due: Time,
    number: u64,
    what: Event,
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}

/// What the inbox will hear.
enum Event {
    Packet { from: From, headers: Headers, place: usize, len: usize },
    Gone(PathId),
}

/// A [`Flow`] that can be kept.
#[derive(Clone, Copy)]
enum From {
    Link(PathId),
    Network(u64, Outer),
}

impl Held {
    fn new(mtu: usize, most: usize) -> Self {
        Self {
            queue: BinaryHeap::with_capacity(most),
            places: vec![0; mtu * most].into(),
            free: (0..most).collect(),
            place: mtu,
            count: 0,
            hurried: 0,
        }
    }

    /// The earliest time at which something is to be heard.
    fn due(&self) -> Option<Time> {
        self.queue.peek().map(|Reverse(first)| first.due)
    }

    /// Keeps something until its time. If there is no room, the first that waits is heard now.
    fn keep(&mut self, due: Time, what: Event, inbox: &mut impl Inbox) {
        if self.queue.len() == self.queue.capacity() {
            self.hurried += 1;
            self.let_go(inbox);
        }
        self.queue.push(Reverse(Waiting { due, number: self.count, what }));
        self.count += 1;
    }

    /// Keeps a copy of a packet until its time.
    fn keep_packet<P: Payload>(
        &mut self,
        due: Time,
        flow: Flow<'_>,
        packet: &Packet<P>,
        inbox: &mut impl Inbox,
    ) {
        let len = packet.payload.len();
        if len > self.place {
            // Larger than the device says that packets are: somebody else will refuse it.
            return inbox.packet(flow, packet);
        }
        let place = loop {
            match self.free.pop() {
                Some(place) => break place,
                None => {
                    self.hurried += 1;
                    self.let_go(inbox);
                }
            }
        };
        packet.payload.copy_to(&mut self.places[place * self.place..][..len]);
        let from = match flow {
            Flow::Link(link) => From::Link(link),
            Flow::Network(number, outer) => From::Network(number, *outer),
        };
        self.keep(due, Event::Packet { from, headers: packet.headers, place, len }, inbox);
    }

    /// Has the inbox hear the first that waits.
    fn let_go(&mut self, inbox: &mut impl Inbox) {
        match self.queue.pop() {
            Some(Reverse(Waiting {
                what: Event::Packet { from, headers, place, len }, ..
            })) => {
                let payload = &self.places[place * self.place..][..len];
                let flow = match &from {
                    From::Link(link) => Flow::Link(*link),
                    From::Network(number, outer) => Flow::Network(*number, outer),
                };
                inbox.packet(flow, &Packet { headers, payload });
                self.free.push(place);
            }
            Some(Reverse(Waiting { what: Event::Gone(link), .. })) => inbox.gone(link),
            None => {}
        }
    }

    /// Has the inbox hear all whose time has come; how many those are.
    fn let_go_until(&mut self, now: Time, inbox: &mut impl Inbox) -> usize {
        let mut count = 0;
        while self.due().is_some_and(|due| due <= now) {
            self.let_go(inbox);
            count += 1;
        }
        count
    }
}

/// The inbox that the device inside sees.
struct Judge<'a, I> {
    inbox: &'a mut I,
    fate: &'a mut Fate,
    held: &'a mut Held,
    now: Time,
}

impl<I: Inbox> Inbox for Judge<'_, I> {
    fn packet<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>) {
        let Some(Decision { damaged, later, again }) = self.fate.decide() else { return };
        let due = self.now + later;
        if let Some(again) = again {
            self.held.keep_packet(due + again, flow, packet, self.inbox);
        }
        if damaged {
            self.inbox.malformed(self.fate.damage());
        } else if later.is_zero() {
            self.inbox.packet(flow, packet);
        } else {
            self.held.keep_packet(due, flow, packet, self.inbox);
        }
    }

    fn malformed(&mut self, why: Malformed) {
        self.inbox.malformed(why);
    }

    fn gone(&mut self, link: PathId) {
        // Behind what came from there before.
        if self.held.queue.is_empty() {
            self.inbox.gone(link);
        } else {
            let due = self.now + self.fate.faults.delay;
            self.held.keep(due, Event::Gone(link), self.inbox);
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

    /// What is held may be a refusal: nothing is known to be delivered until it was heard.
    #[inline]
    fn delivered(&mut self, path: PathId) -> u64 {
        match self.held.queue.is_empty() {
            true => self.inside.delivered(path),
            false => 0,
        }
    }
}

impl<D: Device> Device for Faulty<D> {
    fn receive(&mut self, inbox: &mut impl Inbox) -> usize {
        let Self { inside, fate, held } = self;
        let now = inside.now();
        let due = held.let_go_until(now, inbox);
        due + inside.receive(&mut Judge { inbox, fate, held, now })
    }

    /// What is held has not been taken by anybody: whoever sent it hears when it is.
    fn settle(&mut self, owes: impl Fn(PathId) -> bool) {
        if self.held.queue.is_empty() {
            self.inside.settle(owes);
        }
    }

    fn arm(&mut self, until: Option<Time>) -> io::Result<()> {
        let earlier = self.held.due().into_iter().chain(until).min();
        self.inside.arm(earlier)
    }

    leave_to_inside!(capabilities now address reach readiness disarm trouble statistics grants);
}
