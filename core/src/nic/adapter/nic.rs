//! The NIC's tables: how they are made, and how they grow.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use crate::common::random::{Random, Seed};
use crate::common::timers::Timers;
use crate::nic::config::nic::{Config, Objects};
use crate::nic::config::numbering::{NumberingError, QpnLayout};
use crate::nic::counters::Counters;
use crate::nic::keep_alive::clock_jumps::ClockJumps;
use crate::nic::keep_alive::peers::Peers;
use crate::nic::protection::key_table::KeyTable;
use crate::nic::protection::mappings::Mappings;
use crate::nic::queues::doorbells::Doorbells;
use crate::nic::requests::work_request::ReceiveRequest;
use crate::nic::ring::EmptyRing;
use crate::nic::selective::held::HeldMemory;
use crate::nic::state::addresses::Addresses;
use crate::nic::state::common::Common;
use crate::nic::state::delivery_failures::DeliveryFailures;
use crate::nic::state::full_links::FullLinks;
use crate::nic::state::management::Mailbox;
use crate::nic::state::queue_pair::QueuePair;
use crate::time::Time;
use crate::wire::{Psn, Qpn};

/// A network adapter in software. See the [module](crate::nic).
pub struct Nic {
    pub(super) common: Common,
    pub(super) pairs: Vec<Option<Box<QueuePair>>>,
    /// Free places, in about the order in which they were left. One of the older half is taken at
    /// random: nobody can tell which, and a number is long out of use before it is used again.
    pub(super) free_places: VecDeque<u32>,
    /// How many queue pairs there may be. The tables grow up to that.
    pub(super) most_pairs: usize,
    pub(super) numbers: QpnLayout,
    pub(super) random: Random,
    pub(super) doorbells: Arc<Doorbells>,
    pub(super) domains: u32,
    /// The empty ring that queue pairs with a shared receive queue have instead of a receive queue
    /// of their own.
    pub(super) no_receives: EmptyRing<ReceiveRequest>,
    /// The numbers of timers that have expired, while they are handled.
    pub(super) fired_timers: Vec<u32>,
    /// The time from which the next ICMP message about a closed port is processed.
    pub(super) port_closed_again: Time,
    /// Where packets are opened that are encrypted; empty until one comes.
    pub(super) opened: Box<[u8]>,
}

impl fmt::Debug for Nic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nic").field("objects", &self.objects()).finish_non_exhaustive()
    }
}

/// Returns the queue pair of a number, if there is one.
#[inline]
pub(crate) fn find(
    pairs: &mut [Option<Box<QueuePair>>],
    numbers: QpnLayout,
    qpn: Qpn,
) -> Option<&mut QueuePair> {
    pairs.get_mut(numbers.place(qpn))?.as_deref_mut().filter(|pair| pair.number() == qpn)
}

impl Nic {
    /// Makes a NIC with empty tables.
    ///
    /// # Errors
    /// When the numbering is not possible.
    pub fn new(config: Config, seed: Seed) -> Result<Self, NumberingError> {
        let mut random = Random::new(seed);
        let numbers = QpnLayout::new(config.numbering, config.queue_pairs)?;
        // Errors show this number, so it must tell nothing about queue pair numbers.
        let nic = random.u32();
        let most = config.queue_pairs.clamp(1, numbers.capacity());
        let mut made = Self {
            common: Common {
                now: Time::ZERO,
                arrived: Time::ZERO,
                clock_jumps: ClockJumps::default(),
                nic,
                lossless: config.lossless,
                splits_writes: config.runs && !config.lossless,
                keys: KeyTable::new(config.registrations),
                mapped: Mappings::default(),
                completions: Vec::new(),
                counters: Counters::default(),
                timers: Timers::new(0),
                peers: Peers::new(config.keep_alive),
                sendable: VecDeque::new(),
                gone_links: Vec::new(),
                starved: Vec::new(),
                delaying: Vec::new(),
                owing: VecDeque::new(),
                delivery_failures: DeliveryFailures::default(),
                device_was_full: false,
                full_links: FullLinks::default(),
                awaiting_delivery: Vec::new(),
                events: VecDeque::new(),
                shared_receives: Vec::new(),
                addresses: Addresses::new(nic),
                most_addresses: config.addresses,
                management: Mailbox::default(),
                held: HeldMemory::new(config.held_packets),
            },
            pairs: Vec::new(),
            free_places: VecDeque::new(),
            most_pairs: most,
            numbers,
            random,
            doorbells: Arc::new(Doorbells::new(most)),
            domains: 0,
            no_receives: EmptyRing::new(),
            fired_timers: Vec::new(),
            port_closed_again: Time::ZERO,
            opened: Box::default(),
        };
        made.grow(most.min(FIRST_PLACES));
        Ok(made)
    }
}

/// How many places for queue pairs a NIC begins with. There are this many, since places are drawn
/// at random, and their bits are among those that strangers have to guess.
pub(crate) const FIRST_PLACES: usize = 2048;

impl Nic {
    /// Makes room for twice as many queue pairs if less than a quarter of the places are free, up
    /// to the most that there may be.
    pub(crate) fn grow_if_crowded(&mut self) {
        let places = self.pairs.len();
        if self.free_places.len() < places / 4 || self.free_places.is_empty() {
            self.grow(places.saturating_mul(2).min(self.most_pairs));
        }
    }

    /// Makes the tables hold `places` queue pairs, if they hold fewer.
    pub(crate) fn grow(&mut self, places: usize) {
        let Self { common, pairs, free_places, numbers, doorbells, fired_timers, .. } = self;
        let before = pairs.len();
        if places <= before {
            return;
        }
        pairs.resize_with(places, || None);
        let fresh = before as u32..places as u32;
        free_places.extend(fresh.filter(|&place| numbers.can_number(place)));
        doorbells.use_up_to(places);
        common.timers.grow(2 * places);
        fired_timers.reserve(places.saturating_sub(fired_timers.len()));
        common.make_room(places);
    }

    /// How many queue pairs there may be.
    pub fn most_queue_pairs(&self) -> usize {
        self.most_pairs
    }

    /// How many objects of each kind there are.
    pub fn objects(&self) -> Objects {
        let common = &self.common;
        Objects {
            queue_pairs: self.pairs.iter().flatten().count(),
            completion_queues: common.completions.iter().flatten().count(),
            shared_receive_queues: common.shared_receives.iter().flatten().count(),
            registrations: common.keys.len(),
            addresses: common.addresses.len(),
            hosts: common.peers.len(),
        }
    }

    /// Draws a first sequence number that nobody can guess.
    pub fn first_psn(&mut self) -> Psn {
        Psn::new(self.random.u32())
    }

    /// The counters of everything that the NIC has done so far.
    pub fn counters(&self) -> &Counters {
        &self.common.counters
    }
}
