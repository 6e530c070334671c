//! The receiving side: a long body is pulled in blocks, or copied.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use doorbell_verbs::floor::{PooledRegion, RegionPool};
use doorbell_verbs::{Cause, Domain, Failed, FailedWhy, Failure, Region, Registered, Rights};
use futures_util::FutureExt;
use futures_util::stream::{self, FuturesUnordered, StreamExt};

use super::connection::PullConnection;
use super::error::PullError;
use super::near::NearProcess;
use super::service::Accepted;
use crate::tagged::limits::Limits;
use crate::tagged::wire::{Description, Memory};

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

/// A long body that is being pulled, by several attempts if need be.
#[derive(Debug)]
pub struct Transfer {
    description: Description,
    len: usize,
    pooled: PooledRegion,
    /// The blocks that were not read yet.
    left: Vec<Block>,
}

/// A part of a body that one read pulls.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// Where the block is in the body.
    at: usize,
    /// The place of the block's memory among the pieces of the sender's.
    piece: usize,
    /// Where the block is in the memory.
    begin: u64,
    len: usize,
}

impl Transfer {
    /// Returns how many blocks were not read yet.
    pub fn left(&self) -> usize {
        self.left.len()
    }

    /// Returns the body, all blocks of which were read.
    ///
    /// # Errors
    /// When memory of the body may still be written.
    pub fn into_body(self) -> Result<Bytes, PullError> {
        let still_read = || PullError::Read("a read is still under way".to_owned());
        Ok(Bytes::from_owner(self.pooled.freeze().ok_or_else(still_read)?).slice(..self.len))
    }
}

impl Puller {
    pub fn new(domains: Vec<Domain>, limits: Limits) -> Self {
        Self { domains, pool: RegionPool::new(KEPT), limits }
    }

    /// Returns the domains in which bodies are registered, one for each device.
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// Returns the time for which nothing of a body may come before it is given up.
    pub fn patience(&self) -> Duration {
        self.limits.patience
    }

    /// Begins to pull a body of `len` bytes. Its memory is made when blocks come.
    pub fn begin(&self, description: Description, len: usize) -> Transfer {
        let (mut at, mut left) = (0, Vec::new());
        for (piece, memory) in description.0.iter().enumerate() {
            let all = memory.len as usize;
            for begin in (0..all).step_by(self.limits.block) {
                let len = (all - begin).min(self.limits.block);
                left.push(Block { at: at + begin, piece, begin: begin as u64, len });
            }
            at += all;
        }
        Transfer { description, len, pooled: self.pool.take(len), left }
    }

    /// Pulls what is left of a body, and waits until no read is under way any more. Blocks go over
    /// all connections that are there, in turn. A block that can't be read over one is read over
    /// another.
    ///
    /// # Errors
    /// Returns an error when there is no connection, or no connection reads some block. What was
    /// read counts all the same.
    pub async fn go_on(
        &self,
        transfer: &mut Transfer,
        connections: &Connections,
    ) -> Result<(), PullError> {
        let Transfer { description, pooled, left, .. } = transfer;
        let region = pooled.region();
        let readers = self.readers(connections, &region).await?;
        let mut reads = Vec::new();
        for (turn, block) in left.iter().enumerate() {
            reads.push(read(&readers, turn, *block, &description.0[block.piece]));
        }
        // A read that fails does not end the other reads under way, which are waited for.
        let most = self.limits.blocks * readers.len();
        let done: Vec<_> = stream::iter(reads).buffered(most).collect().await;
        for reader in readers {
            // Memory that a read may still write is not handed out at the end.
            drop(reader.into.revoke_now());
        }
        let mut outcomes = done.iter();
        left.retain(|_| outcomes.next().is_some_and(Result::is_err));
        let mut failed: Vec<_> = done.into_iter().filter_map(Result::err).collect();
        failed.sort_by_key(|why| !why.is_final());
        failed.into_iter().next().map_or(Ok(()), Err)
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
///
/// # Errors
/// The error is [final](PullError::is_final) if the sender has refused it through each device.
async fn read(
    readers: &[Reader],
    turn: usize,
    Block { at, begin, len, .. }: Block,
    memory: &Memory,
) -> Result<(), PullError> {
    let mut failed = None;
    for step in 0..readers.len() {
        let Reader { device, pair, into } = &readers[(turn + step) % readers.len()];
        let Some(remote) = memory.remote.get(*device) else { continue };
        let place = into.slice(at..at + len).map_err(|why| no_room(&why))?;
        let remote = remote.at(begin, len as u64).map_err(|why| no_room(&why))?;
        match pair.read(place, remote).await {
            Ok(_) => return Ok(()),
            Err(why) if is_refused(&why) => {
                failed.get_or_insert(PullError::Refused(why.to_string()));
            }
            Err(why) => failed = Some(PullError::Read(why.to_string())),
        }
    }
    Err(failed.unwrap_or_else(|| PullError::Refused("the sender has not told how".to_owned())))
}

/// Returns whether a read has failed because of what it asks for, and not of its connection.
fn is_refused(failed: &Failed) -> bool {
    let refused = |cause| {
        matches!(cause, Cause::PeerAccess | Cause::PeerInvalidRequest | Cause::PeerOperation)
    };
    match failed.why() {
        FailedWhy::Carried(Failure::Broke(cause)) => refused(cause),
        FailedWhy::Beyond { .. } => true,
        _ => false,
    }
}

fn no_room(why: &dyn Display) -> PullError {
    PullError::NoRoom(why.to_string())
}
