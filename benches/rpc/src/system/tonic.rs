//! tonic: gRPC over one HTTP/2 connection, with a codec that leaves bytes as they are.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context as TaskContext, Poll};

use anyhow::Context;
use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::{BoxFuture, Service};
use tonic::server::NamedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};

use super::{Address, Caller, Connection, Place, Serving};
use crate::case::LONGEST;

const PATH: PathAndQuery = PathAndQuery::from_static("/bench.Echo/Echo");

/// The windows of a stream and of the connection, which hold all that is in flight.
const WINDOW: u32 = 16 << 20;

/// The longest HTTP/2 frame: a body goes in as few as may be.
const FRAME: u32 = 1 << 20;

/// The longest message, beyond every body.
const LONGEST_MESSAGE: usize = 2 * LONGEST;

pub async fn serve(place: &Place) -> anyhow::Result<Serving> {
    let listener = TcpListener::bind((place.address(), 0)).await.context("listening")?;
    let address = Address::plain(listener.local_addr().context("the listener's address")?);
    let server = Server::builder()
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_frame_size(FRAME)
        .add_service(Echo { size: place.size })
        .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)));
    tokio::spawn(async move {
        if let Err(why) = server.await {
            eprintln!("server: tonic's server has ended: {why}");
        }
    });
    Ok(Serving::new(address, ()))
}

pub async fn connect(place: &Place, server: &Address) -> anyhow::Result<Connected> {
    let endpoint = Endpoint::from_shared(format!("http://{}", server.at)).context("an address")?;
    let channel = endpoint
        .tcp_nodelay(true)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_frame_size(FRAME)
        .connect()
        .await;
    let channel = channel.with_context(|| format!("connecting to {}", server.at))?;
    let client = tonic::client::Grpc::new(channel).max_decoding_message_size(LONGEST_MESSAGE);
    Ok(Connected { client, size: place.size })
}

#[derive(Clone)]
pub struct Connected {
    client: tonic::client::Grpc<Channel>,
    size: usize,
}

impl Connection for Connected {
    type Caller = Self;

    async fn caller(&self) -> anyhow::Result<Self> {
        Ok(self.clone())
    }
}

impl Caller for Connected {
    async fn echo(&mut self, body: Bytes) -> anyhow::Result<Bytes> {
        self.client.ready().await.context("the channel's connection")?;
        let codec = Raw { size: self.size };
        Ok(self.client.unary(Request::new(body), PATH, codec).await?.into_inner())
    }
}

/// The service, as tonic's generator writes one.
#[derive(Clone)]
struct Echo {
    size: usize,
}

impl NamedService for Echo {
    const NAME: &'static str = "bench.Echo";
}

impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let codec = Raw { size: self.size };
        let mut grpc = tonic::server::Grpc::new(codec).max_decoding_message_size(LONGEST_MESSAGE);
        Box::pin(async move { Ok(grpc.unary(EchoMethod, request).await) })
    }
}

/// The service's method.
struct EchoMethod;

impl Service<Request<Bytes>> for EchoMethod {
    type Response = Response<Bytes>;
    type Error = Status;
    type Future = Ready<Result<Response<Bytes>, Status>>;

    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        ready(Ok(Response::new(request.into_inner())))
    }
}

/// The codec of bytes that stay what they are, with buffers in which a message of a size fits.
#[derive(Clone, Copy)]
struct Raw {
    size: usize,
}

impl Raw {
    fn settings(self) -> BufferSettings {
        const HEADER: usize = 5;
        let buffer = (self.size + HEADER).next_power_of_two();
        BufferSettings::new(buffer, buffer)
    }
}

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, bytes: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put(bytes);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        self.settings()
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }

    fn buffer_settings(&self) -> BufferSettings {
        self.settings()
    }
}
