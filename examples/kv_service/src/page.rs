//! The page from which Prometheus takes metrics.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use doorbell::rpc::record_nic;
use doorbell::verbs::Nic;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The bounds of the histograms' buckets, in seconds.
const BUCKETS: [f64; 12] = [5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];

/// How long a browser may take to ask, and how much it may say.
const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST_REQUEST: u64 = 8192;

/// Has all metrics of this process recorded from now on.
pub fn record() -> Result<PrometheusHandle> {
    let builder = PrometheusBuilder::new();
    let builder = builder.set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &BUCKETS)?;
    Ok(builder.install_recorder()?)
}

pub async fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("showing metrics at {address}"))
}

/// Shows the page to whoever asks, one after the other.
pub async fn show(listener: TcpListener, metrics: PrometheusHandle, nic: Nic) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        // Who goes in the middle, or says nothing, gets no page.
        let _ = tokio::time::timeout(PATIENCE, answer(stream, &metrics, &nic)).await;
    }
}

async fn answer(mut stream: TcpStream, metrics: &PrometheusHandle, nic: &Nic) -> Result<()> {
    let (reader, mut writer) = stream.split();
    let mut lines = BufReader::new(reader.take(LONGEST_REQUEST)).lines();
    let first = lines.next_line().await?.unwrap_or_default();
    while lines.next_line().await?.is_some_and(|line| !line.is_empty()) {}
    let (status, page) = match first.starts_with("GET /metrics ") {
        true => {
            record_nic(nic);
            metrics.run_upkeep();
            ("200 OK", metrics.render())
        }
        false => ("404 Not Found", "the page is /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        page.len()
    );
    writer.write_all(head.as_bytes()).await?;
    writer.write_all(page.as_bytes()).await?;
    Ok(writer.shutdown().await?)
}
