//! The receiving side: a long body is pulled in blocks, or copied.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use doorbell_verbs::floor::{PooledRegion, RegionPool};
use doorbell_verbs::{Cause, Domain, Failed, FailedWhy, Failure, Region, Registered, Rights};
use futures_util::FutureExt;
use futures_util::stream::{self, FuturesUnordered, StreamExt};
use nix::errno::Errno;

use super::connection::PullConnection;
use super::error::PullError;
use super::near::NearProcess;
use super::service::Accepted;
use super::target::{Target, TargetPlace};
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

/// The bytes that are copied at a time on the way to memory of the program, which is then in the
/// processor's cache.
const BETWEEN: usize = 64 << 10;

/// The most bytes of memory for long bodies that are kept while they are not in use.
const KEPT: usize = 64 << 20;

/// The way to read a peer's memory through one device.
struct Reader {
    device: usize,
    pair: Accepted,
    /// The regions of the memory for the body, registered with the device.
    into: Vec<Registered>,
}

/// A body that was pulled.
#[derive(Debug)]
pub enum Pulled {
    Body(Bytes),
    /// The body is in the memory of the program that it was pulled into.
    InPlace,
}

/// The memory that a body is pulled into.
#[derive(Debug)]
enum Into {
    Pooled(PooledRegion),
    Target(Arc<Target>),
}

/// A long body that is being pulled, by several attempts if need be.
#[derive(Debug)]
pub struct Transfer {
    description: Description,
    len: usize,
    into: Into,
    /// The blocks that were not read yet.
    left: Vec<Block>,
}

/// A part of a body that one read pulls.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// The region of the memory here that the block comes into, by its place among these.
    region: usize,
    /// Where in the region.
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
    pub fn into_body(self) -> Result<Pulled, PullError> {
        self.into.body(self.len)
    }

    /// Returns the regions of the memory that the body is pulled into.
    fn regions(&self) -> Vec<Region> {
        match &self.into {
            Into::Pooled(pooled) => vec![pooled.region()],
            Into::Target(target) => target.regions().to_vec(),
        }
    }

    /// Returns the memory of the program that the body is pulled into, if it is.
    fn target(&self) -> Option<&Target> {
        match &self.into {
            Into::Pooled(_) => None,
            Into::Target(target) => Some(target),
        }
    }
}

impl Into {
    /// Returns where a byte of the body comes.
    fn place_of(&self, at: usize) -> Option<TargetPlace> {
        match self {
            Self::Pooled(_) => Some(TargetPlace { region: 0, at, room: usize::MAX }),
            Self::Target(target) => target.place_of(at),
        }
    }

    /// Copies a block of the body, from the byte `at` on, out of the memory of another process.
    fn copy(
        &mut self,
        process: &NearProcess,
        address: u64,
        at: usize,
        count: usize,
    ) -> Result<(), PullError> {
        let failed = |why: Errno| PullError::Read(why.to_string());
        match self {
            Self::Pooled(pooled) => {
                let copied = pooled.write(|into| process.read(address, &mut into[at..at + count]));
                // If somebody else has the memory, no body is made of it in the end.
                copied.unwrap_or(Ok(())).map_err(failed)
            }
            Self::Target(target) => {
                let mut between = vec![0; count.min(BETWEEN)];
                for begin in (0..count).step_by(BETWEEN) {
                    let between = &mut between[..BETWEEN.min(count - begin)];
                    let address = address.checked_add(begin as u64).ok_or(Errno::EFAULT);
                    let read = address.and_then(|address| process.read(address, between));
                    read.map_err(failed)?;
                    if !target.write(at + begin, between) {
                        return Err(PullError::NotWanted);
                    }
                }
                Ok(())
            }
        }
    }

    /// Returns the body of `len` bytes, all of which have come.
    ///
    /// # Errors
    /// When memory of the body may still be written.
    fn body(self, len: usize) -> Result<Pulled, PullError> {
        let Self::Pooled(pooled) = self else { return Ok(Pulled::InPlace) };
        let in_use = || PullError::Read("the memory for it is still written".to_owned());
        let frozen = pooled.freeze().ok_or_else(in_use)?;
        Ok(Pulled::Body(Bytes::from_owner(frozen).slice(..len)))
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

    /// Begins to pull a body of `len` bytes: into memory of the program that has room for it, or
    /// into the endpoint's, which is made when blocks come.
    pub fn begin(
        &self,
        description: Description,
        len: usize,
        target: Option<&Arc<Target>>,
    ) -> Transfer {
        let into = self.memory(len, target);
        let (mut from_first, mut left) = (0, Vec::new());
        for (piece, memory) in description.0.iter().enumerate() {
            let (all, mut begin) = (memory.len as usize, 0);
            while begin < all
                && let Some(TargetPlace { region, at, room }) = into.place_of(from_first + begin)
            {
                let len = (all - begin).min(self.limits.block).min(room);
                left.push(Block { region, at, piece, begin: begin as u64, len });
                begin += len;
            }
            from_first += all;
        }
        Transfer { description, len, into, left }
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
        let readers = self.readers(connections, &transfer.regions()).await?;
        let target = transfer.target();
        let registered = || readers.iter().flat_map(|reader| reader.into.iter().cloned());
        if target.is_some_and(|target| !target.is_registered(registered())) {
            return Err(PullError::NotWanted);
        }
        let mut reads = Vec::new();
        for (turn, block) in transfer.left.iter().enumerate() {
            let (readers, memory) = (&readers, &transfer.description.0[block.piece]);
            reads.push(async move {
                match target.is_some_and(Target::is_given_up) {
                    true => Err(PullError::NotWanted),
                    false => read(readers, turn, *block, memory).await,
                }
            });
        }
        // A read that fails does not end the other reads under way, which are waited for.
        let most = self.limits.blocks * readers.len();
        let done: Vec<_> = stream::iter(reads).buffered(most).collect().await;
        target.into_iter().for_each(Target::is_not_registered);
        for into in readers.into_iter().flat_map(|reader| reader.into) {
            // Memory that a read may still write is not handed out at the end.
            drop(into.revoke_now());
        }
        let mut outcomes = done.iter();
        transfer.left.retain(|_| outcomes.next().is_some_and(Result::is_err));
        let mut failed: Vec<_> = done.into_iter().filter_map(Result::err).collect();
        failed.sort_by_key(|why| !why.is_final());
        failed.into_iter().next().map_or(Ok(()), Err)
    }

    /// Returns the ways to read the sender's memory, one for each connection that is there. If none
    /// is, this waits for the first.
    async fn readers(
        &self,
        connections: &Connections,
        into: &[Region],
    ) -> Result<Vec<Reader>, PullError> {
        let all = connections.iter().enumerate();
        let readers = all.map(|(device, of)| self.reader(device, of.clone(), into));
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
        into: &[Region],
    ) -> Result<Reader, PullError> {
        let pair = connection.ok_or(PullError::PeerGone)?.get().await?;
        let domain = self.domains.get(device).ok_or(PullError::PeerGone)?;
        let registers = |region: &Region| domain.register(region.clone(), Rights::LOCAL_WRITE);
        let into = into.iter().map(registers).collect::<Result<_, _>>();
        let into = into.map_err(|why| no_room(&why))?;
        Ok(Reader { device, pair, into })
    }

    /// Copies a body of `len` bytes from the memory of a process of this machine: into memory of
    /// the program that has room for it, or into the endpoint's. Other tasks run in between.
    ///
    /// # Errors
    /// Returns an error when the process can't be read, or its sender has not told where the body
    /// is.
    pub async fn copy(
        &self,
        process: &NearProcess,
        Description(pieces): &Description,
        len: usize,
        target: Option<&Arc<Target>>,
    ) -> Result<Pulled, PullError> {
        let (mut into, mut at) = (self.memory(len, target), 0);
        let failed = |why: &str| PullError::Read(why.to_owned());
        for Memory { len, address, .. } in pieces {
            let address = address.ok_or_else(|| failed("its address was not told"))?;
            for begin in (0..*len).step_by(COPIED) {
                let count = (len - begin).min(COPIED as u64) as usize;
                let place = address.checked_add(begin);
                let place = place.ok_or_else(|| failed("it has no such addresses"))?;
                into.copy(process, place, at, count)?;
                at += count;
                tokio::task::yield_now().await;
            }
        }
        into.body(len)
    }

    /// Returns the memory for a body of `len` bytes.
    fn memory(&self, len: usize, target: Option<&Arc<Target>>) -> Into {
        let pooled = || Into::Pooled(self.pool.take(len));
        target.map_or_else(pooled, |target| Into::Target(target.clone()))
    }
}

/// Reads a block through one device, or through the next if that fails.
///
/// # Errors
/// The error is [final](PullError::is_final) if the sender has refused it through each device.
async fn read(
    readers: &[Reader],
    turn: usize,
    Block { region, at, begin, len, .. }: Block,
    memory: &Memory,
) -> Result<(), PullError> {
    let mut failed = None;
    for step in 0..readers.len() {
        let Reader { device, pair, into } = &readers[(turn + step) % readers.len()];
        let Some(remote) = memory.remote.get(*device) else { continue };
        let place = into[region].slice(at..at + len).map_err(|why| no_room(&why))?;
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
