//! A process that is joining a world: what it has opened so far, and attempts to reach others.

use std::cell::RefCell;
use std::collections::HashSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use doorbell_am::proof::Statement;
use doorbell_am::{Bundle, Tag};
use doorbell_job::Route;
use doorbell_verbs::floor::is_limit;
use doorbell_verbs::{ConnectError, KeepAlive, Nic, ReachError};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::membership::{Attempt, JoinError};
use super::{key, room};
use crate::causes::{causes, with_causes};
use crate::config::Config;
use crate::heap::{Heap, Heaps};
use crate::messages::{LONGEST_HEAP, Served};
use crate::world::port::{FOR_EACH, Port, QUEUE_PAIRS};

/// The services of a process at its NIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// The service that takes operations by messages.
    Messages = 1,
    /// The service of the group, which carries collectives.
    Collectives = 2,
    /// The service that takes one-sided requests.
    OneSided = 3,
}

/// The most processes of a world: as many as the numbers of services tell apart.
const MOST: usize = 1 << 18;

/// How one job's service numbers differ from those of another, whose processes may share a network
/// interface and its service numbers: 28 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct JobNumber(u32);

impl JobNumber {
    /// The number of a world with a key that all its processes are known to have, or that joins by
    /// interfaces that other worlds may share. All other worlds have the same, so that processes
    /// whose keys differ meet and are told so.
    fn of(config: &Config, is_proven: bool, (nics, routes): (&[Nic], &[Route])) -> Self {
        // By one NIC a process reaches all others in the same way, so that all come to one number.
        let by_ethernet = |route: &Route| route.address.starts_with("packet:");
        let is_shared = nics.len() == 1 && routes.iter().any(by_ethernet);
        if config.key == 0 || !(is_proven || is_shared) {
            return Self(0);
        }
        let proof = Statement::of("doorbell split-c: services", &[]).proven_by(config.key);
        let [a, b, c, d, ..] = proof.0;
        Self(u32::from_be_bytes([a, b, c, d]) >> 4)
    }

    /// The number of a service of a process: the letters SC, the number of the job, the rank, and
    /// the purpose.
    fn service(self, rank: usize, purpose: Purpose) -> u64 {
        0x5343 << 48 | u64::from(self.0) << 20 | (rank as u64) << 2 | purpose as u64
    }
}

/// Facts about the processes of a world, beside their addresses, that a process knows when it joins.
#[derive(Clone, Copy, Default)]
pub(crate) struct Kin<'k> {
    /// The heaps of all processes, if they are threads of one process.
    pub heaps: Option<&'k Heaps>,
    /// Whether the processes are known to have one key, since whoever started them gave it to them.
    pub have_one_key: bool,
}

/// How long two processes that connect wait for each other's answers: when many processes start on
/// few processors, each of them runs now and then only.
const LONGEST_HANDSHAKE: Duration = Duration::from_secs(10);

/// The longest time that a configuration is taken to mean: about a year, which can be added to any
/// instant.
pub(crate) const LONGEST: Duration = Duration::from_secs(1 << 25);

/// The configuration of the NIC of a process, in a world of `size` processes.
pub(crate) fn nic_config(config: &Config, size: usize) -> doorbell_verbs::Config {
    shared_nic_config(config, size, 1)
}

/// How many threads of one process share a NIC, in a job of `size`. In a small job each has its own,
/// so that none waits for the others.
pub(crate) fn threads_of_nic(size: usize) -> usize {
    match size {
        ..=8 => 1,
        _ => (QUEUE_PAIRS / (4 * size)).clamp(1, 32),
    }
}

/// The configuration of a NIC that `users` processes of a world of `size` share.
pub(crate) fn shared_nic_config(
    config: &Config,
    size: usize,
    users: usize,
) -> doorbell_verbs::Config {
    let default = doorbell_verbs::Config::default();
    let queue_pairs = (FOR_EACH * size * users).clamp(64, QUEUE_PAIRS);
    doorbell_verbs::Config {
        progress: config.progress,
        spin: config.spin,
        // Three connections to each other process. A NIC lets a quarter of its queue pairs be
        // connected at the same time, and here all processes may connect at the same time.
        queue_pairs,
        completions: default.completions.max(4 * size + 65).max(queue_pairs + 1),
        connect_timeout: config.start.min(LONGEST_HANDSHAKE).max(default.connect_timeout),
        keep_alive: KeepAlive { idle: config.patience, busy: config.patience },
        ..default
    }
}

/// A process that is joining a world, with what it has opened so far.
pub(super) struct Joining<'j> {
    pub rank: usize,
    /// How each process is reached.
    pub routes: &'j [Route],
    pub config: &'j Config,
    pub deadline: Instant,
    pub ports: Vec<Port>,
    pub heap: Heap,
    pub served: Arc<Served>,
    /// The heaps of all processes, if they are threads of one process.
    pub heaps: Option<&'j Heaps>,
    job: JobNumber,
    /// The ranks that somebody without the key has said, who is not at the address of that process.
    pub said_elsewhere: RefCell<HashSet<usize>>,
}

impl<'j> Joining<'j> {
    /// Checks the configuration, and opens the heap and the ports of a process.
    pub fn new(
        nics: &[Nic],
        routes: &'j [Route],
        rank: usize,
        (config, kin): (&'j Config, Kin<'j>),
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
        if rank >= size {
            return Err(wrong(format!("rank {rank} is not among {size} addresses")));
        }
        if size > MOST {
            return Err(wrong(format!("{size} processes: {MOST} are the most")));
        }
        if config.heap as u64 >= LONGEST_HEAP {
            return Err(wrong(format!("a heap of {} bytes: 16 TiB is the most", config.heap)));
        }
        let own: Vec<_> = nics.iter().map(|nic| nic.address().to_string()).collect();
        if let Some(why) = key::refused(config.key, routes, (rank, &own)) {
            return Err(wrong(why));
        }
        room::check(nics, routes, rank, (config.heap, kin.heaps.is_some()))?;
        let failed =
            |nic: &Nic, why| JoinError::Device { rank, device: nic.address().to_string(), why };
        let heap = match kin.heaps {
            Some(heaps) => Heap::over(heaps.of(rank), config.heap),
            None => Heap::new(config.heap),
        };
        let heap = heap.map_err(|why| failed(&nics[0], why.into()))?;
        let ports = nics
            .iter()
            .map(|nic| Port::open(nic, &heap, (config, size)).map_err(|why| failed(nic, why)));
        let ports: Vec<_> = ports.collect::<Result<_, _>>()?;
        let bundles: Vec<Bundle> = ports.iter().map(|port| port.bundle.clone()).collect();
        Bundle::unite(&bundles);
        let served = Served::new(heap.region().clone(), heap.guards.clone());
        let deadline = Instant::now() + config.start.min(LONGEST);
        let said_elsewhere = RefCell::default();
        let (heaps, job) = (kin.heaps, JobNumber::of(config, kin.have_one_key, (nics, routes)));
        Ok(Self { rank, routes, config, deadline, ports, heap, served, heaps, job, said_elsewhere })
    }

    /// The number of a service of a process.
    pub fn service(&self, rank: usize, purpose: Purpose) -> u64 {
        self.job.service(rank, purpose)
    }

    pub fn size(&self) -> usize {
        self.routes.len()
    }

    pub fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let rank = self.rank;
        (0..self.size()).filter(move |&other| other != rank)
    }

    pub fn device(&self, port: &Port, why: Box<dyn std::error::Error + Send + Sync>) -> JoinError {
        JoinError::Device { rank: self.rank, device: port.nic.address().to_string(), why }
    }

    /// The address of another process, as this one reaches it.
    pub fn address(&self, rank: usize) -> &str {
        &self.routes[rank].address
    }

    /// The port by which this process reaches another.
    pub fn port(&self, rank: usize) -> &Port {
        &self.ports[self.routes[rank].device]
    }

    pub fn tag(&self) -> Tag {
        Tag(self.config.key)
    }

    /// Repeats an attempt that needs another process to be up, until it succeeds or the deadline is
    /// over.
    pub async fn again<T>(
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
                Ok(Err(Attempt::Refused(why))) => return Err(self.lost(rank, why)),
                Ok(Err(Attempt::Limit(why))) => {
                    let others = self.size() - 1;
                    return Err(JoinError::Limit { rank: self.rank, others, why });
                }
                Err(_) => {}
            }
            if Instant::now() >= self.deadline {
                return Err(self.missing(rank, last));
            }
            sleep_until(self.deadline.min(Instant::now() + pause)).await;
            pause = (2 * pause).min(Duration::from_millis(100));
        }
    }

    /// Judges by the error of an attempt to connect whether a further attempt may succeed. A process of another
    /// user that has the address will keep it, and a limit stays as it is.
    pub fn unreached(why: &(dyn Error + 'static)) -> Attempt {
        let text = with_causes(why);
        if is_limit(why) {
            return Attempt::Limit(text);
        }
        let reach = causes(why).find_map(|why| match why.downcast_ref::<ConnectError>() {
            Some(ConnectError::Reach(why)) => Some(why),
            _ => None,
        });
        match reach {
            Some(ReachError::Stranger { .. }) => Attempt::Stranger(text),
            Some(ReachError::Refused { .. }) => Attempt::Refused(text),
            _ => Attempt::Again(text),
        }
    }

    /// The error about a process that has gone, or refused a connection.
    pub fn lost(&self, rank: usize, why: String) -> JoinError {
        JoinError::Lost { rank, address: self.address(rank).to_owned(), why }
    }

    pub fn missing(&self, rank: usize, why: String) -> JoinError {
        let (address, within) = (self.address(rank).to_owned(), self.config.start);
        let why = match self.said_elsewhere.borrow().contains(&rank) {
            true => format!(
                "{why}; somebody at another address said to be this process, but has another key: \
                 does the list have the right address of this process?"
            ),
            false => why,
        };
        JoinError::Missing { rank, address, within, why }
    }

    pub fn stranger(&self, rank: usize, why: String) -> JoinError {
        let address = self.routes.get(rank).map(|route| route.address.clone());
        let address = address.unwrap_or_else(|| "an address that is not in the list".to_owned());
        JoinError::Stranger { rank, address, why }
    }
}
