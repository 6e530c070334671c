//! gRPC over Doorbell by tonic: a greeter that is served on the streams that a listener accepts,
//! and a client whose channel connects by them.
//!
//! `cargo run --release -p doorbell-http --bin tonic` runs both in one process, over UDP.
//!
//! The messages and the service are written by hand, so that no `protoc` is needed. What tonic's
//! build script generates is used the same.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use doorbell::bytestream::{Listener, ServiceId, Stream};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::body::Body;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::http::{Request as HttpRequest, Response as HttpResponse};
use tonic::codegen::tokio_stream::StreamExt;
use tonic::codegen::{BoxFuture, Service};
use tonic::server::NamedService;
use tonic::transport::server::Connected;
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::service_fn;

#[derive(Clone, PartialEq, prost::Message)]
struct HelloRequest {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct HelloReply {
    #[prost(string, tag = "1")]
    message: String,
}

const SAY_HELLO: &str = "/hello.Greeter/SayHello";

/// The service's only method.
fn say_hello(request: Request<HelloRequest>) -> Ready<Result<Response<HelloReply>, Status>> {
    let message = format!("hello, {}", request.into_inner().name);
    ready(Ok(Response::new(HelloReply { message })))
}

#[derive(Clone)]
struct Greeter;

impl NamedService for Greeter {
    const NAME: &'static str = "hello.Greeter";
}

impl Service<HttpRequest<Body>> for Greeter {
    type Response = HttpResponse<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequest<Body>) -> Self::Future {
        Box::pin(async move {
            if request.uri().path() != SAY_HELLO {
                return Ok(Status::unimplemented("there is SayHello only").into_http());
            }
            let mut grpc = tonic::server::Grpc::new(ProstCodec::default());
            Ok(grpc.unary(service_fn(say_hello), request).await)
        })
    }
}

/// A stream as tonic's server takes it, which wants to know who the peer is.
struct Served(Stream);

impl Connected for Served {
    type ConnectInfo = String;

    fn connect_info(&self) -> String {
        self.0.peer_name().to_owned()
    }
}

impl AsyncRead for Served {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl AsyncWrite for Served {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let listener = Listener::bind("udp:127.0.0.1:0", ServiceId(443)).await?;
    let name = listener.local_name().to_owned();
    let incoming = listener.incoming().map(|stream| stream.map(Served));
    tokio::spawn(Server::builder().add_service(Greeter).serve_with_incoming(incoming));

    // The channel asks for an address, which is nobody's.
    let connects = service_fn(move |_| {
        let name = name.clone();
        async move { Stream::connect(&name).await.map(TokioIo::new) }
    });
    let channel = Endpoint::from_static("http://doorbell").connect_with_connector(connects).await?;
    let mut client = tonic::client::Grpc::new(channel);
    for name in ["neighbour", "world"] {
        client.ready().await?;
        let request = Request::new(HelloRequest { name: name.to_owned() });
        let codec = ProstCodec::<HelloRequest, HelloReply>::default();
        let reply = client.unary(request, PathAndQuery::from_static(SAY_HELLO), codec).await?;
        writeln!(io::stdout(), "{}", reply.into_inner().message)?;
    }
    Ok(())
}
