//! tarpc: bincode over one TCP connection.

use anyhow::Context as _;
use bytes::Bytes;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tarpc::context::{self, Context};
use tarpc::serde_transport::{self, Transport};
use tarpc::server::{BaseChannel, Channel};
use tarpc::{client, server};
use tokio::net::{TcpListener, TcpStream};
use tokio_serde::formats::Bincode;
use tokio_util::codec::LengthDelimitedCodec;

use super::{Address, Caller, Connection, Place, Serving};
use crate::args::System;
use crate::case::LONGEST;

/// The longest frame, beyond every body.
const FRAME: usize = 2 * LONGEST;

#[tarpc::service]
pub trait Echo {
    async fn echo(body: Bytes) -> Bytes;
}

#[derive(Clone)]
struct Echoes;

impl Echo for Echoes {
    async fn echo(self, _: Context, body: Bytes) -> Bytes {
        body
    }
}

type Framed<Item, SinkItem> = Transport<TcpStream, Item, SinkItem, Bincode<Item, SinkItem>>;

/// A transport over a TCP connection, without the delay by which small messages would be gathered.
fn framed<Item, SinkItem>(stream: TcpStream) -> anyhow::Result<Framed<Item, SinkItem>>
where
    Item: for<'de> Deserialize<'de>,
    SinkItem: Serialize,
{
    stream.set_nodelay(true).context("TCP_NODELAY")?;
    let framed = LengthDelimitedCodec::builder().max_frame_length(FRAME).new_framed(stream);
    Ok(serde_transport::new(framed, Bincode::default()))
}

pub async fn serve(place: &Place) -> anyhow::Result<Serving> {
    let listener = TcpListener::bind((place.address(), 0)).await.context("listening")?;
    let address = Address::plain(listener.local_addr().context("the listener's address")?);
    let inline = place.system == System::TarpcInline;
    tokio::spawn(async move {
        let ended = loop {
            let accepted = listener.accept().await.context("accepting");
            match accepted.and_then(|(stream, _)| framed(stream)) {
                Ok(transport) => _ = tokio::spawn(answer(transport, inline)),
                Err(why) => break why,
            }
        };
        eprintln!("server: tarpc's server has ended: {ended:#}");
    });
    Ok(Serving::new(address, ()))
}

/// Answers the calls of a connection, each in a task of its own or all in this one.
async fn answer(
    transport: Framed<tarpc::ClientMessage<EchoRequest>, tarpc::Response<EchoResponse>>,
    inline: bool,
) {
    let channel = BaseChannel::new(server::Config::default(), transport);
    let calls = channel.execute(Echoes.serve());
    if inline {
        calls.for_each(|call| call).await;
    } else {
        calls.for_each(async |call| _ = tokio::spawn(call)).await;
    }
}

pub async fn connect(server: &Address) -> anyhow::Result<EchoClient> {
    let stream = TcpStream::connect(&server.at).await;
    let stream = stream.with_context(|| format!("connecting to {}", server.at))?;
    Ok(EchoClient::new(client::Config::default(), framed(stream)?).spawn())
}

impl Connection for EchoClient {
    type Caller = Self;

    async fn caller(&self) -> anyhow::Result<Self> {
        Ok(self.clone())
    }
}

impl Caller for EchoClient {
    async fn echo(&mut self, body: Bytes) -> anyhow::Result<Bytes> {
        Ok(EchoClient::echo(self, context::current(), body).await?)
    }
}
