//! The exchange by TCP that `ibv_rc_pingpong` and its kin use.
//!
//! Each side sends a line of 52 bytes: local identifier, queue pair number, first sequence number
//! and GID, in hexadecimal, with colons between and a zero behind. The client's comes first; the
//! server answers when its queue pair is ready; the client says `done`, five bytes with the zero,
//! when its own is.

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

use super::{Connection, Kind, Unconnected, reach};
use crate::error::ConnectError;
use crate::nic::Nic;
use crate::pair::Stand;
use crate::progress::Way;

/// Which end of a TCP connection this is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// The one that has connected, and speaks first.
    Client,
    /// The one that has accepted.
    Server,
}

const LINE: usize = 52;
const DONE: &[u8; 5] = b"done\0";

/// What each side says of itself.
pub(crate) struct Told {
    pub qpn: Qpn,
    psn: Psn,
    gid: Gid,
}

impl Told {
    /// What this side says of a queue pair.
    pub fn own(nic: &Nic, qpn: Qpn) -> Result<Self, ConnectError> {
        let shared = nic.shared();
        let psn = shared.with(|machine| machine.control().nic.first_psn());
        Ok(Self { qpn, psn, gid: gid(&shared.address)? })
    }

    /// The device that its GID stands for.
    pub fn address(&self, nic: &Nic) -> Result<Address, ConnectError> {
        address(&nic.shared().address, self.gid)
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

/// How others name a device of this address.
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

/// The address that a GID stands for, on a device of the same kind as `own`.
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

/// Tells a peer of this side, hears of the peer, and gets ready in the order that pingpongs go by.
pub(crate) async fn meet<R>(
    stream: &mut TcpStream,
    side: Side,
    own: &Told,
    ready: impl AsyncFnOnce(Told) -> Result<R, ConnectError>,
) -> Result<R, ConnectError> {
    if side == Side::Client {
        stream.write_all(&own.line()).await.map_err(by_tcp("telling this side's"))?;
    }
    let mut line = [0; LINE];
    stream.read_exact(&mut line).await.map_err(by_tcp("hearing the peer's"))?;
    let peer = Told::read(&line).ok_or_else(|| {
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
    /// Connects with a peer by the exchange that `ibv_rc_pingpong` uses, over a TCP connection of
    /// which this is one end. The packets' size is not exchanged: both sides must be told the same,
    /// which customarily is 1024. There is no connection manager then: nobody tells when the peer
    /// goes, but by its silence: and since nobody has told which NIC it is, nothing that comes by
    /// another connection from its host says that it is there. It takes as long as the peer does.
    ///
    /// # Errors
    /// When the peer says something else, or can't be reached, or packets of that size can't be
    /// sent.
    pub async fn exchange(
        self,
        stream: &mut TcpStream,
        side: Side,
        mtu: PathMtu,
    ) -> Result<K, ConnectError> {
        let span = tracing::debug_span!("exchange", ?side, qpn = %self.qpn(), peer = Empty);
        self.connection.exchange(stream, side, mtu).instrument(span.clone()).await?;
        span.record("peer", self.connection.peer());
        Ok(self.joined())
    }
}

/// Of the connection alone, for queues are not shared between threads while this waits.
impl Connection {
    async fn exchange(
        &self,
        stream: &mut TcpStream,
        side: Side,
        mtu: PathMtu,
    ) -> Result<(), ConnectError> {
        let nic = self.nic();
        let own = Told::own(nic, self.qpn())?;
        let most = nic.capabilities().mtu;
        if mtu > most {
            return Err(ConnectError::Exchange(format!(
                "packets of {} bytes do not go into this device's frames, which hold {}",
                mtu.bytes(),
                most.bytes()
            )));
        }
        meet(stream, side, &own, async |peer: Told| {
            let way = reach(nic, &peer.address(nic)?).await?;
            self.agree(&Arc::new(Route::new(way)), (own.psn, mtu), &peer)
        })
        .await
    }

    /// Makes the queue pair ready, as the peers that connect so are: one read at a time.
    fn agree(
        &self,
        way: &Way,
        (psn, mtu): (Psn, PathMtu),
        peer: &Told,
    ) -> Result<(), ConnectError> {
        let link = self.link();
        self.nic().shared().with(|machine| {
            let control = machine.control();
            let path = control.path(link, way);
            let agreed = Agreed {
                reads: 1,
                metadata: false,
                credits: false,
                ..Agreed::new(peer.qpn, path, mtu, peer.psn)
            };
            let sending =
                Sending { reads: 1, patience: control.patience, ..Sending::to_standard_peer(psn) };
            let init = Change::Init { rights: link.terms.rights, pkey: Pkey::DEFAULT };
            for change in
                [init, Change::ReadyToReceive(Box::new(agreed)), Change::ReadyToSend(sending)]
            {
                control.nic.change(link.qpn, change)?;
            }
            link.ways(|ways| ways.peer = Some(peer.qpn));
            link.now_stands(Stand::Connected);
            Ok(())
        })
    }
}
