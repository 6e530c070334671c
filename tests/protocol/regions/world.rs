//! The NICs of a plan, the connections between each two of them, and the memory of each.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use doorbell_core::encap::Version;
use doorbell_kit::PATIENCE;
use doorbell_simulation::{
    Ether, Faults, LinkConfig, Network, Still, SwitchConfig, passing_in_steps,
};
use doorbell_verbs::floor::RegionPool;
use doorbell_verbs::{
    Config, Domain, Name, Nic, QueuePair, QueuePairConfig, Region, Registered, Rights, ServiceId,
};

use crate::regions::model::{CELL, CELLS, Model};
use crate::regions::plan::{Over, Plan};

/// A NIC with its domain, and its memory that all peers may use.
pub struct Node {
    pub nic: Nic,
    pub domain: Domain,
    /// The memory, or `None` while a step has taken it, or has been dropped with it.
    pub memory: RefCell<Option<Registered>>,
    pub model: RefCell<Model>,
    pub pool: RegionPool,
}

/// The messages from one NIC to another that were not received yet: their content, and whether they
/// were received there for sure.
#[derive(Default)]
pub struct Mail {
    pub sent: RefCell<VecDeque<(u64, bool)>>,
}

pub struct World {
    pub over: Over,
    pub nodes: Vec<Node>,
    /// Each NIC's end of its connection to each other.
    pairs: RefCell<HashMap<(usize, usize), Rc<QueuePair>>>,
    pub mail: HashMap<(usize, usize), Mail>,
    /// Connections that may break, since memory was taken from a request, or may have been.
    excused: RefCell<HashMap<(usize, usize), bool>>,
    /// The last number that was given to a message or to lent bytes.
    last: Cell<u64>,
    services: Cell<u64>,
    ether: Option<Ether>,
}

/// How many seconds of silence nothing takes that does not hang.
const SILENT: u32 = 2000;

fn config() -> Config {
    // Nobody spins: time passes only when all sleep.
    let (spin, time_wait) = (Duration::ZERO, Duration::from_millis(5));
    Config { spin, time_wait, ..Config::default() }
}

/// Opens the NICs of a plan over a simulated switch.
fn simulated(plan: &Plan) -> (Ether, Vec<Nic>) {
    let lossless = plan.over == Over::Lossless;
    let mut network = Network::new(plan.seed);
    let switch = network.switch(SwitchConfig::default());
    let faults = match lossless {
        true => Faults::NONE,
        false => Faults { loss: 0.03, duplication: 0.03, reordering: 0.03, ..Faults::NONE },
    };
    let link = LinkConfig { mtu: 4200, latency: Duration::from_micros(20), ..Default::default() };
    let stations: Vec<_> = (0..plan.nics).map(|_| network.station()).collect();
    for station in &stations {
        network.link(*station, switch, link.with_faults(faults));
    }
    let ether = Ether::new(network, Version::V2Ipv6, lossless);
    let open = |station, seed| {
        let config = Config { seed: Some(seed), ..config() };
        Nic::builder()
            .config(config)
            .on(ether.station(station).expect("descriptors"))
            .expect("a NIC")
    };
    let nics = stations.into_iter().zip(plan.seed % 1000..).map(|(at, seed)| open(at, seed));
    let nics = nics.collect();
    (ether, nics)
}

/// Opens the NICs of a plan over shared memory.
fn shared(plan: &Plan) -> Vec<Nic> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = |end| format!("shm:regions-{}-{count}/{end}", std::process::id());
    (0..plan.nics)
        .map(|end| {
            Nic::builder().config(config()).open_blocking(&name(end)).expect("a name of one's own")
        })
        .collect()
}

impl World {
    pub fn new(plan: &Plan) -> Self {
        let (ether, nics) = match plan.over {
            Over::Shm => (None, shared(plan)),
            Over::Lossy | Over::Lossless => {
                let (ether, nics) = simulated(plan);
                (Some(ether), nics)
            }
        };
        let count = nics.len();
        let nodes = nics.into_iter().map(|nic| Node {
            domain: nic.domain(),
            nic,
            memory: RefCell::default(),
            model: RefCell::new(Model::new(count)),
            pool: RegionPool::new(1 << 20),
        });
        let ends = (0..count).flat_map(|a| (0..count).map(move |b| (a, b)));
        let mail = ends.filter(|(a, b)| a != b).map(|ends| (ends, Mail::default())).collect();
        Self {
            over: plan.over,
            nodes: nodes.collect(),
            pairs: RefCell::default(),
            mail,
            excused: RefCell::default(),
            last: Cell::new(0),
            services: Cell::new(100),
            ether,
        }
    }

    /// Returns a number that was not returned before.
    pub fn number(&self) -> u64 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    /// The end of a NIC's connection to another.
    pub fn pair(&self, from: usize, to: usize) -> Rc<QueuePair> {
        self.pairs.borrow()[&(from, to)].clone()
    }

    /// Notes that the connection between two NICs may break.
    pub fn excuse(&self, a: usize, b: usize) {
        self.excused.borrow_mut().insert((a.min(b), a.max(b)), true);
    }

    /// Notes that any connection of a NIC may break.
    pub fn excuse_all(&self, node: usize) {
        let others = (0..self.nodes.len()).filter(|other| *other != node);
        others.for_each(|other| self.excuse(node, other));
    }

    pub fn is_excused(&self, a: usize, b: usize) -> bool {
        self.excused.borrow().contains_key(&(a.min(b), a.max(b)))
    }

    pub fn excuse_nobody(&self) {
        self.excused.borrow_mut().clear();
    }

    /// Registers memory of zeros for a NIC that has none.
    pub fn provide(&self, node: &Node) {
        if node.memory.borrow().is_none() {
            *node.model.borrow_mut() = Model::new(self.nodes.len());
            let region = Region::new(8 * (self.nodes.len() * CELLS * CELL + 1));
            node.memory.replace(Some(self.register(node, region)));
        }
    }

    pub fn register(&self, node: &Node, region: Region) -> Registered {
        node.domain.register(region, Rights::REMOTE | Rights::LOCAL_WRITE).expect("room")
    }

    /// Connects two NICs, anew if they were connected before.
    pub async fn connect(&self, a: usize, b: usize) {
        self.pairs.borrow_mut().retain(|ends, _| *ends != (a, b) && *ends != (b, a));
        for ends in [(a, b), (b, a)] {
            self.mail[&ends].sent.borrow_mut().clear();
        }
        self.services.set(self.services.get() + 1);
        let service = ServiceId(self.services.get());
        let (near, far) = (&self.nodes[a], &self.nodes[b]);
        let mut listener = far.nic.listen(service).await.expect("nobody else does");
        let asks = async {
            let pair = near.domain.queue_pair(&QueuePairConfig::default()).expect("room");
            let to = far.nic.address().to_string();
            pair.connect(Name::at(&*to, service.0), &[]).await.expect("the peer listens").0
        };
        let takes = async {
            let pair = far.domain.queue_pair(&QueuePairConfig::default()).expect("room");
            pair.accept(listener.accept().await.expect("a request"), &[])
                .await
                .expect("the peer waits")
                .0
        };
        let (asked, taken): (QueuePair, QueuePair) = tokio::join!(asks, takes);
        let mut pairs = self.pairs.borrow_mut();
        pairs.insert((a, b), Rc::new(asked));
        pairs.insert((b, a), Rc::new(taken));
    }

    /// Awaits a future, for as long as one may take that does not hang.
    pub async fn bounded<T>(&self, what: &str, future: impl Future<Output = T>) -> T {
        let Some(ether) = &self.ether else {
            let ended = tokio::time::timeout(PATIENCE, future).await;
            return ended.unwrap_or_else(|_| panic!("{what} hangs: nothing takes {PATIENCE:?}"));
        };
        // Seconds in which nothing happens pass at once, and a future that only lets others run is
        // polled in each of them.
        let mut silent = 0;
        let stepped = async |stepped| {
            silent += u32::from(stepped == Err(Still::Nothing));
            assert!(silent < SILENT, "{what} hangs: nothing takes {SILENT} seconds of silence");
        };
        passing_in_steps(ether, Duration::from_secs(1), stepped, future).await
    }
}
