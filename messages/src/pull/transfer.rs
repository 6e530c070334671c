//! The receiving side: a long body is pulled in blocks.

use bytes::Bytes;
use doorbell_verbs::floor::RegionPool;
use doorbell_verbs::{Domain, QueuePair, Registered, RemoteMemory, Rights};
use futures_util::stream::{self, StreamExt};

use super::connection::PullConnection;
use super::error::PullError;
use super::near::NearProcess;
use crate::limits::Limits;
use crate::wire::{Description, Part};

/// Pulls bodies into memory that is used again when the program has dropped them.
#[derive(Debug)]
pub struct Puller {
    domain: Domain,
    pool: RegionPool,
    limits: Limits,
}

/// The bytes that are copied at a time from another process, before other tasks run.
const COPIED: usize = 1 << 20;

/// The most bytes of memory for long bodies that are kept while they are not in use.
const KEPT: usize = 64 << 20;

impl Puller {
    pub fn new(domain: Domain, limits: Limits) -> Self {
        Self { domain, pool: RegionPool::new(KEPT), limits }
    }

    /// Returns the domain in which bodies are registered.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Pulls a body of `len` bytes, and waits until no read is under way any more.
    ///
    /// # Errors
    /// Returns an error when there is no connection, or a read fails.
    pub async fn pull(
        &self,
        connection: &PullConnection,
        Description(parts): Description,
        len: usize,
    ) -> Result<Bytes, PullError> {
        let pair = connection.get().await?;
        let pooled = self.pool.take(len);
        let registered = self.domain.register(pooled.region(), Rights::LOCAL_WRITE);
        let registered = registered.map_err(|why| PullError::NoRoom(why.to_string()))?;
        let (mut at, mut memories) = (0, Vec::new());
        for part in parts {
            let begin = at;
            at += part.len() as usize;
            match part {
                Part::Here(bytes) => {
                    let written = registered.write_at(begin, &bytes);
                    written.map_err(|why| PullError::NoRoom(why.to_string()))?;
                }
                Part::There(memory, _) => memories.push((begin, memory)),
            }
        }
        self.read(&pair, &registered, &memories).await?;
        let revoked = registered.revoke_now();
        drop(revoked.map_err(|why| PullError::NoRoom(why.to_string()))?);
        let still_read = || PullError::Read("a read is still under way".to_owned());
        let frozen = pooled.freeze().ok_or_else(still_read)?;
        Ok(Bytes::from_owner(frozen).slice(..len))
    }

    /// Copies a body of `len` bytes from the memory of a process of this machine. Other tasks run
    /// in between.
    ///
    /// # Errors
    /// Returns an error when the process can't be read, or its sender has not told where the body
    /// is.
    pub async fn copy(
        &self,
        process: NearProcess,
        Description(parts): &Description,
        len: usize,
    ) -> Result<Bytes, PullError> {
        let failed = |why: &dyn std::fmt::Display| PullError::Read(why.to_string());
        let (mut pooled, mut at) = (self.pool.take(len), 0);
        for part in parts {
            match part {
                Part::Here(bytes) => {
                    pooled.write(|into| into[at..at + bytes.len()].copy_from_slice(bytes));
                    at += bytes.len();
                }
                Part::There(memory, address) => {
                    let address = address.ok_or_else(|| failed(&"its address was not told"))?;
                    for begin in (0..memory.len()).step_by(COPIED) {
                        let count = (memory.len() - begin).min(COPIED as u64) as usize;
                        let copied = pooled
                            .write(|into| process.read(address + begin, &mut into[at..at + count]));
                        copied.unwrap_or(Ok(())).map_err(|why| failed(&why))?;
                        at += count;
                        tokio::task::yield_now().await;
                    }
                }
            }
        }
        let frozen = pooled.freeze().ok_or_else(|| failed(&"its memory is in use"))?;
        Ok(Bytes::from_owner(frozen).slice(..len))
    }

    /// Reads the sender's memories to their places, block by block.
    async fn read(
        &self,
        pair: &QueuePair,
        into: &Registered,
        memories: &[(usize, RemoteMemory)],
    ) -> Result<(), PullError> {
        let reads = self.blocks(memories).into_iter().map(|(at, block)| async move {
            let place = into.slice(at..at + block.len() as usize);
            let place = place.map_err(|why| PullError::Read(why.to_string()))?;
            pair.read(place, block).await.map(drop).map_err(|why| PullError::Read(why.to_string()))
        });
        // A read that fails does not end the other reads under way, which are waited for.
        let done: Vec<_> = stream::iter(reads).buffered(self.limits.blocks).collect().await;
        done.into_iter().collect()
    }

    /// Cuts the sender's memories into blocks, each with its place in the body.
    fn blocks(&self, memories: &[(usize, RemoteMemory)]) -> Vec<(usize, RemoteMemory)> {
        let mut blocks = Vec::new();
        for &(at, memory) in memories {
            let len = memory.len() as usize;
            for begin in (0..len).step_by(self.limits.block) {
                let block = memory.at(begin as u64, (len - begin).min(self.limits.block) as u64);
                blocks.push((at + begin, block.expect("the block is within the memory")));
            }
        }
        blocks
    }
}
