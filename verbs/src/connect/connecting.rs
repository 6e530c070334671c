//! Making a connection in band: asking for one, and accepting one.

use std::net::{IpAddr, SocketAddr};

use doorbell_core::encap::Host;
use doorbell_core::nic::Way;
use doorbell_core::wire::ServiceId;
use doorbell_transports::Address;

use super::connection::Connection;
use super::incoming::Incoming;
use super::reach::{leads_to, reach};
use crate::error::{ConnectError, Target};
use crate::link::Private;
use crate::nic::find;
use crate::waiting::with_progress;

/// These methods belong to the connection and not to the queue pair, since its queues must not be
/// shared between threads while a future waits.
impl Connection {
    /// Returns an error for a connection that the connection manager can't make.
    pub(super) fn is_made_in_band(&self) -> Result<(), ConnectError> {
        match self.link().unreliable {
            true => Err(ConnectError::Unreliable(self.link().qpn)),
            false => Ok(()),
        }
    }

    /// Asks the listener of a service at an address for a connection, and waits for the answer.
    /// Returns the private data of the answer.
    pub(super) async fn ask(
        &self,
        to: &str,
        service: ServiceId,
        private: &[u8],
    ) -> Result<Private, ConnectError> {
        let (engine, link) = (self.nic().engine(), self.link());
        let address = find(self.nic().address(), to).await?;
        let way = reach(self.nic(), &address).await?;
        let peer = as_asked(to, &address);
        let target = Target { peer: peer.clone(), service };
        let answered = engine.with(|adapter| {
            adapter.refresh_clock();
            adapter.control().connect(link, way, target, private)
        })?;
        tracing::debug!("connects");
        let given_up = |_| Err(ConnectError::GivenUp { peer, service });
        with_progress(engine, answered).await.unwrap_or_else(given_up)
    }

    /// Tells whether the device at this address is the one at the other end of the connection. A
    /// connection that is over leads nowhere. For layers of this workspace, which must not take a
    /// peer's word for who it is.
    #[doc(hidden)]
    pub async fn leads_to(&self, address: &str) -> Result<bool, ConnectError> {
        let way = self.link().nic_side(|side| side.path.as_ref().map(|(way, _)| way.clone()));
        match way {
            Some(way) => leads_to(self.nic(), way.way(), address).await,
            None => Ok(false),
        }
    }

    /// Accepts a peer's request for a connection, and waits for the peer's confirmation. Returns
    /// the private data of the confirmation.
    pub(super) async fn take_up(
        &self,
        incoming: Incoming,
        private: &[u8],
    ) -> Result<Private, ConnectError> {
        let (engine, asked) = (self.nic().engine(), incoming.decide());
        let service = asked.request.service;
        let peer = peer_of(&engine.address, asked.way.way());
        let answered = engine.with(|adapter| {
            adapter.refresh_clock();
            adapter.control().accept(self.link(), asked, peer.clone(), private)
        })?;
        let given_up = |_| Err(ConnectError::GivenUp { peer, service });
        with_progress(engine, answered).await.unwrap_or_else(given_up)
    }
}

/// Returns the address of a peer as errors show it: the text that the program gave, with the
/// address that was found if the text names a host.
fn as_asked(text: &str, address: &Address) -> String {
    match text.parse::<Address>() {
        Ok(_) => text.to_owned(),
        Err(_) => format!("{address} ({text})"),
    }
}

/// Returns the address of the peer at the end of a route, as text, for a device of the kind that
/// `own` belongs to.
fn peer_of(own: &Address, way: &Way) -> String {
    let outer = match way {
        Way::Link(link) => return format!("the end of link {}", link.0),
        Way::Network(outer) => outer,
    };
    let (_, Host { gid, port }) = outer.hosts();
    let ip = gid.to_ipv4().map_or(IpAddr::V6(gid.into()), IpAddr::V4);
    match own {
        Address::Udp(_) => Address::Udp(SocketAddr::new(ip, port.0)).to_string(),
        Address::Packet(_) => Address::Packet(outer.ethernet().destination).to_string(),
        _ => Address::PacketV2(ip).to_string(),
    }
}
