//! A key–value service by RPC: a server, a client, and a load, in one program.
//!
//! `cargo run --release -p doorbell-kv-service` starts a server in shared memory, loads it for a
//! second, and prints what came of it. As processes of their own, on one machine or several:
//!
//! ```text
//! kv_service serve udp:127.0.0.1:5000 --metrics 127.0.0.1:9100
//! kv_service put 'udp:127.0.0.1:5000#7' sky blue
//! kv_service get 'udp:127.0.0.1:5000#7' sky
//! kv_service scan 'udp:127.0.0.1:5000#7' s
//! kv_service load 'udp:127.0.0.1:5000#7' --in-flight 64 --seconds 10
//! curl http://127.0.0.1:9100/metrics
//! ```

mod load;
mod page;
mod service;
mod store;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use doorbell::rpc::{Channel, Health, Server};

use service::{Change, InMemory, KeyValueClient, KeyValueServer};

/// The number of the server at its address, which is the end of its name.
const SERVICE: u64 = 7;

/// The longest request that the server takes.
const LONGEST: usize = 1 << 20;

/// How long calls that run may take when the server ends.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Parser)]
enum Command {
    /// Keeps the keys and their values, until interrupted.
    Serve {
        /// Where to serve: `udp:192.0.2.7:5000`, `shm:kv`, `packet:eth0`, …
        device: String,
        /// Where to show metrics to Prometheus.
        #[arg(long)]
        metrics: Option<SocketAddr>,
    },
    /// Prints the value of a key.
    Get { server: String, key: String },
    /// Stores a value.
    Put { server: String, key: String, value: String },
    /// Removes a key.
    Delete { server: String, key: String },
    /// Prints all keys that begin with a prefix, and their values.
    Scan {
        server: String,
        #[arg(default_value = "")]
        prefix: String,
    },
    /// Prints each change of a key that begins with a prefix, until interrupted.
    Watch {
        server: String,
        #[arg(default_value = "")]
        prefix: String,
    },
    /// Puts and gets, and prints how many calls a second were answered and how long they took.
    Load {
        server: String,
        /// How many calls are under way at a time.
        #[arg(long, default_value_t = 64)]
        in_flight: usize,
        /// For how long.
        #[arg(long, default_value_t = 5.0)]
        seconds: f64,
    },
}

#[tokio::main]
async fn main() -> Result<()> {
    if std::env::args().len() == 1 {
        return demonstrate().await;
    }
    match Command::parse() {
        Command::Serve { device, metrics } => serve(&device, metrics).await?,
        Command::Get { server, key } => {
            writeln!(io::stdout(), "{}", connect(&server).await?.get(key).await?)?;
        }
        Command::Put { server, key, value } => {
            connect(&server).await?.put(key, value).await?;
        }
        Command::Delete { server, key } => {
            let was_there = connect(&server).await?.delete(key.clone()).await?;
            writeln!(
                io::stdout(),
                "{key} {}",
                if was_there { "is removed" } else { "was not there" }
            )?;
        }
        Command::Scan { server, prefix } => scan(&connect(&server).await?, prefix).await?,
        Command::Watch { server, prefix } => watch(&connect(&server).await?, prefix).await?,
        Command::Load { server, in_flight, seconds } => {
            let seconds = Duration::try_from_secs_f64(seconds).context("--seconds")?;
            let channel = Channel::builder().in_flight(in_flight).connect(&*server).await?;
            writeln!(
                io::stdout(),
                "{}",
                load::run(KeyValueClient::new(channel), in_flight, seconds).await?
            )?;
        }
    }
    Ok(())
}

async fn connect(server: &str) -> Result<KeyValueClient> {
    Ok(KeyValueClient::new(Channel::connect(server).await?))
}

/// Opens a server that takes calls, and says by which name.
async fn open(device: &str, health: &Health) -> Result<Server> {
    let server = Server::builder().service(SERVICE).longest_body(LONGEST);
    let server = server
        .add_service(KeyValueServer::new(InMemory::default()))
        .health(health)
        .open(device)
        .await?;
    writeln!(io::stdout(), "serving as {}", server.name())?;
    Ok(server)
}

/// Serves until interrupted, and then lets the calls that run end.
async fn serve(device: &str, metrics: Option<SocketAddr>) -> Result<()> {
    // Whatever is counted before there is a recorder is lost.
    let recorder = metrics.map(|address| anyhow::Ok((address, page::record()?))).transpose()?;
    let server = open(device, &Health::new()).await?;
    if let Some((address, handle)) = recorder {
        let page = page::listen(address).await?;
        writeln!(io::stdout(), "metrics at http://{}/metrics", page.local_addr()?)?;
        tokio::spawn(page::show(page, handle, server.nic().clone()));
    }
    tokio::signal::ctrl_c().await?;
    writeln!(io::stdout(), "ending")?;
    match tokio::time::timeout(GRACE, server.close()).await {
        Ok(ended) => ended?,
        Err(_) => writeln!(io::stdout(), "calls still run, and are stopped")?,
    }
    Ok(())
}

async fn scan(client: &KeyValueClient, prefix: String) -> Result<()> {
    let mut entries = client.scan(prefix).await?;
    while let Some((key, value)) = entries.message().await? {
        writeln!(io::stdout(), "{key}\t{value}")?;
    }
    Ok(())
}

async fn watch(client: &KeyValueClient, prefix: String) -> Result<()> {
    let mut changes = client.watch(prefix).await?;
    while let Some(Change { key, value }) = changes.message().await? {
        match value {
            Some(value) => writeln!(io::stdout(), "{key}\t{value}")?,
            None => writeln!(io::stdout(), "{key} is removed")?,
        }
    }
    Ok(())
}

/// Runs a server and a load in this process.
async fn demonstrate() -> Result<()> {
    let server = open("shm", &Health::new()).await?;
    let channel = Channel::connect(server.name()).await?;
    writeln!(
        io::stdout(),
        "{}",
        load::run(KeyValueClient::new(channel), 64, Duration::from_secs(1)).await?
    )?;
    server.close().await?;
    Ok(())
}
