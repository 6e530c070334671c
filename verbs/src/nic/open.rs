//! Opening a device, and building a NIC over it.

use std::sync::Arc;
use std::time::Duration;

use doorbell_core::cm::{self, ConnectionManager, Extensions};
use doorbell_core::nic::{self, Numbering, Seed};
use doorbell_core::wire::cm::CmTimeout;
use doorbell_transports::floor::naming_limits;
use doorbell_transports::packet::Packet;
use doorbell_transports::packet_v2::{PacketV2, Settings};
use doorbell_transports::sharing::{Membership, TAG_BITS};
use doorbell_transports::shm::Shm;
use doorbell_transports::udp::Udp;
use doorbell_transports::{Capabilities, Device, Spec};

use super::config::{Config, Progress};
use super::handle::Nic;
use super::joining::Joining;
use super::names::find_own;
use crate::adapter::{Adapter, DeviceAdapter};
use crate::control::{Control, ControlConfig, ControlQueue};
use crate::error::NicError;
use crate::progress::{Pacing, ProgressEngine, WatchTimer};

/// How often, at least, a peer is asked for patience within the time that a program has to decide:
/// each time that the peer repeats its request, which most do 14 or 15 times.
const PLEAS: u32 = 14;

/// The most connections that peers have asked for and that do not stand.
const MOST_HALF_OPEN: usize = 1024;

impl Nic {
    /// Opens a device by name. Called in a Tokio runtime, that runtime runs the NIC when no task
    /// waits.
    ///
    /// | name | device |
    /// |---|---|
    /// | `shm:job/0` | shared memory with processes of this machine, joined by that name |
    /// | `shm` | shared memory, joined by a name that nobody else has |
    /// | `udp:192.0.2.7`, `udp:[::1]:5000` | a UDP socket at one of this machine's addresses, RoCE v2 |
    /// | `udp:node7:5000`, `udp:localhost` | the same at an address that a host name stands for |
    /// | `udp:0.0.0.0:5000`, `udp:[::]` | the same at the address by which other machines come |
    /// | `packet:eth0` | raw Ethernet on that interface, RoCE v1 |
    /// | `packet-v2:eth0` | the same, RoCE v2, with an IPv6 address of its own |
    /// | `packet-v2:eth0,192.0.2.7/24` | the same with that address, in a network of 24 bits |
    ///
    /// The UDP port is RoCE's own, 4791, if none is named; for port 0, the system chooses one.
    /// [`address`](Self::address) returns the actual address, for peers to use.
    ///
    /// A NIC has one address, even if it is opened at a wildcard:
    /// [one](doorbell_transports::udp#wildcards) at which other machines reach it. Processes of
    /// this machine must use that address, too.
    ///
    /// A host name must be one of this machine's. Of its addresses, one that is not a loopback
    /// address is preferred, and an IPv4 address to an IPv6 address. The name is looked up before
    /// this returns, which blocks the thread for as long as the system's resolver takes. An address
    /// never blocks. Asynchronous code uses [`open_async`](Self::open_async).
    ///
    /// # Errors
    /// Returns an error when the name is none of these, the device can't be opened, or the
    /// configuration can't be used. The error says what to do.
    ///
    /// # Panics
    /// Panics in a runtime that was built without I/O.
    pub fn open(spec: &str, config: Config) -> Result<Self, NicError> {
        Self::open_as(spec.parse()?, config)
    }

    /// Opens a device by name as [`open`](Self::open) does, for asynchronous code. A host name is
    /// looked up on a thread that may block. While this waits for other NICs of an interface, other
    /// tasks run, of which one may run such a NIC.
    ///
    /// # Errors
    /// Returns an error as [`open`](Self::open) does.
    ///
    /// # Panics
    /// Panics as [`open`](Self::open) does.
    pub async fn open_async(spec: &str, config: Config) -> Result<Self, NicError> {
        match spec.parse()? {
            Spec::UdpNamed(host) => Self::open_as(Spec::Udp(find_own(host).await?), config),
            Spec::Packet(interface) => {
                let mut joining = Joining::new(&interface)?;
                while !joining.is_welcome()? {
                    tokio::task::yield_now().await;
                }
                Self::over_packet(&interface, joining.sharing, config)
            }
            spec => Self::open_as(spec, config),
        }
    }

    fn open_as(spec: Spec, config: Config) -> Result<Self, NicError> {
        let own = Numbering::default();
        match spec {
            Spec::Shm(Some(name)) => Self::build(Shm::join(&name)?, own, None, config),
            Spec::Shm(None) => Self::build(Shm::join_unique()?, own, None, config),
            Spec::Udp(address) => Self::over_sockets(Udp::open(address)?, config),
            Spec::UdpNamed(host) => Self::over_sockets(Udp::open_named(&host)?, config),
            Spec::PacketV2(interface, network) => {
                let settings = Settings { network, ..Settings::default() };
                let device = PacketV2::open(&interface, settings)?;
                let device = if config.offload { device } else { device.without_offload() };
                Self::build(device, own, None, config)
            }
            Spec::Packet(interface) => {
                let mut joining = Joining::new(&interface)?;
                while !joining.is_welcome()? {}
                Self::over_packet(&interface, joining.sharing, config)
            }
        }
    }

    fn over_packet(interface: &str, sharing: Membership, config: Config) -> Result<Self, NicError> {
        let numbering = sharing.numbering();
        let device = Packet::open(interface, numbering)?;
        let device = if config.offload { device } else { device.without_offload() };
        Self::build(device, numbering, Some(sharing), config)
    }

    fn over_sockets(device: Udp, config: Config) -> Result<Self, NicError> {
        let device = if config.offload { device } else { device.without_offload() };
        let device = if config.strangers { device } else { device.without_strangers() };
        Self::build(device, Numbering::default(), None, config)
    }

    /// Builds a NIC over any device: a [wrapper](doorbell_transports::wrap), a simulated network's
    /// device, or one of your own.
    ///
    /// # Errors
    /// Returns an error when the configuration can't be used.
    ///
    /// # Panics
    /// Panics as [`open`](Self::open) does.
    pub fn over(device: impl Device, config: Config) -> Result<Self, NicError> {
        Self::build(device, Numbering::default(), None, config)
    }

    fn build(
        device: impl Device,
        numbering: Numbering,
        sharing: Option<Membership>,
        config: Config,
    ) -> Result<Self, NicError> {
        config.check(numbering)?;
        let Capabilities { mtu, lossless, run, .. } = *device.capabilities();
        let owner = sharing.is_none();
        let seeds = Seeds::new(config.seed);
        let core = nic::Config {
            queue_pairs: config.queue_pairs,
            registrations: config.registrations,
            numbering,
            keep_alive: config.keep_alive,
            lossless,
            runs: run > 1,
            ..nic::Config::default()
        };
        let mut nic = nic::Nic::new(core, seeds.seed(0)?)?;
        let completions = nic.growing_completion_queue(config.completions)?;
        let manager = cm::Config {
            tag: numbering.tag,
            tag_bits: TAG_BITS,
            owner,
            connections: config.queue_pairs,
            time_waits: config.queue_pairs.max(1024),
            time_wait: config.time_wait,
            unconfirmed: config.connect_timeout,
            undecided: config.accept_timeout,
            mra_timeout: CmTimeout::at_least(config.accept_timeout / PLEAS),
            half_open: (config.queue_pairs / 4).clamp(1, MOST_HALF_OPEN),
            // The peer has the busy time to answer a probe, and the NIC reads its clock only now
            // and then.
            verification: config.keep_alive.busy.saturating_mul(5) / 4,
            extensions: Extensions::WRITE_WITH_METADATA,
            ..cm::Config::new(seeds.seed(0)?.guid())
        };
        let manager = ConnectionManager::new(manager, seeds.seed(1)?)?;
        let control_config = ControlConfig {
            sharing,
            mtu,
            patience: config.keep_alive.busy,
            connect_timeout: config.connect_timeout,
        };
        let control = Control::new(nic, manager, completions, control_config);
        let operations = control.operations.clone();
        Self::start(Box::new(DeviceAdapter::new(control, device)), operations, &config)
    }

    fn start(
        adapter: Box<dyn Adapter>,
        operations: Arc<ControlQueue>,
        config: &Config,
    ) -> Result<Self, NicError> {
        let system = |what| move |source| NicError::System { what, source: naming_limits(source) };
        let simulated = adapter.capabilities().simulated;
        let watched = adapter.watched();
        let watch =
            watched.and_then(|watched| WatchTimer::new(watched, config.spin.is_zero(), simulated));
        let watch = watch.map_err(system("watching the device"))?;
        let dedicated = matches!(config.progress, Progress::Dedicated { .. });
        let pacing = Pacing { spin: config.spin, dedicated };
        let engine = ProgressEngine::new(adapter, operations, pacing, watch);
        tracing::debug!(address = %engine.address, ?config, "opened");
        match config.progress {
            Progress::Inline => engine.keep_watch().map_err(system("keeping watch"))?,
            Progress::Dedicated { core } => {
                let spin = (config.spin != Duration::MAX).then_some(config.spin);
                engine.dedicate(core, spin).map_err(system("giving it a thread of its own"))?;
            }
        }
        Ok(Self::new(engine))
    }
}

/// The source of numbers that nobody must guess: the system, or a test's seed.
struct Seeds(Option<u64>);

impl Seeds {
    fn new(number: Option<u64>) -> Self {
        Self(number)
    }

    /// Returns a seed from the system, or the seed number `which` of a test's run.
    fn seed(&self, which: u64) -> Result<Seed, NicError> {
        match self.0 {
            Some(number) => Ok(Seed::from_number(number.wrapping_mul(2).wrapping_add(which))),
            None => doorbell_transports::random()
                .map(Seed)
                .map_err(|source| NicError::System { what: "getting random numbers", source }),
        }
    }
}
