//! Bulk connections, over which long bodies are written by RDMA.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use doorbell_verbs::{
    ConnectionState, Domain, Name, Nic, QueuePair, QueuePairConfig, Region, Registered,
    RemoteMemory, Rights, ServiceId,
};
use futures_util::stream::{self, StreamExt};

use crate::meters;
use crate::status::Status;

/// The most bytes of one RDMA write. Longer bodies are written in parts.
const PART: usize = 1 << 20;
/// The most RDMA writes of one body that are under way at a time.
const AT_ONCE: usize = 4;

/// A reliable connection of the NIC over which either end writes into memory that the other end has
/// registered. Separate from the connection for messages, so that long bodies hold up no messages.
#[derive(Debug)]
pub struct BulkConnection {
    pair: QueuePair,
    domain: Domain,
}

impl BulkConnection {
    /// Wraps a queue pair that is connected, whose memory is registered in `domain`.
    pub fn of(pair: QueuePair, domain: Domain) -> Self {
        Self { pair, domain }
    }

    /// Connects to the server at an address, for a session. `service` is the number at which the
    /// server listens for bulk connections.
    pub async fn connect(
        nic: &Nic,
        address: &str,
        service: ServiceId,
        session: u64,
    ) -> Result<Self, Status> {
        let domain = nic.domain();
        let failed = |why: &dyn std::fmt::Display| {
            Status::unavailable(format!(
                "connecting to {address} for bodies that are too long for messages: {why}"
            ))
        };
        let pair = domain.queue_pair(&QueuePairConfig::default()).map_err(|why| failed(&why))?;
        let connected = pair.connect(Name::at(address, service.0), &session.to_be_bytes()).await;
        let (pair, _) = connected.map_err(|why| failed(&why))?;
        Ok(Self { pair, domain })
    }

    /// Registers memory, so that the other end may write into it.
    ///
    /// # Errors
    /// When the NIC has as many registrations as it may have.
    pub fn lend(&self, region: Region) -> Result<Registered, Status> {
        self.domain.register(region, Rights::REMOTE_WRITE).map_err(|why| {
            Status::resource_exhausted(format!("registering memory for a body: {why}"))
        })
    }

    /// Writes a body into memory that the other end has registered. Once `given_up` is true, no
    /// further part is begun. When this returns, no write is under way any more.
    ///
    /// # Errors
    /// When the connection ends, or the body is given up.
    pub async fn write(
        &self,
        body: &Bytes,
        to: RemoteMemory,
        given_up: &AtomicBool,
    ) -> Result<(), Status> {
        let begins = (0..body.len()).step_by(PART);
        let begins = begins.take_while(|_| !given_up.load(Ordering::Relaxed));
        let parts = begins.map(|begin| {
            let part = body.slice(begin..body.len().min(begin + PART));
            async move {
                let there = to.at(begin as u64, part.len() as u64).map_err(|why| {
                    Status::internal(format!("the other end has lent too little memory: {why}"))
                })?;
                self.pair.write(part, there).await.map(drop).map_err(|why| {
                    Status::unavailable(format!("writing a body of {} bytes: {why}", body.len()))
                })
            }
        });
        // A part that fails does not end the other parts under way, which are waited for.
        let written: Vec<_> = stream::iter(parts).buffered(AT_ONCE).collect().await;
        let all = written.len() == body.len().div_ceil(PART);
        written.into_iter().collect::<Result<(), _>>()?;
        if !all {
            return Err(Status::cancelled("the body was given up while it was written"));
        }
        meters::body_sent(body.len());
        Ok(())
    }

    /// Whether the connection has not ended.
    pub fn is_up(&self) -> bool {
        matches!(self.pair.connection().state(), ConnectionState::Connected)
    }
}
