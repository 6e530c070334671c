//! The kernel's sockets, polled by both ends: what devices are compared with.

mod ping_pong;
mod tcp;
mod udp;

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};

use anyhow::Context;
use serde_json::{Value, json};

use crate::perf::Plan;
use crate::perf::ends::peer::Peer;
use crate::perf::figures::Figures;
use crate::perf::plan::test::Test;
use crate::perf::shared::stream;
use udp::Datagrams;

/// Runs one end of a test of sockets, of which this one's has the address `here`.
pub fn run(plan: &Plan, peer: &mut Peer, here: IpAddr) -> anyhow::Result<Option<Figures>> {
    match plan.test {
        Test::TcpLat => ping_pong::run(&tcp(peer, here)?, plan, peer),
        Test::TcpBw => tcp::run(&tcp(peer, here)?, plan, peer),
        Test::UdpLat => ping_pong::run(&udp(peer, here)?, plan, peer),
        _ => {
            let mut lane = Datagrams::new(plan, || udp(peer, here))?;
            // What comes before the other end's buffers are wide is more than they hold.
            peer.swap(&json!("begin"))?;
            stream::run(&mut lane, plan, peer)
        }
    }
}

/// A connection to the other end, without the delay by which small messages would be gathered.
pub fn tcp(peer: &mut Peer, here: IpAddr) -> anyhow::Result<TcpStream> {
    let stream = if peer.leads() {
        let there = address_in(&peer.hear()?)?;
        TcpStream::connect(there).with_context(|| format!("connecting to {there}"))?
    } else {
        let listener =
            TcpListener::bind((here, 0)).with_context(|| format!("listening on {here}"))?;
        peer.tell(&json!(listener.local_addr()?.to_string()))?;
        listener.accept().context("waiting for the connection")?.0
    };
    stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)).context("TCP_NODELAY")?;
    Ok(stream)
}

/// A socket that is connected to the other end's.
fn udp(peer: &mut Peer, here: IpAddr) -> anyhow::Result<UdpSocket> {
    let opened = || -> std::io::Result<(UdpSocket, SocketAddr)> {
        let socket = UdpSocket::bind((here, 0))?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok((socket, address))
    };
    let (socket, address) = opened().with_context(|| format!("a UDP socket on {here}"))?;
    let there = address_in(&peer.swap(&json!(address.to_string()))?)?;
    socket.connect(there).with_context(|| format!("connecting to {there}"))?;
    Ok(socket)
}

/// The address that the other end told.
fn address_in(told: &Value) -> anyhow::Result<SocketAddr> {
    let text = told.as_str().unwrap_or_default();
    text.parse().with_context(|| format!("the other end's address `{text}`"))
}
