//! HTTP/1 over Doorbell by hyper: a server and a client, each with a few lines that are not as over
//! TCP.
//!
//! `cargo run --release -p doorbell-http --bin hyper` runs both in one process, over UDP.

use std::convert::Infallible;
use std::io::{self, Write};

use doorbell::bytestream::{Listener, ServiceId, Stream};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;

/// Answers with what was asked for.
async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (path, body) = (request.uri().path().to_owned(), request.into_body());
    let len = body.collect().await.map_or(0, |body| body.to_bytes().len());
    let text = format!("you asked for {path}, with {len} bytes");
    Ok(Response::new(Full::from(text)))
}

/// Serves whoever opens a stream.
async fn serve(mut listener: Listener) -> anyhow::Result<()> {
    loop {
        let stream = TokioIo::new(listener.accept().await?);
        let server = hyper::server::conn::http1::Builder::new();
        tokio::spawn(server.serve_connection(stream, service_fn(answer)));
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let listener = Listener::bind("udp:127.0.0.1:0", ServiceId(80)).await?;
    let name = listener.local_name().to_owned();
    tokio::spawn(serve(listener));

    let stream = TokioIo::new(Stream::connect(&name).await?);
    let (mut client, connection) = hyper::client::conn::http1::handshake(stream).await?;
    tokio::spawn(connection);
    for (path, len) in [("/", 0), ("/upload", 1_000_000)] {
        let request = Request::post(path).header("host", "doorbell");
        let request = request.body(Full::new(Bytes::from(vec![7; len])))?;
        // The connection may not have heard yet that the response before was read.
        client.ready().await?;
        let response = client.send_request(request).await?;
        let status = response.status();
        let text = response.into_body().collect().await?.to_bytes();
        writeln!(io::stdout(), "{status}: {}", String::from_utf8_lossy(&text))?;
    }
    Ok(())
}
