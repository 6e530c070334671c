//! The receiving side: a long body is pulled in blocks, or copied.

use std::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use doorbell_verbs::floor::RegionPool;
use doorbell_verbs::{Domain, Region, Registered, Rights};
use futures_util::FutureExt;
use futures_util::stream::{self, FuturesUnordered, StreamExt};

use super::connection::PullConnection;
use super::error::PullError;
use super::near::NearProcess;
use super::service::Accepted;
use crate::limits::Limits;
use crate::wire::{Description, Memory};

/// Pulls bodies into memory that is used again when the program has dropped them.
#[derive(Debug)]
pub struct Puller {
    /// The domain of each device of the endpoint.
    domains: Vec<Domain>,
    pool: RegionPool,
    limits: Limits,
}

/// The connections over which one peer's memory is read, in the order of the devices that carry
/// them. A place without a connection is one of a device that has failed.
pub type Connections = Vec<Option<Arc<PullConnection>>>;

/// The bytes that are copied at a time from another process, before other tasks run.
const COPIED: usize = 1 << 20;

/// The most bytes of memory for long bodies that are kept while they are not in use.
const KEPT: usize = 64 << 20;

/// The way to read a peer's memory through one device.
struct Reader {
    device: usize,
    pair: Accepted,
    /// The memory of the body here, registered with the device.
    into: Registered,
}

/// A part of a body that one read pulls.
struct Block<'m> {
    /// Where the block is in the body.
    at: usize,
    memory: &'m Memory,
    /// Where the block is in the memory.
    begin: u64,
    len: usize,
}

impl Puller {
    pub fn new(domains: Vec<Domain>, limits: Limits) -> Self {
        Self { domains, pool: RegionPool::new(KEPT), limits }
    }

    /// Returns the domains in which bodies are registered, one for each device.
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// Pulls a body of `len` bytes, and waits until no read is under way any more. Blocks go over
    /// all connections that are there, in turn. A block that can't be read over one is read over
    /// another.
    ///
    /// # Errors
    /// Returns an error when there is no connection, or no connection reads some block.
    pub async fn pull(
        &self,
        connections: &Connections,
        Description(pieces): &Description,
        len: usize,
    ) -> Result<Bytes, PullError> {
        let pooled = self.pool.take(len);
        let (region, mut at, mut blocks) = (pooled.region(), 0, Vec::new());
        for piece in pieces {
            self.cut(at, piece, &mut blocks);
            at += piece.len as usize;
        }
        let readers = self.readers(connections, &region).await?;
        let mut reads = Vec::new();
        for (turn, block) in blocks.iter().enumerate() {
            reads.push(read(&readers, turn, block));
        }
        // A read that fails does not end the other reads under way, which are waited for.
        let most = self.limits.blocks * readers.len();
        let done: Vec<_> = stream::iter(reads).buffered(most).collect().await;
        for reader in readers {
            drop(reader.into.revoke_now().map_err(|why| no_room(&why))?);
        }
        drop(region);
        done.into_iter().collect::<Result<(), _>>()?;
        let still_read = || PullError::Read("a read is still under way".to_owned());
        Ok(Bytes::from_owner(pooled.freeze().ok_or_else(still_read)?).slice(..len))
    }

    /// Returns the ways to read the sender's memory, one for each connection that is there. If none
    /// is, this waits for the first.
    async fn readers(
        &self,
        connections: &Connections,
        into: &Region,
    ) -> Result<Vec<Reader>, PullError> {
        let all = connections.iter().enumerate();
        let readers = all.map(|(device, of)| self.reader(device, of.clone(), into.clone()));
        let mut coming: FuturesUnordered<_> = readers.collect();
        let (mut readers, mut failed) = (Vec::new(), PullError::PeerGone);
        loop {
            let next = match readers.is_empty() {
                true => coming.next().await,
                false => coming.next().now_or_never().flatten(),
            };
            match next {
                Some(Ok(reader)) => readers.push(reader),
                Some(Err(why)) => failed = why,
                None if readers.is_empty() => return Err(failed),
                None => break,
            }
        }
        readers.sort_unstable_by_key(|reader| reader.device);
        Ok(readers)
    }

    /// Returns the way to read the sender's memory through a device.
    async fn reader(
        &self,
        device: usize,
        connection: Option<Arc<PullConnection>>,
        into: Region,
    ) -> Result<Reader, PullError> {
        let pair = connection.ok_or(PullError::PeerGone)?.get().await?;
        let domain = self.domains.get(device).ok_or(PullError::PeerGone)?;
        let into = domain.register(into, Rights::LOCAL_WRITE).map_err(|why| no_room(&why))?;
        Ok(Reader { device, pair, into })
    }

    /// Cuts memory of the sender that belongs at a place of the body into blocks.
    fn cut<'m>(&self, at: usize, memory: &'m Memory, blocks: &mut Vec<Block<'m>>) {
        let all = memory.len as usize;
        for begin in (0..all).step_by(self.limits.block) {
            let len = (all - begin).min(self.limits.block);
            blocks.push(Block { at: at + begin, memory, begin: begin as u64, len });
        }
    }

    /// Copies a body of `len` bytes from the memory of a process of this machine. Other tasks run
    /// in between.
    ///
    /// # Errors
    /// Returns an error when the process can't be read, or its sender has not told where the body
    /// is.
    pub async fn copy(
        &self,
        process: &NearProcess,
        Description(pieces): &Description,
        len: usize,
    ) -> Result<Bytes, PullError> {
        let (mut pooled, mut at) = (self.pool.take(len), 0);
        let failed = |why: &str| PullError::Read(why.to_owned());
        for Memory { len, address, .. } in pieces {
            let address = address.ok_or_else(|| failed("its address was not told"))?;
            for begin in (0..*len).step_by(COPIED) {
                let count = (len - begin).min(COPIED as u64) as usize;
                let place = address.checked_add(begin);
                let place = place.ok_or_else(|| failed("it has no such addresses"))?;
                let copied = pooled.write(|into| process.read(place, &mut into[at..at + count]));
                copied.unwrap_or(Ok(())).map_err(|why| failed(&why.to_string()))?;
                at += count;
                tokio::task::yield_now().await;
            }
        }
        let in_use = || PullError::Read("the memory for it is in use".to_owned());
        Ok(Bytes::from_owner(pooled.freeze().ok_or_else(in_use)?).slice(..len))
    }
}

/// Reads a block through one device, or through the next if that fails.
async fn read(readers: &[Reader], turn: usize, block: &Block<'_>) -> Result<(), PullError> {
    let &Block { at, memory, begin, len } = block;
    let mut failed = "the sender has not told how".to_owned();
    for step in 0..readers.len() {
        let Reader { device, pair, into } = &readers[(turn + step) % readers.len()];
        let Some(remote) = memory.remote.get(*device) else { continue };
        let place = into.slice(at..at + len).map_err(|why| no_room(&why))?;
        let remote = remote.at(begin, len as u64).map_err(|why| no_room(&why))?;
        match pair.read(place, remote).await {
            Ok(_) => return Ok(()),
            Err(why) => failed = why.to_string(),
        }
    }
    Err(PullError::Read(failed))
}

fn no_room(why: &dyn Display) -> PullError {
    PullError::NoRoom(why.to_string())
}
