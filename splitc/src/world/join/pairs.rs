//! Queue pairs between all processes for one-sided requests, and the mapping of heaps.

use std::collections::HashMap;

use doorbell_verbs::{
    ConnectError, Connection, Listener, Mapped, Queues, QueuesConfig, RemoteMemory, ServiceId,
};
use futures_util::future::try_join_all;
use tokio::time::timeout_at;

use super::membership::Attempt;
use super::told::{MAGIC, Told};
use super::{JoinError, Joining, ONE_SIDED, REQUESTS};

/// The queue pair between this process and another, and access to the other's heap.
pub(super) struct Pair {
    pub queues: Queues,
    pub heap: RemoteMemory,
    pub mapped: Option<Mapped>,
}

impl Joining<'_> {
    /// Connects a queue pair with each other process: this process asks the processes of lower
    /// rank, and the processes of higher rank ask this one.
    pub(super) async fn pairs(
        &self,
        mut listener: Listener,
    ) -> Result<HashMap<usize, Pair>, JoinError> {
        let below = try_join_all((0..self.rank).map(|rank| self.ask(rank)));
        let above = async {
            let mut pairs = HashMap::new();
            while pairs.len() < self.size() - 1 - self.rank {
                let missing = || {
                    let missing = self.rank + 1..self.size();
                    missing.into_iter().find(|rank| !pairs.contains_key(rank)).unwrap_or(0)
                };
                let Ok(incoming) = timeout_at(self.deadline, listener.accept()).await else {
                    return Err(self.missing(missing(), "it did not come".to_owned()));
                };
                let Some(told) = Told::read(incoming.private()) else { continue };
                let rank = told.rank as usize;
                if let Err(why) = self.admits(&told) {
                    tracing::warn!(rank, why, "a process was refused");
                    // It may have gone meanwhile.
                    let _ = incoming.reject(&refusal(why));
                    continue;
                }
                if rank <= self.rank || rank >= self.size() || pairs.contains_key(&rank) {
                    continue;
                }
                let Ok(queues) = self.domain.queues(&self.queues_config()) else {
                    return Err(self.missing(rank, "this NIC has no queue pair left".to_owned()));
                };
                // If this process can't accept, the other one asks again.
                self.check_heap(rank, told.heap())?;
                if let Ok((queues, _)) = queues.accept(incoming, &self.told().to_bytes()).await {
                    pairs.insert(rank, (queues, told.heap()));
                }
            }
            Ok(pairs)
        };
        let (below, above) = tokio::try_join!(below, above)?;
        let all = (0..self.rank).zip(below).chain(above);
        let opened = all.map(|(rank, (queues, heap))| async move {
            let mapped = self.map(rank, &queues.connection, heap).await?;
            Ok((rank, Pair { queues, heap, mapped }))
        });
        Ok(try_join_all(opened).await?.into_iter().collect())
    }

    /// Asks a process for a queue pair. Returns the queues, and that process's heap.
    async fn ask(&self, rank: usize) -> Result<(Queues, RemoteMemory), JoinError> {
        let told = self.told().to_bytes();
        let (queues, answer) = self
            .again(rank, async || {
                let queues = self.domain.queues(&self.queues_config());
                let queues = queues.map_err(|why| Attempt::Again(why.to_string()))?;
                let connected =
                    queues.connect(&self.addresses[rank], ServiceId(ONE_SIDED), &told).await;
                connected.map_err(|why| match why {
                    ConnectError::Refused { ref private, .. } => match refused(private) {
                        Some(text) => Attempt::Stranger(text),
                        None => Attempt::Again(why.to_string()),
                    },
                    why => Attempt::Again(why.to_string()),
                })
            })
            .await?;
        match Told::read(&answer) {
            Some(told) if told.rank as usize == rank && told.key == self.config.key => {
                self.check_heap(rank, told.heap())?;
                Ok((queues, told.heap()))
            }
            _ => {
                let why = "it has another key, another rank, or another version of this library";
                Err(self.stranger(rank, why.into()))
            }
        }
    }

    /// Checks that a process that asks belongs to this world. The error is for that process, which
    /// is told no more than it needs.
    fn admits(&self, told: &Told) -> Result<(), &'static str> {
        if told.key != self.config.key {
            return Err("the two have different keys");
        }
        if told.size as usize != self.size() {
            return Err("the two were given different numbers of addresses");
        }
        if told.heap().len() != self.heap.len() {
            return Err("the two have heaps of different lengths");
        }
        Ok(())
    }

    /// Checks that another process's heap has the length of this process's heap.
    fn check_heap(&self, rank: usize, heap: RemoteMemory) -> Result<(), JoinError> {
        let own = self.heap.len();
        if heap.len() == own {
            return Ok(());
        }
        let why = format!("its heap has {} bytes, and this one's {own}", heap.len());
        Err(self.stranger(rank, why))
    }

    pub(super) fn stranger(&self, rank: usize, why: String) -> JoinError {
        JoinError::Stranger { rank, address: self.addresses[rank].clone(), why }
    }

    fn queues_config(&self) -> QueuesConfig {
        QueuesConfig {
            send_depth: REQUESTS,
            receive_depth: 1,
            ..QueuesConfig::new(&self.completions)
        }
    }

    /// The data about this process that others get when they connect.
    fn told(&self) -> Told {
        let (rank, size) = (self.rank as u32, self.size() as u32);
        Told { rank, size, key: self.config.key, heap: self.registered.remote().to_bytes() }
    }

    /// Maps the heap of another process, and grants it the mapping of this process's heap; `None`
    /// if the device maps no memory.
    async fn map(
        &self,
        rank: usize,
        connection: &Connection,
        heap: RemoteMemory,
    ) -> Result<Option<Mapped>, JoinError> {
        if !self.nic.capabilities().mapping {
            return Ok(None);
        }
        let failed = |why: String| self.missing(rank, format!("its memory can't be mapped: {why}"));
        connection.grant(&self.registered).map_err(|why| failed(why.to_string()))?;
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
