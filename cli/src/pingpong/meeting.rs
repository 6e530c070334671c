//! How the two sides meet: queue pairs are made, receives posted, addresses exchanged.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use anyhow::Context;
use doorbell_measure::out;
use doorbell_verbs::{
    Buf, CompletionQueue, Config, DATAGRAM_HEADER, Datagrams, DatagramsConfig, KeepAlive, Nic,
    Qkey, Queues, QueuesConfig, Side, Unconnected,
};
use tokio::net::{TcpListener, TcpStream};

use super::args::{Args, Transport};
use super::rally::{End, Players, RECEIVE};

/// The queue key that all programs of `ibv_ud_pingpong` use.
const KEY: Qkey = Qkey(0x1111_1111);

/// The most requests under way: what was sent last, and the one before.
const SENDS: usize = 2;

/// A side of the game that is ready to connect to the other.
pub struct Meeting {
    completions: CompletionQueue,
    pair: Unmet,
}

enum Unmet {
    Pair(Unconnected<Queues>),
    Datagrams(Datagrams),
}

impl Meeting {
    /// Opens the device, and posts the receives.
    pub fn prepare(args: &Args) -> anyhow::Result<Self> {
        let spin = if args.events { Duration::ZERO } else { Config::default().spin };
        let keep_alive = KeepAlive { busy: args.patience(), ..KeepAlive::default() };
        let nic = Nic::builder()
            .config(Config { spin, keep_alive, ..Config::default() })
            .open_blocking(&args.device)?;
        let depth = usize::from(args.rx_depth);
        let completions = nic.completion_queue(depth + SENDS).context("receives")?;
        let (size, domain) = (args.size(), nic.domain());
        let buffers = |room: usize| (0..depth).map(move |_| Buf::with_capacity(room));
        let pair = match args.transport {
            Transport::Ud => {
                let config = DatagramsConfig {
                    send_depth: SENDS,
                    receive_depth: depth,
                    ..DatagramsConfig::new(&completions, KEY)
                };
                let mut pair = domain.datagrams(&config)?;
                for buffer in buffers(DATAGRAM_HEADER + size) {
                    pair.receive.post(RECEIVE, buffer)?;
                }
                Unmet::Datagrams(pair)
            }
            Transport::Rc | Transport::Uc => {
                let config = QueuesConfig {
                    unreliable: args.transport == Transport::Uc,
                    send_depth: SENDS,
                    receive_depth: depth,
                    ..QueuesConfig::new(&completions)
                };
                let mut pair = domain.queues(&config)?;
                for buffer in buffers(size) {
                    pair.post_receive(RECEIVE, buffer)?;
                }
                Unmet::Pair(pair)
            }
        };
        Ok(Self { completions, pair })
    }

    /// Exchanges addresses with the peer, and connects to it.
    pub async fn join(self, args: &Args) -> anyhow::Result<End> {
        let nic = self.completions.nic().clone();
        let qpn = match &self.pair {
            Unmet::Pair(pair) => pair.qpn(),
            Unmet::Datagrams(pair) => pair.qpn(),
        };
        out::note(format_args!("local address: queue pair {qpn} at {}", nic.address()));
        let (mut stream, side) = meet(args).await?;
        let meeting = async {
            anyhow::Ok(match self.pair {
                Unmet::Pair(pair) => {
                    Players::Pair(pair.exchange(&mut stream, side, args.mtu).await?)
                }
                Unmet::Datagrams(pair) => {
                    let to = pair.exchange(&mut stream, side).await?;
                    Players::Datagrams(pair, to)
                }
            })
        };
        let met = tokio::time::timeout(args.patience(), meeting).await;
        let players = met.with_context(|| {
            format!("the other side has said nothing for {} s by TCP", args.patience)
        })??;
        Ok(End::new(self.completions, players))
    }
}

/// The TCP connection by which addresses are exchanged.
async fn meet(args: &Args) -> anyhow::Result<(TcpStream, Side)> {
    let port = args.port;
    if let Some(host) = &args.host {
        let connected = TcpStream::connect((host.as_str(), port)).await;
        let advice =
            || format!("connecting to {host}, port {port}: does the other side wait there?");
        return Ok((connected.with_context(advice)?, Side::Client));
    }
    let any = [IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::UNSPECIFIED)];
    // Where there is no IPv6, the other is all.
    let listener = match TcpListener::bind((any[0], port)).await {
        Ok(listener) => listener,
        Err(_) => TcpListener::bind((any[1], port))
            .await
            .with_context(|| format!("waiting at TCP port {port}: `--port` takes another"))?,
    };
    // Whoever starts the other side may wait for this.
    out::note(format_args!(
        "waiting at TCP port {}",
        listener.local_addr().context("its port")?.port()
    ));
    let (stream, _) = listener.accept().await.context("waiting for the other side")?;
    Ok((stream, Side::Server))
}
