//! The exchange of addresses by TCP that `ibv_rc_pingpong` and similar programs use.
//!
//! Each side sends a line of 52 bytes: local identifier, queue pair number, first sequence number
//! and GID, in hexadecimal, separated by colons and ended by a zero byte. The client's line comes
//! first. The server answers when its queue pair is ready. The client says `done`, five bytes with
//! the zero, when its own is.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use doorbell_core::connect::Route;
use doorbell_core::nic::{Change, Connection as Agreed, Sending};
use doorbell_core::wire::{Gid, PathMtu, Pkey, Psn, Qpn};
use doorbell_transports::Address;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tracing::Instrument;
use tracing::field::Empty;

use super::connection::Connection;
use super::reach::reach;
use super::unconnected::{Kind, Unconnected};
use crate::error::ConnectError;
use crate::link::{ConnectionState, Way};
use crate::nic::Nic;

/// The side of the TCP connection that a program has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// The side that has connected, and speaks first.
    Client,
    /// The side that has accepted.
    Server,
}

/// The number of bytes of a line by which a side tells the address of its queue pair.
const LINE: usize = 52;
/// The bytes by which the client says that its queue pair is connected.
const DONE: &[u8; 5] = b"done\0";

/// The address of a queue pair, as each side tells it to the other.
pub(crate) struct QueuePairAddress {
    pub qpn: Qpn,
    psn: Psn,
    gid: Gid,
}

impl QueuePairAddress {
    /// Returns the address of a queue pair of this side.
    pub fn own(nic: &Nic, qpn: Qpn) -> Result<Self, ConnectError> {
        let engine = nic.engine();
        if engine.with(|adapter| adapter.control().encryption.is_required()) {
            return Err(ConnectError::Exchange(
                "it agrees on no keys, and connections must be encrypted here: connect in band, by \
                 a name, or say that encryption is offered and not required"
                    .to_owned(),
            ));
        }
        let psn = engine.with(|adapter| adapter.control().nic.first_psn());
        Ok(Self { qpn, psn, gid: gid(&engine.address)? })
    }

    /// Returns the address of the device that the GID stands for.
    pub fn address(&self, nic: &Nic) -> Result<Address, ConnectError> {
        address(&nic.engine().address, self.gid)
    }

    fn line(&self) -> [u8; LINE] {
        let gid: String = self.gid.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = format!("0000:{:06x}:{:06x}:{gid}\0", self.qpn.get(), self.psn.get());
        text.into_bytes().try_into().expect("every field has its width")
    }

    fn read(line: &[u8; LINE]) -> Option<Self> {
        let text = std::str::from_utf8(line).ok()?.trim_end_matches('\0');
        let mut fields = text.split(':');
        let mut next = || fields.next();
        let (_lid, qpn, psn, gid) = (next()?, next()?, next()?, next()?);
        let number = |text: &str| u32::from_str_radix(text, 16).ok();
        if gid.len() != 32 || !gid.is_ascii() {
            return None;
        }
        let mut bytes = [0; 16];
        for (byte, at) in bytes.iter_mut().zip((0..32).step_by(2)) {
            *byte = u8::from_str_radix(&gid[at..at + 2], 16).ok()?;
        }
        Some(Self { qpn: Qpn::new(number(qpn)?), psn: Psn::new(number(psn)?), gid: Gid(bytes) })
    }
}

fn by_tcp(what: &'static str) -> impl Fn(io::Error) -> ConnectError {
    move |why| ConnectError::Exchange(format!("{what}: {why}"))
}

/// Returns the GID by which peers name a device of this address.
fn gid(address: &Address) -> Result<Gid, ConnectError> {
    let of = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => Gid::from(*ip),
        IpAddr::V6(ip) => Gid::from(*ip),
    };
    match address {
        Address::Udp(socket) => Ok(of(&socket.ip())),
        Address::PacketV2(ip) => Ok(of(ip)),
        Address::Packet(mac) => Ok(Gid::from_mac(*mac)),
        other => Err(ConnectError::Exchange(format!(
            "{other} has no GID, by which it would be told: connect in band"
        ))),
    }
}

/// Returns the address that a GID stands for, on a device of the kind that `own` belongs to.
fn address(own: &Address, gid: Gid) -> Result<Address, ConnectError> {
    let v6 = std::net::Ipv6Addr::from(gid);
    let ip = gid.to_ipv4().map_or(IpAddr::V6(v6), IpAddr::V4);
    match own {
        Address::Udp(socket) => Ok(Address::Udp(SocketAddr::new(ip, socket.port()))),
        Address::PacketV2(_) => Ok(Address::PacketV2(ip)),
        Address::Packet(_) => gid.to_mac().map(Address::Packet).ok_or_else(|| {
            ConnectError::Exchange(format!(
                "the peer's GID {v6} is not made of an Ethernet address"
            ))
        }),
        other => Err(ConnectError::Exchange(format!("{other} reaches nobody by a GID"))),
    }
}

/// Exchanges addresses with a peer, and calls `ready` with the peer's address at the right moment
/// of the protocol.
pub(crate) async fn exchange_addresses<R>(
    stream: &mut TcpStream,
    side: Side,
    own: &QueuePairAddress,
    ready: impl AsyncFnOnce(QueuePairAddress) -> Result<R, ConnectError>,
) -> Result<R, ConnectError> {
    if side == Side::Client {
        stream.write_all(&own.line()).await.map_err(by_tcp("telling this side's"))?;
    }
    let mut line = [0; LINE];
    stream.read_exact(&mut line).await.map_err(by_tcp("hearing the peer's"))?;
    let peer = QueuePairAddress::read(&line).ok_or_else(|| {
        let said = String::from_utf8_lossy(&line).into_owned();
        ConnectError::Exchange(format!("the peer said `{said}`, which is no address"))
    })?;
    let ready = ready(peer).await?;
    match side {
        Side::Client => stream.write_all(DONE).await.map_err(by_tcp("saying `done`"))?,
        Side::Server => {
            stream.write_all(&own.line()).await.map_err(by_tcp("telling this side's"))?;
            let mut done = [0; DONE.len()];
            stream.read_exact(&mut done).await.map_err(by_tcp("waiting for `done`"))?;
            if &done != DONE {
                let said = String::from_utf8_lossy(&done).into_owned();
                return Err(ConnectError::Exchange(format!("the peer said `{said}`, not `done`")));
            }
        }
    }
    Ok(ready)
}

impl<K: Kind> Unconnected<K> {
    /// Connects by the exchange that `ibv_rc_pingpong` uses, over a TCP connection of which this is
    /// one end. The packet size is not exchanged: both programs must set the same, which
    /// customarily is 1024. Without a connection manager, the end of the peer shows only by its
    /// silence. Since the exchange does not identify the peer's NIC, packets by another connection
    /// from the same host are no sign of life. The exchange takes as long as the peer does.
    ///
    /// # Errors
    /// Returns an error when the peer breaks the protocol, can't be reached, or packets of that
    /// size can't be sent; or when connections must be [encrypted](crate::Config::encryption) here,
    /// since the exchange agrees on no keys.
    pub async fn exchange(
        self,
        stream: &mut TcpStream,
        side: Side,
        mtu: PathMtu,
    ) -> Result<K, ConnectError> {
        let span = tracing::debug_span!("exchange", ?side, qpn = %self.qpn(), peer = Empty);
        self.connection().exchange(stream, side, mtu).instrument(span.clone()).await?;
        span.record("peer", self.connection().peer());
        Ok(self.joined())
    }
}

/// These methods belong to the connection and not to the queue pair, since its queues must not be
/// shared between threads while a future waits.
impl Connection {
    async fn exchange(
        &self,
        stream: &mut TcpStream,
        side: Side,
        mtu: PathMtu,
    ) -> Result<(), ConnectError> {
        let nic = self.nic();
        let own = QueuePairAddress::own(nic, self.qpn())?;
        let most = nic.capabilities().mtu;
        if mtu > most {
            return Err(ConnectError::Exchange(format!(
                "packets of {} bytes do not go into this device's frames, which hold {}",
                mtu.bytes(),
                most.bytes()
            )));
        }
        exchange_addresses(stream, side, &own, async |peer: QueuePairAddress| {
            let way = reach(nic, &peer.address(nic)?).await?;
            self.agree(&Arc::new(Route::new(way)), (own.psn, mtu), &peer)
        })
        .await
    }

    /// Moves the queue pair to the ready states, with the terms of a standard peer that exchanges
    /// addresses: one read at a time.
    fn agree(
        &self,
        way: &Way,
        (psn, mtu): (Psn, PathMtu),
        peer: &QueuePairAddress,
    ) -> Result<(), ConnectError> {
        let link = self.link();
        self.nic().engine().with(|adapter| {
            let control = adapter.control();
            let path = control.path(link, way);
            let agreed = Agreed {
                reads: 1,
                metadata: false,
                credits: false,
                ..Agreed::new(peer.qpn, path, mtu, peer.psn)
            };
            let sending = Sending {
                reads: 1,
                patience: control.patience,
                ..control.sharing_network.apply(Sending::to_standard_peer(psn))
            };
            let init = Change::Init { rights: link.terms.rights, pkey: Pkey::DEFAULT };
            for change in
                [init, Change::ReadyToReceive(Box::new(agreed)), Change::ReadyToSend(sending)]
            {
                control.nic.change(link.qpn, change)?;
            }
            link.nic_side(|side| side.peer = Some(peer.qpn));
            link.set_state(ConnectionState::Connected);
            Ok(())
        })
    }
}
