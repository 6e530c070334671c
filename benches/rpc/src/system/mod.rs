//! The systems that are measured: an echo server of each, and callers of it.

pub mod doorbell;
mod quinn;
mod tarpc;
mod tonic;

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::args::{Device, End, System};
use crate::cable::{ADDRESSES, INTERFACES};
use crate::case::Case;

/// Where an end is, and what it is to take.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub end: End,
    pub system: System,
    pub device: Device,
    /// The length of bodies.
    pub size: usize,
    /// The MTU of the veth pair.
    pub mtu: u16,
    /// The number of the client process, which both ends know.
    pub client: u32,
    /// How many clients connect.
    pub clients: usize,
    /// How long the server has calls wait, if that is bounded.
    pub shed_after: Option<Duration>,
}

impl Place {
    fn number(&self) -> usize {
        usize::from(self.end == End::Server)
    }

    /// The interface of this end.
    fn interface(&self) -> &'static str {
        INTERFACES[self.number()]
    }

    /// The IP address of this end.
    fn address(&self) -> &'static str {
        if self.device.is_loopback() { "127.0.0.1" } else { ADDRESSES[self.number()] }
    }
}

/// Where a server takes calls, as clients are told.
#[derive(Serialize, Deserialize, Debug)]
pub struct Address {
    /// A name of Doorbell's, or a socket address.
    pub at: String,
    /// The certificate of a server that has one, in DER.
    pub certificate: Option<Vec<u8>>,
}

impl Address {
    fn plain(at: impl ToString) -> Self {
        Self { at: at.to_string(), certificate: None }
    }
}

/// Whoever makes calls over a connection, one at a time.
pub trait Caller: Send + 'static {
    /// Calls the server's method, which answers with the body.
    fn echo(&mut self, body: Bytes) -> impl Future<Output = anyhow::Result<Bytes>> + Send;
}

/// A connection to an echo server.
trait Connection {
    type Caller: Caller;

    /// A caller over the connection, which is shared by all its callers.
    async fn caller(&self) -> anyhow::Result<Self::Caller>;
}

/// A server that answers while this lives.
pub struct Serving {
    pub address: Address,
    _server: Box<dyn std::any::Any>,
}

impl Serving {
    fn new(address: Address, server: impl std::any::Any) -> Self {
        Self { address, _server: Box::new(server) }
    }
}

/// Starts a server in this runtime.
pub async fn serve(place: &Place) -> anyhow::Result<Serving> {
    match place.system {
        System::Doorbell | System::DoorbellTask => doorbell::serve(place).await,
        System::Tonic => tonic::serve(place).await,
        System::Tarpc | System::TarpcInline => tarpc::serve(place).await,
        System::Quinn => quinn::serve(place),
    }
}

/// Connects to a server, and has callers of the connection measured.
pub async fn measure<M: Measure>(
    place: &Place,
    server: &Address,
    measure: M,
) -> anyhow::Result<M::Measured> {
    let callers = measure.case().in_flight;
    match place.system {
        System::Doorbell | System::DoorbellTask => {
            measure.of(all(doorbell::connect(place, server).await?, callers).await?).await
        }
        System::Tonic => {
            measure.of(all(tonic::connect(place, server).await?, callers).await?).await
        }
        System::Tarpc | System::TarpcInline => {
            measure.of(all(tarpc::connect(server).await?, callers).await?).await
        }
        System::Quinn => {
            measure.of(all(quinn::connect(place, server).await?, callers).await?).await
        }
    }
}

/// What is done with the callers of any system.
pub trait Measure {
    type Measured;

    fn case(&self) -> &Case;

    async fn of<C: Caller>(self, callers: Vec<C>) -> anyhow::Result<Self::Measured>;
}

async fn all<C: Connection>(connection: C, callers: usize) -> anyhow::Result<Vec<C::Caller>> {
    let mut all = Vec::with_capacity(callers);
    for _ in 0..callers {
        all.push(connection.caller().await?);
    }
    Ok(all)
}
