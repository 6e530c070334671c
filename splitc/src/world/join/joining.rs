//! A process that is joining a world: what it has opened so far, and attempts to reach others.

use std::cell::RefCell;
use std::collections::HashSet;
use std::error::Error;
use std::iter::successors;
use std::sync::Arc;
use std::time::Duration;

use doorbell_am::{Bundle, Tag};
use doorbell_job::Route;
use doorbell_verbs::{ConnectError, KeepAlive, Nic, ReachError};
use tokio::time::{Instant, sleep, timeout_at};

use super::key;
use super::membership::{Attempt, JoinError};
use crate::config::Config;
use crate::heap::Heap;
use crate::messages::{LONGEST_HEAP, Served};
use crate::world::port::Port;

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

/// The number of a service of a process: the letters SC, the rank, and the purpose. Processes that
/// share a network interface share its service numbers, too.
pub(super) fn service(rank: usize, purpose: Purpose) -> u64 {
    0x5343 << 48 | (rank as u64) << 8 | purpose as u64
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
pub(super) struct Joining<'j> {
    pub rank: usize,
    /// How each process is reached.
    pub routes: &'j [Route],
    pub config: &'j Config,
    pub deadline: Instant,
    pub ports: Vec<Port>,
    pub heap: Heap,
    pub served: Arc<Served>,
    /// The ranks that somebody without the key has said, who is not at the address of that process.
    pub said_elsewhere: RefCell<HashSet<usize>>,
}

impl<'j> Joining<'j> {
    /// Checks the configuration, and opens the heap and the ports of a process.
    pub fn new(
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
        let own: Vec<_> = nics.iter().map(|nic| nic.address().to_string()).collect();
        if let Some(why) = key::refused(config.key, routes, (rank, &own)) {
            return Err(wrong(why));
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
        let served = Served::new(heap.region().clone(), heap.guards.clone());
        let deadline = Instant::now() + config.start.min(LONGEST);
        let said_elsewhere = RefCell::default();
        Ok(Self { rank, routes, config, deadline, ports, heap, served, said_elsewhere })
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
                Err(_) => {}
            }
            if Instant::now() + pause >= self.deadline {
                return Err(self.missing(rank, last));
            }
            sleep(pause).await;
            pause = (2 * pause).min(Duration::from_millis(100));
        }
    }

    /// What an attempt that has failed to connect says about further ones. A process of another
    /// user that has the address will keep it.
    pub fn unreached(why: &(dyn Error + 'static)) -> Attempt {
        let mut texts: Vec<_> = causes(why).map(ToString::to_string).collect();
        // A transparent error says what its cause says.
        texts.dedup();
        let text = texts.join(": ");
        let is_anothers = |why: &(dyn Error + 'static)| {
            let connect = why.downcast_ref::<ConnectError>();
            matches!(connect, Some(ConnectError::Reach(ReachError::Stranger { .. })))
        };
        match causes(why).any(is_anothers) {
            true => Attempt::Stranger(text),
            false => Attempt::Again(text),
        }
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

/// An error, and all that it came from.
fn causes<'w>(why: &'w (dyn Error + 'static)) -> impl Iterator<Item = &'w (dyn Error + 'static)> {
    successors(Some(why), |why| (*why).source())
}
