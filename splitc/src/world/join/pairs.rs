//! Queue pairs between all processes for one-sided requests, and the mapping of heaps.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use doorbell_job::Route;
use doorbell_verbs::{
    ConnectError, Connection, Listener, Mapped, Queues, QueuesConfig, RemoteMemory, ResourceError,
    ServiceId, Unconnected,
};
use futures_util::future::{join_all, try_join_all};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout_at};

use super::joining::{Joining, Purpose, service};
use super::membership::{Attempt, JoinError};
use super::told::{MAGIC, Told};
use crate::world::port::REQUESTS;

/// The queue pair between this process and another, and access to the other's heap.
pub(super) struct Pair {
    pub queues: Queues,
    pub heap: RemoteMemory,
    pub mapped: Option<Mapped>,
}

/// The processes that this one has met so far, and those that turned out not to be of its world.
#[derive(Default)]
struct Met {
    pairs: RefCell<HashMap<usize, (Queues, RemoteMemory)>>,
    others: RefCell<HashSet<usize>>,
    /// The first failure, and a notice of it.
    failure: RefCell<Option<JoinError>>,
    failed: Notify,
}

impl Met {
    /// Notes how the meeting with a process has ended.
    fn note(&self, rank: usize, met: Result<(Queues, RemoteMemory), JoinError>) {
        match met {
            Ok(pair) => drop(self.pairs.borrow_mut().insert(rank, pair)),
            Err(why) => {
                self.others.borrow_mut().insert(rank);
                self.failure.borrow_mut().get_or_insert(why);
                self.failed.notify_one();
            }
        }
    }

    fn knows(&self, rank: usize) -> bool {
        self.pairs.borrow().contains_key(&rank) || self.others.borrow().contains(&rank)
    }
}

/// How long a process that has found another one not to be of its world still meets the rest: they
/// are to learn of that one, too, rather than to miss this process. A process that asked before
/// this one was there asks again after a second.
const PARTING: Duration = Duration::from_millis(2500);

impl Joining<'_> {
    /// Connects a queue pair with each other process: this process asks the processes of lower
    /// rank, and the processes of higher rank ask this one.
    pub(super) async fn pairs(
        &self,
        listeners: Vec<Listener>,
    ) -> Result<HashMap<usize, Pair>, JoinError> {
        let met = &Met::default();
        let below = join_all((0..self.rank).map(|rank| async move {
            met.note(rank, self.ask(rank).await);
        }));
        let above = listeners.into_iter().enumerate();
        let above = join_all(above.map(|(nic, listener)| self.answer(nic, listener, met)));
        let all = async { tokio::join!(below, above) };
        let parts = async {
            met.failed.notified().await;
            sleep(PARTING).await;
        };
        tokio::select! {
            biased;
            _ = all => {}
            () = parts => {}
        }
        if let Some(why) = met.failure.take() {
            return Err(why);
        }
        let opened = met.pairs.take().into_iter().map(|(rank, (queues, heap))| async move {
            let mapped = self.map(rank, &queues.connection, heap).await?;
            Ok((rank, Pair { queues, heap, mapped }))
        });
        Ok(try_join_all(opened).await?.into_iter().collect())
    }

    /// Accepts or refuses the processes that ask this one at one of its NICs, until every process
    /// of higher rank that is reached by that NIC has asked.
    async fn answer(&self, nic: usize, mut listener: Listener, met: &Met) {
        let mut above = self.rank + 1..self.size();
        let awaited = |rank: &usize| self.routes[*rank].device == nic && !met.knows(*rank);
        while let Some(missing) = above.clone().find(awaited) {
            above.start = missing;
            let Ok(incoming) = timeout_at(self.deadline, listener.accept()).await else {
                let why = self.missing(missing, "it did not come".to_owned());
                return met.note(missing, Err(why));
            };
            let Some(told) = Told::read(incoming.private()) else { continue };
            let (rank, own) = (told.rank as usize, self.told(nic));
            if let Some(why) = own.differs(&told) {
                tracing::warn!(rank, why, "a process was refused");
                // It may have gone meanwhile.
                let _ = incoming.reject(&refusal(&told.differs(&own).unwrap_or_default()));
                if !met.knows(rank) {
                    // Of ranks beyond the world's only that there was one is kept.
                    met.note(rank.min(self.size()), Err(self.stranger(rank, why)));
                }
                continue;
            }
            if rank <= self.rank || rank >= self.size() || met.knows(rank) {
                continue;
            }
            if self.routes[rank].device != nic {
                let why = "it and this process have chosen different devices for each other";
                let _ = incoming.reject(&refusal(why));
                met.note(rank, Err(self.stranger(rank, why.to_owned())));
                continue;
            }
            let Ok(queues) = self.queues(nic) else {
                let why = self.missing(rank, "this NIC has no queue pair left".to_owned());
                met.note(rank, Err(why));
                continue;
            };
            // If this process can't accept, the other one asks again.
            if let Ok((queues, _)) = queues.accept(incoming, &own.to_bytes()).await {
                met.note(rank, Ok((queues, told.heap())));
            }
        }
    }

    /// Asks a process for a queue pair. Returns the queues, and that process's heap.
    async fn ask(&self, rank: usize) -> Result<(Queues, RemoteMemory), JoinError> {
        let Route { device: nic, address, .. } = &self.routes[rank];
        let (own, asked) = (self.told(*nic), ServiceId(service(rank, Purpose::OneSided)));
        let told = own.to_bytes();
        let (queues, answer) = self
            .again(rank, async || {
                let queues = self.queues(*nic);
                let queues = queues.map_err(|why| Attempt::Again(why.to_string()))?;
                let connected = queues.connect(address, asked, &told).await;
                connected.map_err(|why| match why {
                    ConnectError::Refused { ref private, .. } => match refused(private) {
                        Some(text) => Attempt::Stranger(text),
                        None => Attempt::Again(why.to_string()),
                    },
                    why => Attempt::Again(why.to_string()),
                })
            })
            .await?;
        let differs = match Told::read(&answer) {
            Some(told) if told.rank as usize == rank => match own.differs(&told) {
                None => return Ok((queues, told.heap())),
                Some(why) => why,
            },
            Some(told) => format!("it says that it is process {}", told.rank),
            None => "it has another version of this library".to_owned(),
        };
        Err(self.stranger(rank, differs))
    }

    /// Makes the queues for one-sided requests by a NIC.
    fn queues(&self, nic: usize) -> Result<Unconnected<Queues>, ResourceError> {
        let port = &self.ports[nic];
        port.domain.queues(&QueuesConfig {
            send_depth: REQUESTS,
            receive_depth: 1,
            ..QueuesConfig::new(&port.completions.borrow())
        })
    }

    /// The data about this process that others get when they connect to one of its NICs.
    fn told(&self, nic: usize) -> Told {
        let (rank, size) = (self.rank as u32, self.size() as u32);
        let heap = self.ports[nic].registered.remote().to_bytes();
        Told { rank, size, key: self.config.key, heap }
    }

    /// Maps the heap of another process, and grants it the mapping of this process's heap; `None`
    /// if the device maps no memory.
    async fn map(
        &self,
        rank: usize,
        connection: &Connection,
        heap: RemoteMemory,
    ) -> Result<Option<Mapped>, JoinError> {
        let port = self.port(rank);
        if !port.nic.capabilities().mapping {
            return Ok(None);
        }
        let failed = |why: String| self.missing(rank, format!("its memory can't be mapped: {why}"));
        connection.grant(&port.registered).map_err(|why| failed(why.to_string()))?;
        match timeout_at(self.deadline, connection.map(heap)).await {
            Ok(Ok(mapped)) => Ok(Some(mapped)),
            Ok(Err(ending)) => Err(failed(ending.to_string())),
            Err(_) => Err(failed("it did not grant it".to_owned())),
        }
    }
}

/// The data of a refusal, which says why a process was refused.
fn refusal(why: &str) -> Vec<u8> {
    [&MAGIC[..], why.as_bytes()].concat()
}

/// Why this process was refused, if the data of the refusal says so.
fn refused(private: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(private.strip_prefix(&MAGIC)?).ok()?;
    // The data of a refusal has zeros behind it.
    Some(text.trim_end_matches('\0').to_owned())
}
