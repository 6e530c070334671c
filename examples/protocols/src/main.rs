//! Protocols that are written for TCP, over Doorbell: HTTP/1, HTTP/2, gRPC, WebSocket, TLS, Redis
//! and MQTT, each by the crates that programs use for it. The server and the client of a protocol are
//! processes of their own.
//!
//! `cargo run --release -p doorbell-protocols` runs all of them over UDP, and
//! `… -- --over shm redis tls` two of them over shared memory. `--over tcp` runs the same code over
//! TCP.

mod carrier;
mod grpc;
mod http;
mod mqtt;
mod redis;
mod tls;
mod websocket;

use std::io::{self, Write};
use std::process::Stdio;

use anyhow::{Context, ensure};
use clap::{Parser, ValueEnum};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use carrier::{Carrier, Listener, Wire, connect};

/// Runs protocols over byte streams: a server and a client of each.
#[derive(Parser, Debug)]
struct Arguments {
    /// The protocols to run; all unless told otherwise.
    protocols: Vec<Protocol>,
    /// What carries the bytes.
    #[arg(long, value_enum, default_value = "udp")]
    over: Carrier,
    /// Be the server of the protocol, for one client.
    #[arg(long, hide = true)]
    serve: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Protocol {
    Http1,
    Http2,
    Grpc,
    Websocket,
    Tls,
    Redis,
    Mqtt,
}

impl Protocol {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Serves one client until it is done.
    async fn serve(self, wire: Wire) -> anyhow::Result<()> {
        match self {
            Self::Http1 => http::serve_http1(wire).await,
            Self::Http2 => http::serve_http2(wire).await,
            Self::Grpc => grpc::serve(wire).await,
            Self::Websocket => websocket::serve(wire).await,
            Self::Tls => tls::serve(wire).await,
            Self::Redis => redis::serve(wire).await,
            Self::Mqtt => mqtt::serve(wire).await,
        }
    }

    /// Is a client of the server at the other end. Returns what the client has found.
    async fn ask(self, wire: Wire) -> anyhow::Result<String> {
        match self {
            Self::Http1 => http::ask_http1(wire).await,
            Self::Http2 => http::ask_http2(wire).await,
            Self::Grpc => grpc::ask(wire).await,
            Self::Websocket => websocket::ask(wire).await,
            Self::Tls => tls::ask(wire).await,
            Self::Redis => redis::ask(wire).await,
            Self::Mqtt => mqtt::ask(wire).await,
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Arguments { protocols, over, serve } = Arguments::parse();
    let protocols = match protocols.is_empty() {
        true => Protocol::value_variants().to_vec(),
        false => protocols,
    };
    for protocol in protocols {
        let name = protocol.name();
        if serve {
            serves(protocol, over).await.with_context(|| format!("the server of {name}"))?;
        } else {
            let found = asks(protocol, over).await.with_context(|| name.clone())?;
            writeln!(io::stdout(), "{name}: {found}")?;
        }
    }
    Ok(())
}

/// Tells on standard output where the server listens, and serves one client.
async fn serves(protocol: Protocol, over: Carrier) -> anyhow::Result<()> {
    let mut listener = Listener::bind(over).await?;
    writeln!(io::stdout(), "{}", listener.name()?)?;
    protocol.serve(listener.accept().await?).await
}

/// Starts a server of the protocol, and is its client.
async fn asks(protocol: Protocol, over: Carrier) -> anyhow::Result<String> {
    let carrier = over.to_possible_value().context("every carrier has a name")?;
    let mut server = Command::new(std::env::current_exe()?)
        .args(["--serve", "--over", carrier.get_name(), &protocol.name()])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let says = server.stdout.take().context("its output is a pipe")?;
    let name = BufReader::new(says).lines().next_line().await?;
    let name = name.context("the server ended before it listened")?;
    let found = protocol.ask(connect(over, &name).await?).await?;
    let ended = server.wait().await?;
    ensure!(ended.success(), "the server has failed: {ended}");
    Ok(found)
}
