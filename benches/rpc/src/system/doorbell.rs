//! Doorbell's RPC.

use std::time::Instant;

use anyhow::Context;
use bytes::Bytes;
use doorbell::am::EndpointBuilder;
use doorbell::rpc::{Channel, Client, Code, Method, Raw, Router, Server};
use doorbell::verbs::Config;

use super::{Address, Caller, Connection, Place, Serving};
use crate::args::{Device, System};
use crate::ends::Refused;
use crate::overload;

const ECHO: Method<Bytes, Bytes, Raw> = Method::new("bench/echo");

/// Keeps the processor busy for [`overload::WORK`].
const WORK: Method<Bytes, Bytes, Raw> = Method::new("bench/work");

/// The longest body that an endpoint takes which is not configured to take longer ones.
const USUAL: usize = 4096;

/// The receives of an endpoint that takes longer bodies than usual, each of which holds a body.
const LONG_RECEIVES: usize = 64;

pub async fn serve(place: &Place) -> anyhow::Result<Serving> {
    let mut router = Router::new().unary(ECHO, async |request| Ok(request.into_inner())).unary(
        WORK,
        async |request| {
            let began = Instant::now();
            while began.elapsed() < overload::WORK {
                std::hint::spin_loop();
            }
            Ok(request.into_inner())
        },
    );
    if place.system == System::Doorbell {
        router = router.inline(ECHO).inline(WORK);
    }
    let device = device(place);
    let mut builder = Server::builder().add_service(router);
    if let Some(wait) = place.shed_after {
        builder = builder.shed_after(wait);
    }
    let server = builder.endpoint(|endpoint| configured(endpoint, place)).open(&device).await;
    let server = server.with_context(|| format!("opening {device} for a server"))?;
    Ok(Serving::new(Address::plain(server.name()), server))
}

pub async fn connect(place: &Place, server: &Address) -> anyhow::Result<Client<Channel>> {
    let builder = Channel::builder().device(device(place));
    let builder = builder.endpoint(|endpoint| configured(endpoint, place));
    let channel = builder.connect(&*server.at).await;
    Ok(Client::new(channel.with_context(|| format!("connecting to {}", server.at))?))
}

/// A client whose calls have the server work.
#[derive(Clone, Debug)]
pub struct Worker(Client<Channel>);

impl Worker {
    /// Has the server work. Returns whether the server did, rather than refuse the call.
    pub async fn work(&self) -> anyhow::Result<bool> {
        match self.0.unary(WORK, Bytes::new()).await {
            Ok(_) => Ok(true),
            Err(why) if why.code() == Code::ResourceExhausted => Ok(false),
            Err(why) => Err(why.into()),
        }
    }
}

pub async fn connect_worker(place: &Place, server: &Address) -> anyhow::Result<Worker> {
    connect(place, server).await.map(Worker)
}

/// A channel on a port of its own, as another client process would have.
pub async fn connect_another(place: &Place, server: &Address) -> anyhow::Result<Channel> {
    let builder = Channel::builder().device(format!("udp:{}:0", place.address()));
    let channel = builder.connect(&*server.at).await;
    channel.with_context(|| format!("connecting one more client to {}", server.at))
}

/// The endpoint with room for what the place takes, and otherwise as it is by default.
fn configured(endpoint: EndpointBuilder, place: &Place) -> EndpointBuilder {
    let usual = Config::default();
    let endpoint = match place.clients + place.clients / 8 {
        queue_pairs if queue_pairs > usual.queue_pairs => {
            endpoint.nic(Config { queue_pairs, ..usual })
        }
        _ => endpoint,
    };
    if place.size > USUAL { endpoint.payload(place.size).receives(LONG_RECEIVES) } else { endpoint }
}

fn device(place: &Place) -> String {
    match place.device {
        Device::Shm => format!("shm:rpc-bench-{}/{}", place.client, place.end.name()),
        Device::Packet => format!("packet:{}", place.interface()),
        Device::PacketV2 => format!("packet-v2:{}", place.interface()),
        // Other ports than RoCE's own reach each other and not that.
        _ => format!("udp:{}:0", place.address()),
    }
}

impl Connection for Client<Channel> {
    type Caller = Self;

    async fn caller(&self) -> anyhow::Result<Self> {
        Ok(self.clone())
    }
}

impl Caller for Client<Channel> {
    async fn echo(&mut self, body: Bytes) -> anyhow::Result<Bytes> {
        match self.unary(ECHO, body).await {
            Ok(response) => Ok(response.into_inner()),
            Err(why) if why.code() == Code::ResourceExhausted => {
                Err(Refused(why.to_string()).into())
            }
            Err(why) => Err(why.into()),
        }
    }
}
