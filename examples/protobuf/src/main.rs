//! A service of RPC whose messages are those of Protocol Buffers, by a codec that calls prost.
//!
//! `cargo run --release -p doorbell-protobuf` runs server and client in one process, over UDP. In
//! processes of their own, on one machine or several:
//!
//! ```text
//! cargo run --release -p doorbell-protobuf -- serve udp:127.0.0.1:5000
//! cargo run --release -p doorbell-protobuf -- call udp:127.0.0.1:5000#7
//! ```
//!
//! The messages are declared by prost's derive. Those that `prost-build` generates from a `.proto`
//! file are of the same kind, and need no other codec.

use std::io::{self, Write};

use anyhow::{Result, bail};
use bytes::{Bytes, BytesMut};
use doorbell::rpc::{self, Channel, Codec, CodecError, Server, Status, Streaming};
use futures_util::stream;

/// The codec of all messages of Protocol Buffers.
enum Protobuf {}

impl<M: prost::Message + Default + 'static> Codec<M> for Protobuf {
    fn encode(message: &M, into: &mut BytesMut) -> Result<(), CodecError> {
        into.reserve(message.encoded_len());
        Ok(message.encode(into)?)
    }

    fn decode(bytes: Bytes) -> Result<M, CodecError> {
        Ok(M::decode(bytes)?)
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct Place {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(double, tag = "2")]
    latitude: f64,
    #[prost(double, tag = "3")]
    longitude: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct FindRequest {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ListRequest {
    /// The places further south are left out, if this is there.
    #[prost(double, optional, tag = "1")]
    north_of: Option<f64>,
}

#[rpc::service(name = "example.Atlas", codec = Protobuf)]
trait Atlas {
    /// The place of a name.
    async fn find(&self, request: FindRequest) -> Result<Place, Status>;

    /// All places, one after the other.
    async fn list(&self, request: ListRequest) -> Result<Streaming<Place>, Status>;
}

struct Capitals(Vec<Place>);

impl Capitals {
    fn new() -> Self {
        let places =
            [("Wellington", -41.29, 174.78), ("Lima", -12.05, -77.04), ("Oslo", 59.91, 10.75)];
        let place = |(name, latitude, longitude): (&str, _, _)| Place {
            name: name.to_owned(),
            latitude,
            longitude,
        };
        Self(places.map(place).to_vec())
    }
}

impl Atlas for Capitals {
    async fn find(&self, FindRequest { name }: FindRequest) -> Result<Place, Status> {
        let found = self.0.iter().find(|place| place.name == name).cloned();
        found.ok_or_else(|| Status::not_found(format!("the atlas has no place `{name}`")))
    }

    async fn list(&self, request: ListRequest) -> Result<Streaming<Place>, Status> {
        let least = request.north_of.unwrap_or(-90.0);
        let places = self.0.iter().filter(|place| place.latitude >= least);
        let places: Vec<_> = places.cloned().map(Ok).collect();
        Ok(Streaming::new(stream::iter(places)))
    }
}

async fn serve(device: &str) -> Result<Server> {
    let atlas = AtlasServer::new(Capitals::new());
    Ok(Server::builder().add_service(atlas).service(7).open(device).await?)
}

async fn call(server: &str) -> Result<()> {
    let atlas = AtlasClient::new(Channel::connect(server).await?);
    let Place { name, latitude, longitude } =
        atlas.find(FindRequest { name: "Oslo".to_owned() }).await?;
    writeln!(io::stdout(), "{name} is at {latitude}, {longitude}")?;
    let mut places = atlas.list(ListRequest { north_of: Some(-20.0) }).await?;
    while let Some(place) = places.message().await? {
        writeln!(io::stdout(), "{} is north of -20", place.name)?;
    }
    let missed = atlas.find(FindRequest { name: "Atlantis".to_owned() }).await;
    writeln!(io::stdout(), "{}", missed.expect_err("no atlas has it"))?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            let server = serve("udp:127.0.0.1:0").await?;
            call(&server.name().to_string()).await
        }
        ["serve", device] => {
            let server = serve(device).await?;
            writeln!(io::stdout(), "serving as {}", server.name())?;
            std::future::pending().await
        }
        ["call", server] => call(server).await,
        _ => bail!("protobuf takes no arguments, or `serve DEVICE`, or `call SERVER`"),
    }
}
