//! Joining a world: its processes connect to each other.

mod membership;
mod pairs;
mod told;
mod watch;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use doorbell_am::group::{Group, GroupConfig};
use doorbell_am::{self as am, Bundle, Endpoint, Name, Tag};
use doorbell_job::Route;
use doorbell_verbs::{KeepAlive, Nic, Progress, Queues, ServiceId};
use futures_util::future::try_join_all;
use slab::Slab;
use tokio::time::{Instant, sleep, timeout_at};

use membership::Attempt;
pub use membership::{JoinError, Membership};
use pairs::Pair;
use watch::watch;

use super::keeper::Keeper;
use super::port::Port;
use super::{Core, World};
use crate::config::{Carrier, Config};
use crate::fates::Fates;
use crate::heap::Heap;
use crate::messages::{LONGEST_HEAP, Outbox, Served};
use crate::peers::{Far, Peer};

/// The services of a process at its NIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// Operations by messages.
    Messages = 1,
    /// Collectives.
    Collectives = 2,
    /// One-sided requests.
    OneSided = 3,
}

/// The number of a service of a process: the letters SC, the rank, and the purpose. Processes that
/// share a network interface share its service numbers, too.
fn service(rank: usize, purpose: Purpose) -> u64 {
    0x5343 << 48 | (rank as u64) << 8 | purpose as u64
}

/// The most bytes of a message of operations or stores: one packet.
const PAYLOAD: usize = 4096;
/// Up to this many processes, the processes of a world have many credits for each other from the
/// start. In larger worlds, the receives of connections that are seldom used would fill memory.
const FEW: usize = 16;
/// The most receive buffers of the endpoint for messages, of a little more than [`PAYLOAD`] each:
/// 270 MB, if a process has that many peers that all send at the same time.
const MOST_RECEIVES: usize = 1 << 16;

impl World {
    /// Makes this process part of a world: opens its NIC, and connects to all other processes. The
    /// processes may start in any order.
    ///
    /// [`Job`](crate::Job) joins for whole programs. A program that has a runtime of its own may
    /// await `join` there; the world stays on the thread that has joined it.
    ///
    /// # Errors
    /// When the device can't be opened, or another process can't be connected to in
    /// [time](Config::start), or is of another world.
    pub async fn join(membership: &Membership, config: &Config) -> Result<Self, JoinError> {
        let Membership { rank, addresses, device } = membership;
        let own = addresses.get(*rank).ok_or_else(|| {
            let size = addresses.len();
            JoinError::Config(format!("rank {rank} is not among {size} addresses"))
        })?;
        let device = device.as_ref().unwrap_or(own);
        let nic = Nic::open_async(device, nic_config(config, addresses.len())).await;
        let nic = nic.map_err(|why| JoinError::Device {
            rank: *rank,
            device: device.clone(),
            why: Box::new(why),
        })?;
        Self::join_on(&nic, *rank, addresses, config).await
    }

    /// Makes this process part of a world through a NIC that is open already, such as one of a
    /// simulated network.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub async fn join_on(
        nic: &Nic,
        rank: usize,
        addresses: &[String],
        config: &Config,
    ) -> Result<Self, JoinError> {
        let all = addresses.iter();
        let routes: Vec<_> = all.map(|address| Route::by_first(address.as_str())).collect();
        Self::join_by(std::slice::from_ref(nic), &routes, rank, config).await
    }

    /// Makes this process part of a world whose processes it reaches by several NICs: each process
    /// by one of them, as `routes` say in the order of ranks. The two processes of a pair must use
    /// the same kind of device for each other.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub async fn join_by(
        nics: &[Nic],
        routes: &[Route],
        rank: usize,
        config: &Config,
    ) -> Result<Self, JoinError> {
        let joining = Joining::new(nics, routes, rank, config)?;
        joining.join().await
    }
}

/// How long two processes that connect wait for each other's answers: when many processes start on
/// few processors, each of them runs now and then only.
const LONGEST_HANDSHAKE: Duration = Duration::from_secs(10);

/// The longest time that a configuration is taken to mean: about a year, which can be added to any
/// instant.
pub(crate) const LONGEST: Duration = Duration::from_secs(1 << 25);

/// The configuration of the NIC of a process, in a world of `size` processes.
pub(crate) fn nic_config(config: &Config, size: usize) -> doorbell_verbs::Config {
    let default = doorbell_verbs::Config::default();
    doorbell_verbs::Config {
        progress: config.progress,
        spin: config.spin,
        // Three connections to each other process. A NIC lets a quarter of its queue pairs be
        // connected at the same time, and here all processes may connect at the same time.
        queue_pairs: (16 * size).clamp(64, 16_384),
        completions: default.completions.max(4 * size + 65),
        connect_timeout: config.start.min(LONGEST_HANDSHAKE).max(default.connect_timeout),
        keep_alive: KeepAlive { idle: config.patience, busy: config.patience },
        ..default
    }
}

/// A process that is joining a world, with what it has opened so far.
struct Joining<'j> {
    rank: usize,
    /// How each process is reached.
    routes: &'j [Route],
    config: &'j Config,
    deadline: Instant,
    ports: Vec<Port>,
    heap: Heap,
    served: Arc<Served>,
}

impl<'j> Joining<'j> {
    fn new(
        nics: &[Nic],
        routes: &'j [Route],
        rank: usize,
        config: &'j Config,
    ) -> Result<Self, JoinError> {
        let wrong = |why: String| JoinError::Config(why);
        let size = routes.len();
        if let Some(empty) = routes.iter().position(|route| route.address.is_empty()) {
            return Err(wrong(format!("the address of process {empty}, of {size}, is empty")));
        }
        if let Some(beyond) = routes.iter().position(|route| route.device >= nics.len()) {
            let (nic, count) = (routes[beyond].device, nics.len());
            return Err(wrong(format!(
                "process {beyond} is to be reached by NIC {nic} of {count}"
            )));
        }
        if rank >= size || u32::try_from(size).is_err() {
            return Err(wrong(format!("rank {rank} is not among {size} addresses")));
        }
        if config.heap as u64 >= LONGEST_HEAP {
            return Err(wrong(format!("a heap of {} bytes: 16 TiB is the most", config.heap)));
        }
        let failed =
            |nic: &Nic, why| JoinError::Device { rank, device: nic.address().to_string(), why };
        let heap = Heap::new(config.heap).map_err(|why| failed(&nics[0], why.into()))?;
        let ports = nics
            .iter()
            .map(|nic| Port::open(nic, &heap, (config, size)).map_err(|why| failed(nic, why)));
        let ports: Vec<_> = ports.collect::<Result<_, _>>()?;
        let bundles: Vec<Bundle> = ports.iter().map(|port| port.bundle.clone()).collect();
        Bundle::unite(&bundles);
        let served = Served::new(heap.region().clone());
        let deadline = Instant::now() + config.start.min(LONGEST);
        Ok(Self { rank, routes, config, deadline, ports, heap, served })
    }

    async fn join(self) -> Result<World, JoinError> {
        let (mut listeners, mut endpoints) = (Vec::new(), Vec::new());
        for port in &self.ports {
            let listener = port.nic.listen(ServiceId(service(self.rank, Purpose::OneSided))).await;
            listeners.push(listener.map_err(|why| self.device(port, why.into()))?);
            endpoints.push(self.endpoint(port).await?);
        }
        let group = self.group().await?;
        let (messages, mut pairs) = tokio::try_join!(
            try_join_all(self.others().map(|rank| self.connect(&endpoints, rank))),
            self.pairs(listeners)
        )?;
        // Behind this barrier each process has connections of the group, by which it learns of the
        // end of any other process, even before the first collective of the program.
        let met = group.barrier().await;
        met.map_err(|why| match why.gone() {
            Some(rank) => self.missing(rank, why.to_string()),
            None => self.device(&self.ports[0], why.into()),
        })?;
        let mut messages: HashMap<_, _> = self.others().zip(messages).collect();
        let fates = Arc::new(Fates::new(self.size()));
        let watches = endpoints
            .iter()
            .map(|endpoint| tokio::spawn(watch(endpoint, &messages, fates.clone())).abort_handle());
        let watches = watches.collect();
        let mut peers = Vec::new();
        for rank in 0..self.size() {
            let far = messages.remove(&rank).zip(pairs.remove(&rank));
            peers.push(self.peer(rank, far)?);
        }
        let keeper = self.keeper()?;
        let Self { rank, ports, heap, served, .. } = self;
        let world = World(Rc::new(Core {
            rank,
            bundle: ports[0].bundle.clone(),
            ports: ports.into(),
            _endpoints: endpoints,
            group,
            heap,
            peers: peers.into(),
            served,
            fates,
            flights: RefCell::new(Slab::new()),
            outstanding: Cell::new(0),
            slots: RefCell::new(Slab::new()),
            dirty: RefCell::default(),
            failure: RefCell::new(None),
            consumed: Cell::new(0),
            deferred: RefCell::default(),
            counted: Cell::new(0),
            breathed: Cell::new(0),
            turn: Cell::new(0),
            functions: RefCell::default(),
            stall: self.config.stall,
            watches,
            _keeper: keeper,
        }));
        Ok(world)
    }

    /// Starts the thread that answers for this process while it computes, where a device can't tell
    /// a process that computes from one that has died, and no other thread answers.
    fn keeper(&self) -> Result<Option<Keeper>, JoinError> {
        let lossy = self.ports.iter().find(|port| !port.nic.capabilities().lossless);
        let Some(port) = lossy else { return Ok(None) };
        if self.size() == 1 || self.config.progress != Progress::Inline {
            return Ok(None);
        }
        let keeper = Keeper::start(&port.bundle, self.config.patience);
        keeper.map(Some).map_err(|why| self.device(port, why.into()))
    }

    fn size(&self) -> usize {
        self.routes.len()
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let rank = self.rank;
        (0..self.size()).filter(move |&other| other != rank)
    }

    fn device(&self, port: &Port, why: Box<dyn std::error::Error + Send + Sync>) -> JoinError {
        JoinError::Device { rank: self.rank, device: port.nic.address().to_string(), why }
    }

    /// The address of another process, as this one reaches it.
    fn address(&self, rank: usize) -> &str {
        &self.routes[rank].address
    }

    /// The port by which this process reaches another.
    fn port(&self, rank: usize) -> &Port {
        &self.ports[self.routes[rank].device]
    }

    fn tag(&self) -> Tag {
        Tag(self.config.key)
    }

    async fn endpoint(&self, port: &Port) -> Result<Endpoint, JoinError> {
        let opened = Endpoint::builder()
            .service(service(self.rank, Purpose::Messages))
            .tag(self.tag())
            .credits(self.config.credits)
            .first_credits(self.first_credits().min(self.config.credits))
            .payload(PAYLOAD)
            .places(self.size())
            .receives(self.receives())
            .open_on(&port.bundle, self.served.handlers())
            .await;
        opened.map_err(|why| self.device(port, why.into()))
    }

    /// Returns the most receive buffers of the endpoint. Each pair of processes has two
    /// connections, since either process sends by the one that it has made; an endpoint provides
    /// receives for the requests and the answers of both, and for new peers only while half of its
    /// receives are free.
    fn receives(&self) -> usize {
        let others = self.size() - 1;
        self.config.credits.saturating_mul(8 * others).clamp(64, MOST_RECEIVES)
    }

    /// Returns how many credits other processes have for this one at first; they get more as they
    /// use them.
    fn first_credits(&self) -> usize {
        if self.size() <= FEW { 64 } else { 8 }
    }

    async fn group(&self) -> Result<Group, JoinError> {
        let members = self.routes.iter().enumerate();
        let name = |(rank, at): (usize, &Route)| {
            Name::at(at.address.as_str(), service(rank, Purpose::Collectives))
        };
        let config = GroupConfig {
            rank: self.rank,
            members: members.map(name).collect(),
            tag: Some(self.tag()),
            patience: self.config.start.min(LONGEST),
            stall: self.config.stall,
            // Credits come back once for a quarter of those that a member has at first, by a
            // message of their own, which a barrier should not wait for.
            first_credits: self.first_credits(),
            ..GroupConfig::default()
        };
        let bundles: Vec<Bundle> = self.ports.iter().map(|port| port.bundle.clone()).collect();
        let ways: Vec<usize> = self.routes.iter().map(|route| route.device).collect();
        let joined = Group::join_by(&bundles, &ways, config).await;
        joined.map_err(|why| self.device(&self.ports[0], why.into()))
    }

    /// Connects to another process for messages; repeats the attempt until the process is up.
    async fn connect(&self, endpoints: &[Endpoint], rank: usize) -> Result<am::Peer, JoinError> {
        let Route { device, address, .. } = &self.routes[rank];
        let (endpoint, name) =
            (&endpoints[*device], Name::at(address.as_str(), service(rank, Purpose::Messages)));
        self.again(rank, async || {
            let connected = endpoint.connect(name.clone()).await;
            connected.map_err(|why| match why {
                // A process with another key is told so, and this one too, by `pairs`.
                am::MapError::Handlers { .. } => {
                    Attempt::Stranger(format!("it is another program: {why}"))
                }
                why => Attempt::Again(why.to_string()),
            })
        })
        .await
    }

    /// Repeats an attempt that needs another process to be up, until it succeeds or the deadline is
    /// over.
    async fn again<T>(
        &self,
        rank: usize,
        mut attempt: impl AsyncFnMut() -> Result<T, Attempt>,
    ) -> Result<T, JoinError> {
        let mut pause = Duration::from_millis(1);
        let mut last = String::from("it did not answer");
        loop {
            match timeout_at(self.deadline, attempt()).await {
                Ok(Ok(found)) => return Ok(found),
                Ok(Err(Attempt::Again(why))) => last = why,
                Ok(Err(Attempt::Stranger(why))) => return Err(self.stranger(rank, why)),
                Err(_) => {}
            }
            if Instant::now() + pause >= self.deadline {
                return Err(self.missing(rank, last));
            }
            sleep(pause).await;
            pause = (2 * pause).min(Duration::from_millis(100));
        }
    }

    fn missing(&self, rank: usize, why: String) -> JoinError {
        let (address, within) = (self.address(rank).to_owned(), self.config.start);
        JoinError::Missing { rank, address, within, why }
    }

    fn peer(&self, rank: usize, far: Option<(am::Peer, Pair)>) -> Result<Peer, JoinError> {
        let Some((messages, Pair { queues, heap, mapped })) = far else {
            return Ok(Peer {
                rank,
                carrier: Cell::new(Carrier::Mapped),
                memory: Some(self.heap.region().clone()),
                far: None,
                untold: Cell::new(0),
                dirty: Cell::new(false),
            });
        };
        let memory = mapped.as_ref().map(|mapped| mapped.region().clone());
        let default = if memory.is_some() { Carrier::Mapped } else { Carrier::Mixed };
        let carrier = self.config.carrier.unwrap_or(default);
        if carrier == Carrier::Mapped && memory.is_none() {
            let why = "the device does not map memory of other processes: shm does";
            let kind = crate::ErrorKind::NoCarrier { rank, carrier, why };
            return Err(JoinError::Carrier(kind.into()));
        }
        let longest = messages.longest_payload().min(PAYLOAD);
        let Queues { send, receive, connection } = queues;
        Ok(Peer {
            rank,
            carrier: Cell::new(carrier),
            memory,
            far: Some(Far {
                messages,
                outbox: RefCell::new(Outbox::new(longest)),
                pending: RefCell::default(),
                sent: Cell::new(0),
                answered: Cell::new(0),
                unconfirmed: Cell::new(false),
                requests: RefCell::new(send),
                _receives: receive,
                connection,
                port: self.routes[rank].device,
                address: self.routes[rank].address.clone(),
                heap,
                _mapped: mapped,
            }),
            untold: Cell::new(0),
            dirty: Cell::new(false),
        })
    }
}
