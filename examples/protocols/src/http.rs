//! HTTP/1 and HTTP/2, by hyper.

use std::convert::Infallible;

use anyhow::ensure;
use bytes::Bytes;
use futures_util::future::try_join_all;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, client, server};
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::carrier::Wire;

/// How many requests a client has under way at once, over HTTP/2.
const AT_ONCE: usize = 100;

/// How many bytes the client sends and gets back in one request.
const LONG: usize = 3_000_000;

/// Answers with the body of the request.
async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.map_or_else(|_| Bytes::new(), |b| b.to_bytes());
    Ok(Response::new(Full::new(body)))
}

pub async fn serve_http1(wire: Wire) -> anyhow::Result<()> {
    let server = server::conn::http1::Builder::new();
    Ok(server.serve_connection(TokioIo::new(wire), service_fn(answer)).await?)
}

pub async fn serve_http2(wire: Wire) -> anyhow::Result<()> {
    let server = server::conn::http2::Builder::new(TokioExecutor::new());
    Ok(server.serve_connection(TokioIo::new(wire), service_fn(answer)).await?)
}

fn request(body: Bytes) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    Request::post("http://doorbell/").header("host", "doorbell").body(Full::new(body))
}

async fn check(response: Response<Incoming>, sent: &Bytes) -> anyhow::Result<()> {
    let status = response.status();
    let found = response.into_body().collect().await?.to_bytes();
    ensure!(status.is_success() && found == *sent, "{status}, with {} bytes", found.len());
    Ok(())
}

pub async fn ask_http1(wire: Wire) -> anyhow::Result<String> {
    let (mut client, connection) = client::conn::http1::handshake(TokioIo::new(wire)).await?;
    let connection = tokio::spawn(connection);
    for len in [0, 20, LONG] {
        let body = Bytes::from(vec![7; len]);
        // The connection may not have heard yet that the response before was read.
        client.ready().await?;
        check(client.send_request(request(body.clone())?).await?, &body).await?;
    }
    drop(client);
    connection.await??;
    Ok(format!("3 requests, with bodies of up to {LONG} bytes, came back"))
}

pub async fn ask_http2(wire: Wire) -> anyhow::Result<String> {
    let io = TokioIo::new(wire);
    let (client, connection) = client::conn::http2::handshake(TokioExecutor::new(), io).await?;
    let connection = tokio::spawn(connection);
    let asks = (0..AT_ONCE).map(|number| {
        let mut client = client.clone();
        async move {
            let len = if number == 0 { LONG } else { number };
            let body = Bytes::from(vec![number as u8; len]);
            check(client.send_request(request(body.clone())?).await?, &body).await
        }
    });
    try_join_all(asks).await?;
    drop(client);
    connection.await??;
    Ok(format!("{AT_ONCE} requests at once, one of them of {LONG} bytes, came back"))
}
