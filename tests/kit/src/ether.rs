//! A simulated network as devices have it: each at a station, all in one virtual time.

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

use crate::network::{Event, Network, StationId};
use crate::port::Port;
use crate::sys::Bell;
use crate::ways::way;

/// How many frames wait at a station for its device to take them; more are dropped, and counted.
/// Where none may be lost, so many are on their way to one peer, and then the device is full.
const ROOM: usize = 1024;

/// The longest frame that there is.
const LONGEST: usize = 4096 + 128;

/// A [`Network`] with [`Station`]s at it, whose time passes when somebody lets it.
///
/// To let time pass is [`step`](Self::step): by hand, or as a task of the same runtime as the
/// programs above the devices, or [for as long as there are devices](Self::drive) on a thread of
/// its own. Where everybody who runs is on one thread, the same seed gives the same run.
///
/// ```
/// use doorbell_core::encap::Version;
/// use doorbell_kit::{Ether, LinkConfig, Network};
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
    world: Mutex<World>,
    /// Told when somebody sends, sleeps, or leaves.
    news: Condvar,
}

struct World {
    network: Network,
    seats: Vec<Option<Seat>>,
}

/// What the network keeps for a device.
struct Seat {
    arrived: VecDeque<Vec<u8>>,
    /// How many that are, for whoever looks without taking the lock.
    count: Arc<AtomicUsize>,
    room: usize,
    overrun: u64,
    bell: Arc<Bell>,
    armed: bool,
    rung: bool,
}

impl Seat {
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
    /// What somebody panicked over is still a network.
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why no time has passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Still {
    /// Somebody is awake, and may do something yet at this moment.
    Awake,
    /// Nothing happens any more, or nothing until the time that was given.
    Nothing,
    /// There are no devices any more.
    Deserted,
}

/// When time may pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// When all devices are slept on: then everybody has done what was to be done at this moment.
    Asleep,
    /// Always: programs are taken to be as slow as the network is fast.
    Always,
}

impl Ether {
    /// A network with its cables for devices to be at. Without `lossless`, they speak RoCE of that
    /// version; with it, the network is counted on to lose nothing, and they tell what was
    /// delivered.
    pub fn new(network: Network, version: Version, lossless: bool) -> Self {
        let world = Mutex::new(World { network, seats: Vec::new() });
        Self { shared: Arc::new(Shared { world, news: Condvar::new() }), version, lossless }
    }

    /// The device at a station, at which there is none yet or none any more.
    ///
    /// # Errors
    /// When the system has no descriptor left for its readiness.
    ///
    /// # Panics
    /// When there is one already.
    pub fn station(&self, station: StationId) -> io::Result<Station> {
        // Where nothing may be lost, senders are held back instead.
        let room = if self.lossless { usize::MAX } else { ROOM };
        let (bell, count) = (Arc::new(Bell::new()?), Arc::new(AtomicUsize::new(0)));
        let seat = Seat {
            arrived: VecDeque::new(),
            count: count.clone(),
            room,
            overrun: 0,
            bell: bell.clone(),
            armed: false,
            rung: false,
        };
        let mut world = self.shared.world();
        let seats = world.seats.len().max(station.index() + 1);
        world.seats.resize_with(seats, || None);
        let before = world.seats[station.index()].replace(seat);
        assert!(before.is_none(), "{station:?} has a device");
        drop(world);
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
                run: 1,
                segmentation: false,
                checksum: false,
                lossless: self.lossless,
                mapping: false,
                simulated: true,
                memory: ROOM * LONGEST,
            },
            statistics: Statistics::default(),
        })
    }

    /// Does something with the network: cuts a cable, looks at counters, begins to record.
    pub fn with<R>(&self, does: impl FnOnce(&mut Network) -> R) -> R {
        does(&mut self.shared.world().network)
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.shared.world().network.now()
    }

    /// Goes on to the next thing that happens to a device, until `until` at most.
    ///
    /// # Errors
    /// When time may not pass, or nothing happens until then; in that case it has become `until`.
    pub fn step(&self, pace: Pace, until: Time) -> Result<(), Still> {
        self.shared.world().step(pace, until)
    }

    /// Lets time pass, on this thread, for as long as there are devices; where nothing happens, it
    /// waits until somebody does something.
    pub fn drive(&self, pace: Pace) {
        let mut world = self.shared.world();
        loop {
            // Without anything to come, time is not to run away.
            let until = world.network.next_at().unwrap_or(world.network.now());
            match world.step(pace, until) {
                // Others want the lock, too.
                Ok(()) => {
                    drop(world);
                    std::thread::yield_now();
                    world = self.shared.world();
                }
                Err(Still::Deserted) => return,
                Err(_) if world.may_step(pace) && world.network.next_at().is_some() => {}
                Err(_) => {
                    let waited = self.shared.news.wait(world);
                    world = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

impl World {
    fn may_step(&self, pace: Pace) -> bool {
        pace == Pace::Always || self.seats.iter().flatten().all(Seat::sleeps)
    }

    fn step(&mut self, pace: Pace, until: Time) -> Result<(), Still> {
        if self.seats.iter().flatten().next().is_none() {
            return Err(Still::Deserted);
        }
        if !self.may_step(pace) {
            return Err(Still::Awake);
        }
        loop {
            let (station, event) = self.network.step(until).ok_or(Still::Nothing)?;
            // Where there is no device, nobody hears.
            let Some(Some(seat)) = self.seats.get_mut(station.index()) else { continue };
            if let Event::Frame(frame) = event {
                if seat.arrived.len() == seat.room {
                    seat.overrun += 1;
                    return Ok(());
                }
                seat.arrived.push_back(frame);
                seat.count.store(seat.arrived.len(), Ordering::Release);
            }
            seat.ring();
            return Ok(());
        }
    }

    fn seat(&mut self, station: StationId) -> &mut Seat {
        self.seats[station.index()].as_mut().expect("a device has its seat until it is dropped")
    }
}

/// A station of an [`Ether`], as a device.
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
    fn world(&self) -> MutexGuard<'_, World> {
        self.ether.shared.world()
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
        let mut world = self.ether.shared.world();
        for frame in self.port.frames.drain(..) {
            self.statistics.frames_sent += 1;
            self.statistics.packets_sent += 1;
            self.statistics.bytes_sent += frame.len() as u64;
            world.network.send(self.station, frame);
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
            // Whoever looks again and again would keep others from the lock.
            if count.load(Ordering::Acquire) == 0 {
                return false;
            }
            let mut world = ether.shared.world();
            let seat = world.seat(*station);
            let Some(frame) = seat.arrived.pop_front() else { return false };
            count.store(seat.arrived.len(), Ordering::Release);
            drop(world);
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
            ether.shared.world().network.send(*station, frame);
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
        if number as usize >= self.world().network.stations.len() {
            let why = "the network has no such station";
            return Err(ReachError::Nobody { address: address(), why });
        }
        let way = way(self.ether.version, self.station.index(), number as usize);
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
        let mut world = self.ether.shared.world();
        world.seat(self.station).armed = true;
        if until.is_some_and(|until| until <= world.network.now()) {
            world.seat(self.station).ring();
        } else {
            world.network.wake_at(self.station, until);
        }
        self.ether.shared.news.notify_all();
        Ok(())
    }

    fn disarm(&mut self) {
        let mut world = self.ether.shared.world();
        world.network.wake_at(self.station, None);
        let seat = world.seat(self.station);
        seat.armed = false;
        if std::mem::take(&mut seat.rung) {
            self.bell.silence();
        }
    }

    fn statistics(&mut self) -> Statistics {
        let overrun = self.world().seat(self.station).overrun;
        self.statistics.overrun = overrun;
        self.statistics
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        self.flush();
        let mut world = self.ether.shared.world();
        self.port.leave(|frame| world.network.send(self.station, frame));
        world.network.wake_at(self.station, None);
        world.seats[self.station.index()] = None;
        self.ether.shared.news.notify_all();
    }
}
