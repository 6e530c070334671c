//! A simulated network with devices at its stations, all in one virtual time.
//!
//! `passing` lets time pass while programs of Tokio run.

#[cfg(feature = "tokio")]
mod passing;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use doorbell_core::encap::{Full, Path, PathId, Version};
use doorbell_core::nic::{Inbox, Outbox, Way};
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::{Headers, PathMtu};
use doorbell_transports::{Address, Burst, Capabilities, Device, ReachError, Statistics};

use crate::ids::{LinkId, StationId};
use crate::network::{Event, Network};
use crate::parts::config::LinkConfig;
use crate::station::addressing::path_between;
use crate::station::port::Port;
use crate::sys::Bell;
#[cfg(feature = "tokio")]
pub use passing::{passes, passing, passing_in_steps};

/// The frames that may wait at a station until its device takes them. More frames are dropped, and
/// counted. On a lossless network, the frames that may be on their way to one peer, beyond which
/// the device is full.
const ROOM: usize = 1024;

/// The longest frame of the network.
const LONGEST: usize = 4096 + 128;

/// A [`Network`] with [`Station`]s as devices, whose time passes only when a caller lets it.
///
/// Time passes by [`step`](Self::step): called by hand, or in a task of the runtime that also runs
/// the programs above the devices, or [for as long as there are devices](Self::drive) on a thread
/// of its own. If everything runs on one thread, the same seed gives the same run.
///
/// ```
/// use doorbell_core::encap::Version;
/// use doorbell_simulation::{Ether, LinkConfig, Network};
/// use doorbell_transports::Device;
///
/// let mut network = Network::new(1);
/// let (a, b) = (network.station(), network.station());
/// network.link(a, b, LinkConfig { mtu: 4200, ..LinkConfig::default() });
/// let ether = Ether::new(network, Version::V2Ipv6, false);
/// let (mut a, b) = (ether.station(a).unwrap(), ether.station(b).unwrap());
/// assert!(a.reach(b.address()).unwrap().is_some());
/// ```
#[derive(Clone)]
pub struct Ether {
    shared: Arc<Shared>,
    version: Version,
    lossless: bool,
}

struct Shared {
    state: Mutex<EtherState>,
    /// Signalled when a device sends, sleeps or is dropped.
    news: Condvar,
}

struct EtherState {
    network: Network,
    slots: Vec<Option<DeviceSlot>>,
}

/// The network's side of a device: the frames that wait for the device, and its sleep.
struct DeviceSlot {
    arrived: VecDeque<Vec<u8>>,
    /// The number of frames in `arrived`, which the device reads without the lock.
    count: Arc<AtomicUsize>,
    room: usize,
    overrun: u64,
    bell: Arc<Bell>,
    armed: bool,
    rung: bool,
}

impl DeviceSlot {
    fn ring(&mut self) {
        if self.armed && !self.rung {
            self.rung = true;
            self.bell.ring();
        }
    }

    fn sleeps(&self) -> bool {
        self.armed && !self.rung
    }
}

impl Shared {
    /// Locks the network, even if a thread has panicked while it held the lock.
    fn state(&self) -> MutexGuard<'_, EtherState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reason why no time has passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Still {
    /// A device is awake, and its program may do something yet at this moment.
    Awake,
    /// The network has no more events, or none before the time that was given.
    Nothing,
    /// The network has no devices any more.
    Deserted,
}

/// The condition under which time may pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// Time passes when all devices are asleep: then all programs have done what they do at this
    /// moment.
    Asleep,
    /// Time passes without a condition: programs count as being as slow as the network is fast.
    Always,
}

impl Ether {
    /// Makes an ether with two stations at the ends of a cable. All chance comes from `seed`.
    pub fn cabled(
        seed: u64,
        cable: LinkConfig,
        version: Version,
        lossless: bool,
    ) -> (Self, LinkId, [StationId; 2]) {
        let mut network = Network::new(seed);
        let stations = [network.station(), network.station()];
        let link = network.link(stations[0], stations[1], cable);
        (Self::new(network, version, lossless), link, stations)
    }

    /// Makes an ether of a network with its cables. Without `lossless`, the devices speak RoCE of
    /// `version`. With `lossless`, the network must lose nothing, and the devices tell what was
    /// delivered.
    pub fn new(network: Network, version: Version, lossless: bool) -> Self {
        let state = Mutex::new(EtherState { network, slots: Vec::new() });
        Self { shared: Arc::new(Shared { state, news: Condvar::new() }), version, lossless }
    }

    /// Makes the device at a station that has none, or none any more.
    ///
    /// # Errors
    /// When the system has no descriptor left for the device's readiness.
    ///
    /// # Panics
    /// When the station has a device already.
    pub fn station(&self, station: StationId) -> io::Result<Station> {
        // On a lossless network, senders are held back instead.
        let room = if self.lossless { usize::MAX } else { ROOM };
        let (bell, count) = (Arc::new(Bell::new()?), Arc::new(AtomicUsize::new(0)));
        let slot = DeviceSlot {
            arrived: VecDeque::new(),
            count: count.clone(),
            room,
            overrun: 0,
            bell: bell.clone(),
            armed: false,
            rung: false,
        };
        let mut state = self.shared.state();
        let slots = state.slots.len().max(station.index() + 1);
        state.slots.resize_with(slots, || None);
        let before = state.slots[station.index()].replace(slot);
        assert!(before.is_none(), "{station:?} has a device");
        drop(state);
        let mut port = Port::new(station.index(), self.version, self.lossless);
        (port.room, port.ahead) = (ROOM, ROOM as u64);
        Ok(Station {
            ether: self.clone(),
            station,
            port,
            bell,
            count,
            burst: Burst::new(),
            address: Address::Fabric(station.0),
            capabilities: Capabilities {
                name: "fabric",
                mtu: PathMtu::Mtu4096,
                encrypted_mtu: PathMtu::Mtu4096,
                run: 1,
                segmentation: false,
                checksum: false,
                lossless: self.lossless,
                mapping: false,
                simulated: true,
                labels: false,
                memory: ROOM * LONGEST,
            },
            statistics: Statistics::default(),
        })
    }

    /// Lends the network to a function, which cuts a cable, reads counters, begins to record …
    pub fn with<R>(&self, does: impl FnOnce(&mut Network) -> R) -> R {
        does(&mut self.shared.state().network)
    }

    /// The virtual time of the network.
    pub fn now(&self) -> Time {
        self.shared.state().network.now()
    }

    /// Goes on to the next event at a device, until `until` at most.
    ///
    /// # Errors
    /// When time may not pass, or nothing happens until then; in the latter case the time has
    /// become `until`.
    pub fn step(&self, pace: Pace, until: Time) -> Result<(), Still> {
        self.shared.state().step(pace, until)
    }

    /// Lets time pass on this thread for as long as there are devices. While nothing is to happen,
    /// this waits until a device does something.
    pub fn drive(&self, pace: Pace) {
        let mut state = self.shared.state();
        loop {
            // Without an event to come, time must not run ahead.
            let until = state.network.next_at().unwrap_or(state.network.now());
            match state.step(pace, until) {
                // Other threads want the lock, too.
                Ok(()) => {
                    drop(state);
                    std::thread::yield_now();
                    state = self.shared.state();
                }
                Err(Still::Deserted) => return,
                Err(_) if state.may_step(pace) && state.network.next_at().is_some() => {}
                Err(_) => {
                    let waited = self.shared.news.wait(state);
                    state = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

impl EtherState {
    fn may_step(&self, pace: Pace) -> bool {
        pace == Pace::Always || self.slots.iter().flatten().all(DeviceSlot::sleeps)
    }

    fn step(&mut self, pace: Pace, until: Time) -> Result<(), Still> {
        if self.slots.iter().flatten().next().is_none() {
            return Err(Still::Deserted);
        }
        if !self.may_step(pace) {
            return Err(Still::Awake);
        }
        loop {
            let (station, event) = self.network.step(until).ok_or(Still::Nothing)?;
            // The event of a station without a device is dropped.
            let Some(Some(slot)) = self.slots.get_mut(station.index()) else { continue };
            if let Event::Frame(frame) = event {
                if slot.arrived.len() == slot.room {
                    slot.overrun += 1;
                    return Ok(());
                }
                slot.arrived.push_back(frame);
                slot.count.store(slot.arrived.len(), Ordering::Release);
            }
            slot.ring();
            return Ok(());
        }
    }

    fn slot(&mut self, station: StationId) -> &mut DeviceSlot {
        self.slots[station.index()].as_mut().expect("a device has its slot until it is dropped")
    }
}

/// A device at a station of an [`Ether`].
pub struct Station {
    ether: Ether,
    station: StationId,
    port: Port,
    bell: Arc<Bell>,
    count: Arc<AtomicUsize>,
    burst: Burst,
    address: Address,
    capabilities: Capabilities,
    statistics: Statistics,
}

impl Station {
    fn state(&self) -> MutexGuard<'_, EtherState> {
        self.ether.shared.state()
    }
}

impl Outbox for Station {
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        self.port.push(path, headers, payload)
    }

    fn flush(&mut self) {
        if self.port.frames.is_empty() {
            return;
        }
        let mut state = self.ether.shared.state();
        for frame in self.port.frames.drain(..) {
            self.statistics.frames_sent += 1;
            self.statistics.packets_sent += 1;
            self.statistics.bytes_sent += frame.len() as u64;
            state.network.send(self.station, frame);
        }
        self.ether.shared.news.notify_all();
    }

    fn delivered(&mut self, path: PathId) -> u64 {
        self.port.delivered(path)
    }
}

impl Device for Station {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn receive(&mut self, inbox: &mut impl Inbox) -> usize {
        let Self { ether, station, port, count, burst, statistics, .. } = self;
        burst.take(|| {
            // A device that is polled all the time would keep other threads from the lock.
            if count.load(Ordering::Acquire) == 0 {
                return false;
            }
            let mut state = ether.shared.state();
            let slot = state.slot(*station);
            let Some(frame) = slot.arrived.pop_front() else { return false };
            count.store(slot.arrived.len(), Ordering::Release);
            drop(state);
            if port.arrive(&frame, inbox) {
                statistics.frames_received += 1;
                statistics.bytes_received += frame.len() as u64;
            } else {
                statistics.strangers += 1;
            }
            true
        })
    }

    fn settle(&mut self, owes: impl Fn(PathId) -> bool) {
        let Self { ether, station, port, .. } = self;
        port.settle(owes, |frame| {
            ether.shared.state().network.send(*station, frame);
            ether.shared.news.notify_all();
        });
    }

    fn now(&self) -> Time {
        self.ether.now()
    }

    fn address(&self) -> &Address {
        &self.address
    }

    fn reach(&mut self, peer: &Address) -> Result<Option<Way>, ReachError> {
        let address = || peer.clone();
        let &Address::Fabric(number) = peer else {
            let (address, takes) = (address(), "fabric:N");
            return Err(ReachError::Kind { address, device: "fabric", takes });
        };
        if number as usize >= self.state().network.stations.len() {
            let why = "the network has no such station";
            return Err(ReachError::Nobody { address: address(), why });
        }
        let way = path_between(self.ether.version, self.station.index(), number as usize);
        Ok(Some(match self.ether.lossless {
            true => Way::Link(way.id()),
            false => Way::Network(*way.outer()),
        }))
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn arm(&mut self, until: Option<Time>) -> io::Result<()> {
        self.statistics.sleeps += 1;
        let mut state = self.ether.shared.state();
        state.slot(self.station).armed = true;
        if until.is_some_and(|until| until <= state.network.now()) {
            state.slot(self.station).ring();
        } else {
            state.network.wake_at(self.station, until);
        }
        self.ether.shared.news.notify_all();
        Ok(())
    }

    fn disarm(&mut self) {
        let mut state = self.ether.shared.state();
        state.network.wake_at(self.station, None);
        let slot = state.slot(self.station);
        slot.armed = false;
        if std::mem::take(&mut slot.rung) {
            self.bell.silence();
        }
    }

    fn statistics(&mut self) -> Statistics {
        let overrun = self.state().slot(self.station).overrun;
        self.statistics.overrun = overrun;
        self.statistics
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        self.flush();
        let mut state = self.ether.shared.state();
        self.port.leave(|frame| state.network.send(self.station, frame));
        state.network.wake_at(self.station, None);
        state.slots[self.station.index()] = None;
        self.ether.shared.news.notify_all();
    }
}
