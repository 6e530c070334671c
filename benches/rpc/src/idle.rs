//! What clients cost a Doorbell server that are connected and call nothing.

use std::time::{Duration, Instant};

use anyhow::Context;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::ends::ask_usage;
use crate::line::Line;
use crate::system::{Address, Place, doorbell};

/// How long the server's processor time is measured for.
pub const TIME: Duration = Duration::from_secs(10);

/// How long the server is left alone between the last client's connection and the measurement.
const SETTLING: Duration = Duration::from_secs(1);

/// What idle clients cost.
#[derive(Serialize, Deserialize, Debug)]
pub struct Idle {
    pub system: String,
    pub device: String,
    pub case: String,
    pub clients: usize,
    /// The share of a core that the server takes.
    pub server_share: f64,
    /// How much the server's resident memory has grown for each client.
    pub server_bytes_per_client: f64,
    /// How long a client took to connect, one after the other.
    pub connect_us: f64,
}

/// Connects clients, each on a UDP port of its own, leaves them idle, and prints what they cost the
/// server.
pub async fn client(place: &Place, server: &Address, line: &mut Line) -> anyhow::Result<()> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).context("the limit of open files")?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most).context("raising the limit of open files")?;
    let before = ask_usage(line)?;
    let began = Instant::now();
    let mut clients = Vec::with_capacity(place.clients);
    for number in 0..place.clients {
        let connected = doorbell::connect_another(place, server).await;
        clients.push(connected.with_context(|| format!("after {number} clients"))?);
    }
    let connecting = began.elapsed();
    tokio::time::sleep(SETTLING).await;
    let (then, settled) = (Instant::now(), ask_usage(line)?);
    tokio::time::sleep(TIME).await;
    let (time, after) = (then.elapsed(), ask_usage(line)?);
    let up = clients.iter().filter(|client| client.is_connected()).count();
    anyhow::ensure!(up == clients.len(), "of {} idle clients, {up} are connected", clients.len());
    let count = clients.len() as f64;
    let idle = Idle {
        system: place.system.to_string(),
        device: place.device.to_string(),
        case: "idle".to_owned(),
        clients: clients.len(),
        server_share: after.since(&settled) / time.as_secs_f64() / 1e6,
        server_bytes_per_client: (after.resident as f64 - before.resident as f64) / count,
        connect_us: connecting.as_secs_f64() * 1e6 / count,
    };
    println!("{}", serde_json::to_string(&idle).context("the figures in JSON")?);
    // The clients' connections end with the process.
    std::process::exit(0)
}
