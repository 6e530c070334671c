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
use crate::control::{Control, ControlConfig, ControlQueue, Encryption, NetworkSharing};
use crate::error::OpenError;
use crate::progress::{Pacing, ProgressEngine, WatchTimer};

/// How often, at least, a peer is asked for patience within the time that a program has to decide:
/// each time that the peer repeats its request, which most do 14 or 15 times.
const PLEAS: u32 = 14;

/// The most connections that peers have asked for and that do not stand.
const MOST_HALF_OPEN: usize = 1024;

impl Nic {
    pub(super) fn open_blocking(device: &str, config: Config) -> Result<Self, OpenError> {
        Self::open_as(device.parse()?, config)
    }

    pub(super) async fn open_async(device: &str, config: Config) -> Result<Self, OpenError> {
        match device.parse()? {
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

    fn open_as(spec: Spec, config: Config) -> Result<Self, OpenError> {
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

    fn over_packet(
        interface: &str,
        sharing: Membership,
        config: Config,
    ) -> Result<Self, OpenError> {
        let numbering = sharing.numbering();
        let device = Packet::open(interface, numbering)?;
        let device = if config.offload { device } else { device.without_offload() };
        Self::build(device, numbering, Some(sharing), config)
    }

    fn over_sockets(device: Udp, config: Config) -> Result<Self, OpenError> {
        let device = if config.offload { device } else { device.without_offload() };
        let device = if config.strangers { device } else { device.without_strangers() };
        Self::build(device, Numbering::default(), None, config)
    }

    pub(super) fn over(
        device: impl Device,
        numbering: Numbering,
        config: Config,
    ) -> Result<Self, OpenError> {
        Self::build(device, numbering, None, config)
    }

    fn build(
        device: impl Device,
        numbering: Numbering,
        sharing: Option<Membership>,
        config: Config,
    ) -> Result<Self, OpenError> {
        config.check(numbering)?;
        let Capabilities { lossless, run, labels, .. } = *device.capabilities();
        let owner = sharing.is_none();
        if config.paths > 1 && !(labels && config.selective_repeat) {
            let why = "several routes need selective repeat and a device that sends from any port";
            tracing::warn!(paths = config.paths, "one route is used: {why}");
        }
        let encryption = match lossless {
            true => Encryption::OFF,
            false => config.encryption.clone(),
        };
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
            extensions: Extensions::WRITE_WITH_METADATA
                | if config.selective_repeat {
                    Extensions::SELECTIVE_REPEAT
                } else {
                    Extensions::NONE
                }
                | encryption.offers(),
            ..cm::Config::new(seeds.seed(0)?.guid())
        };
        let manager = ConnectionManager::new(manager, seeds.seed(1)?)?;
        let control_config = ControlConfig {
            sharing,
            mtu: match encryption.offers().encrypt() {
                true => device.capabilities().encrypted_mtu,
                false => device.capabilities().mtu,
            },
            patience: config.keep_alive.busy,
            connect_timeout: config.connect_timeout,
            sharing_network: NetworkSharing {
                congestion: config.congestion_control,
                ecn: config.ecn_to_standard_peers,
                paths: if labels { config.paths } else { 1 },
            },
            encryption,
        };
        let control = Control::new(nic, manager, completions, control_config);
        let operations = control.operations.clone();
        Self::start(Box::new(DeviceAdapter::new(control, device)), operations, &config)
    }

    fn start(
        adapter: Box<dyn Adapter>,
        operations: Arc<ControlQueue>,
        config: &Config,
    ) -> Result<Self, OpenError> {
        let system = |what| move |source| OpenError::System { what, source: naming_limits(source) };
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
    fn seed(&self, which: u64) -> Result<Seed, OpenError> {
        match self.0 {
            Some(number) => Ok(Seed::from_number(number.wrapping_mul(2).wrapping_add(which))),
            None => doorbell_transports::random()
                .map(Seed)
                .map_err(|source| OpenError::System { what: "getting random numbers", source }),
        }
    }
}
