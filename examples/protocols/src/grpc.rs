//! gRPC, by tonic: a greeter that is served on the streams that a listener accepts, and a client
//! whose channel connects by them.
//!
//! The messages and the service are written by hand, so that no `protoc` is needed. What tonic's
//! build script generates is used the same.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};

use anyhow::ensure;
use futures_util::future::pending;
use futures_util::stream::{StreamExt, once};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;
use tonic::body::Body;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::http::{Request as HttpRequest, Response as HttpResponse};
use tonic::codegen::{BoxFuture, Service};
use tonic::server::NamedService;
use tonic::transport::server::Connected;
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::service_fn;

use crate::carrier::Wire;

/// How many calls the client makes, one after the other.
const CALLS: usize = 1000;

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

/// A stream as tonic's server takes it, which wants to know who the peer is. When the server is
/// done with the stream, `_done` is dropped.
struct Served {
    wire: Wire,
    _done: oneshot::Sender<()>,
}

impl Connected for Served {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Served {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_read(context, into)
    }
}

impl AsyncWrite for Served {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.wire).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(context)
    }
}

/// Serves calls that come by one stream, until its client leaves.
pub async fn serve(wire: Wire) -> anyhow::Result<()> {
    let (_done, is_done) = oneshot::channel();
    let first = once(async { Ok::<_, io::Error>(Served { wire, _done }) });
    let incoming = Box::pin(first.chain(once(pending())));
    let ends = async { _ = is_done.await };
    let server = Server::builder().add_service(Greeter);
    Ok(server.serve_with_incoming_shutdown(incoming, ends).await?)
}

pub async fn ask(wire: Wire) -> anyhow::Result<String> {
    let wire = Mutex::new(Some(wire));
    // The channel asks for an address, which is nobody's. A program that reconnects opens a stream
    // here.
    let connects = service_fn(move |_| {
        let wire = wire.lock().ok().and_then(|mut wire| wire.take());
        ready(wire.map(TokioIo::new).ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected)))
    });
    let channel = Endpoint::from_static("http://doorbell").connect_with_connector(connects).await?;
    let mut client = tonic::client::Grpc::new(channel);
    for number in 0..CALLS {
        client.ready().await?;
        let request = Request::new(HelloRequest { name: format!("number {number}") });
        let codec = ProstCodec::<HelloRequest, HelloReply>::default();
        let reply = client.unary(request, PathAndQuery::from_static(SAY_HELLO), codec).await?;
        let HelloReply { message } = reply.into_inner();
        ensure!(message == format!("hello, number {number}"), "{message} to {number}");
    }
    Ok(format!("{CALLS} calls were answered"))
}
