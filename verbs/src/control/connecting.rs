//! Making connections by the connection manager, and ending them.

use std::sync::Arc;

use doorbell_core::cm::{self, ConnectionId, Extensions, Reply, Request, Why};
use doorbell_core::connect::{Agreement, Route, Session};
use doorbell_core::encap::Path;
use doorbell_core::nic::{self, Change, ChangeError, Sending, State};
use doorbell_core::wire::cm::{
    CmPort, InitiatorDepth, IpCm, IpPair, RejectReason, ResponderResources,
};
use doorbell_core::wire::{Gid, Psn, Qpn, ServiceId};
use tokio::sync::oneshot;

use super::connections::{Accepted, Answered, Entry, Outgoing, Stage};
use super::encryption::check_fits;
use super::listeners::ConnectionRequest;
use super::state::Control;
use crate::error::{ConnectError, Target};
use crate::link::{ConnectionState, Ending, Link, Private};

impl Control {
    /// Asks a peer for a connection. The returned receiver yields the outcome.
    pub fn connect(
        &mut self,
        link: &Arc<Link>,
        way: nic::Way,
        target: Target,
        private: &[u8],
    ) -> Result<Answered, ConnectError> {
        let psn = self.nic.first_psn();
        let mut request = proposal(link, &way, target.service, psn).within(self.connect_timeout);
        request.mtu = self.mtu;
        let way = self.way(Route::new(way));
        let (id, shaking) = self.request(&way, &request, private, false)?;
        link.set_state(ConnectionState::Connecting);
        let (answer, answered) = oneshot::channel();
        let outgoing = Outgoing {
            request,
            way,
            target,
            private: private.into(),
            answer,
            again: false,
            shaking,
            in_the_clear: false,
            may_be_clear: !self.encryption.is_required(),
        };
        self.insert_outgoing(id, link.clone(), Box::new(outgoing));
        Ok(answered)
    }

    fn insert_outgoing(&mut self, id: ConnectionId, link: Arc<Link>, outgoing: Box<Outgoing>) {
        link.nic_side(|side| side.id = Some(id));
        self.connections.0.insert(id, Entry { link, stage: Stage::Asked(outgoing) });
    }

    /// Frees the place of a connection of which nothing is left. If the peer takes only smaller
    /// packets, asks for the connection again with those.
    pub fn released(&mut self, id: ConnectionId) {
        let Some(Entry { link, stage }) = self.connections.0.remove(&id) else { return };
        link.nic_side(|side| side.id = None);
        let Stage::Asked(mut outgoing) = stage else { return };
        if !std::mem::take(&mut outgoing.again) {
            return;
        }
        tracing::debug!(qpn = %link.qpn, mtu = outgoing.request.mtu.bytes(), "asks again");
        let Outgoing { request, way, private, in_the_clear, .. } = &*outgoing;
        match self.request(way, request, private, *in_the_clear) {
            Ok((id, shaking)) => {
                outgoing.shaking = shaking;
                self.insert_outgoing(id, link, outgoing);
            }
            Err(why) => {
                link.end(Ending::of(Why::Refused {
                    reason: RejectReason::INVALID_MTU,
                    info: Vec::new(),
                    private: Vec::new(),
                }));
                let _ = outgoing.answer.send(Err(why));
            }
        }
    }

    /// Accepts a connection that a peer has asked for. The returned receiver yields the outcome.
    pub fn accept(
        &mut self,
        link: &Arc<Link>,
        asked: ConnectionRequest,
        peer: String,
        private: &[u8],
    ) -> Result<Answered, ConnectError> {
        let ConnectionRequest { id, way, request, extensions, mut session, .. } = asked;
        let reply = Reply {
            flow_control: !link.terms.shares_receives,
            srq: link.terms.shares_receives,
            rnr_retry_count: link.terms.rnr_retries,
            ..Reply::to(&request, link.qpn, self.nic.first_psn(), link.terms.reads)
        };
        let agreement = Agreement::responders(&request, &reply);
        let target = Target { peer, service: request.service };
        let sealed = sealed_reply(session.as_ref(), &reply, private).inspect_err(|_| {
            let _ = self.manager.reject(id, RejectReason::CONSUMER, &[]);
        })?;
        let private = sealed.as_deref().unwrap_or(private);
        let path = encrypted(self.path(link, &way), session.as_mut())?;
        let connection = self.connection((&agreement, id), path, extensions);
        let receives = Change::ReadyToReceive(Box::new(connection));
        let changed = self
            .nic
            .change(link.qpn, agreement.init(link.terms.rights))
            .and_then(|()| self.nic.change(link.qpn, receives));
        let accepted = changed
            .map_err(ConnectError::from)
            .and_then(|()| self.manager.accept(id, &reply, private).map_err(ConnectError::from))
            .and_then(|agreed| {
                if let Some(session) = &session {
                    self.manager.guard(id, session.guard())?;
                }
                Ok(agreed)
            });
        let extensions = accepted.inspect_err(|_| {
            let _ = self.manager.reject(id, RejectReason::CONSUMER, &[]);
        })?;
        link.nic_side(|side| side.peer = Some(agreement.peer));
        link.nic_side(|side| side.id = Some(id));
        link.set_state(ConnectionState::Connecting);
        let (answer, answered) = oneshot::channel();
        let stage = Stage::Accepted(Box::new(Accepted { agreement, extensions, target, answer }));
        self.connections.0.insert(id, Entry { link: link.clone(), stage });
        Ok(answered)
    }

    /// Ends a connection, unless it has ended already.
    pub fn disconnect(&mut self, link: &Link, private: &[u8]) -> Result<(), ConnectError> {
        match link.state() {
            ConnectionState::Unconnected | ConnectionState::Connecting => {
                return Err(ConnectError::NotConnected(link.qpn));
            }
            ConnectionState::Connected => {}
            ConnectionState::Ended(_) => return Ok(()),
        }
        let id = link.nic_side(|side| side.id);
        // When the private data is too long, the connection goes on.
        id.map_or(Ok(()), |id| self.manager.disconnect(id, private))?;
        self.nic.change(link.qpn, Change::Error)?;
        self.disconnects = true;
        // The connection was made without the connection manager, and there is no way to tell the
        // peer.
        if id.is_none() {
            self.end(link, Ending::Left { private: Private::default() });
        }
        Ok(())
    }

    /// Moves a queue pair to the ready states, with the terms that both sides have agreed upon.
    fn ready(
        &mut self,
        link: &Link,
        (agreement, id): (&Agreement, ConnectionId),
        path: Path,
        extensions: Extensions,
    ) -> Result<(), ChangeError> {
        let connection = self.connection((agreement, id), path, extensions);
        self.nic.change(link.qpn, agreement.init(link.terms.rights))?;
        self.nic.change(link.qpn, Change::ReadyToReceive(Box::new(connection)))?;
        self.nic.change(link.qpn, self.sending(agreement, extensions))?;
        link.nic_side(|side| side.peer = Some(agreement.peer));
        Ok(())
    }

    /// Returns the parameters of the peer for a queue pair, as far as the connection manager has
    /// agreed upon them.
    fn connection(
        &mut self,
        (agreement, id): (&Agreement, ConnectionId),
        path: Path,
        extensions: Extensions,
    ) -> nic::Connection {
        let peer_guid = self.manager.peer(id);
        nic::Connection { peer_guid, ..agreement.connection(path, extensions) }
    }

    /// Returns the change to the ready-to-send state. A queue pair repeats requests for as long as
    /// hosts may be silent.
    fn sending(&self, agreement: &Agreement, extensions: Extensions) -> Change {
        let patience = self.patience;
        let sending = agreement.sending(extensions);
        Change::ReadyToSend(Sending { patience, ..self.sharing_network.apply(sending) })
    }
}

/// Handles the peer's reply: the connection is accepted.
pub(crate) fn replied(
    control: &mut Control,
    (id, reply, extensions): (ConnectionId, &Reply, Extensions),
    private: Vec<u8>,
) {
    // If the connection has come to an end since, the event that follows says why.
    if control.manager.state(id) != Some(cm::ConnectionState::RepReceived) {
        return;
    }
    let entry = control.connections.0.get_mut(&id);
    let Some((link, stage)) = entry
        .map(|entry| (entry.link.clone(), std::mem::replace(&mut entry.stage, Stage::Decided)))
    else {
        return;
    };
    let Stage::Asked(mut outgoing) = stage else { return };
    let opened = control.open_reply(id, &mut outgoing, reply, private);
    if opened.is_err() && outgoing.may_be_clear && !extensions.encrypt() {
        // The peer does not encrypt, and need not: it is asked again, in the clear.
        let _ = control.manager.reject(id, RejectReason::CONSUMER, &[]);
        (outgoing.in_the_clear, outgoing.again) = (true, true);
        if let Some(entry) = control.connections.0.get_mut(&id) {
            entry.stage = Stage::Asked(outgoing);
        }
        return;
    }
    let Outgoing { request, way, target, answer, .. } = *outgoing;
    let agreement = Agreement::requesters(&request, reply);
    let ready = opened.and_then(|(private, mut session)| {
        let path = encrypted(control.path(&link, &way), session.as_mut())?;
        control
            .ready(&link, (&agreement, id), path, extensions)
            .map_err(|why| not_ready(&link, why, target))?;
        control.manager.ready(id, &[])?;
        Ok(private)
    });
    let _ = match ready {
        Ok(private) => {
            tracing::debug!(qpn = %link.qpn, peer = %reply.qpn, "connected");
            link.set_state(ConnectionState::Connected);
            answer.send(Ok(private.into()))
        }
        Err(why) => {
            let _ = control.manager.reject(id, RejectReason::CONSUMER, &[]);
            answer.send(Err(why))
        }
    };
}

/// Handles the peer's confirmation of a connection that this side has accepted.
pub(crate) fn established(control: &mut Control, id: ConnectionId, private: Vec<u8>) {
    let Some(entry) = control.connections.0.get_mut(&id) else { return };
    let (link, stage) = (entry.link.clone(), std::mem::replace(&mut entry.stage, Stage::Decided));
    let Stage::Accepted(accepted) = stage else { return };
    let Accepted { agreement, extensions, target, answer } = *accepted;
    let sending = control.sending(&agreement, extensions);
    let _ = match control.nic.change(link.qpn, sending) {
        Ok(()) => {
            tracing::debug!(qpn = %link.qpn, peer = %agreement.peer, "connected");
            link.set_state(ConnectionState::Connected);
            answer.send(Ok(private.into()))
        }
        // The queue pair broke before the connection was established.
        Err(why) => {
            let _ = control.manager.disconnect(id, &[]);
            answer.send(Err(not_ready(&link, why, target)))
        }
    };
}

/// Returns the path of a connection, encrypted if there is a session.
fn encrypted(path: Path, session: Option<&mut Session>) -> Result<Path, ConnectError> {
    match session.and_then(Session::take_keys) {
        Some(keys) => path.encrypted(keys).ok_or_else(|| {
            let why = "the way to the peer is a link without headers, which can't be encrypted";
            ConnectError::Handshake(why.into())
        }),
        None => Ok(path),
    }
}

/// Seals a reply and a program's private data, if there is a session.
fn sealed_reply(
    session: Option<&Session>,
    reply: &Reply,
    private: &[u8],
) -> Result<Option<Vec<u8>>, ConnectError> {
    let Some(session) = session else { return Ok(None) };
    check_fits(private, Session::MOST_IN_REPLY)?;
    Ok(Some(session.seal_reply(reply, private)))
}

/// Returns the error of a queue pair that could not be made ready. If the queue pair broke or was
/// dropped meanwhile, the way its connection ended says more than the failed change.
fn not_ready(link: &Link, why: ChangeError, Target { peer, service }: Target) -> ConnectError {
    let is_over = match why {
        ChangeError::NoSuchQueuePair(_) => true,
        ChangeError::Transition { from, .. } => from == State::Error,
        _ => false,
    };
    match link.state() {
        _ if !is_over => why.into(),
        ConnectionState::Ended(Ending::PeerLeft { .. }) => ConnectError::PeerLeft { peer, service },
        _ => ConnectError::GivenUp { peer, service },
    }
}

/// Returns the addresses and the port in a request for a port, as `rdma_cm` encodes them.
fn addressing(qpn: Qpn, (from, to): (Gid, Gid)) -> IpCm {
    let addresses = match (from.to_ipv4(), to.to_ipv4()) {
        (Some(source), Some(destination)) => IpPair::V4 { source, destination },
        _ => IpPair::V6 { source: from.into(), destination: to.into() },
    };
    // The source port only tells requesters apart; nobody listens there.
    IpCm { source_port: CmPort(0xC000 | qpn.get() as u16), addresses }
}

/// Builds the request for a connection, with this side's terms.
fn proposal(link: &Link, way: &nic::Way, service: ServiceId, psn: Psn) -> Request {
    let (from, to) = match way {
        nic::Way::Network(outer) => outer.gids(),
        nic::Way::Link(_) => (Gid::default(), Gid::default()),
    };
    Request {
        responder_resources: ResponderResources(link.terms.reads),
        initiator_depth: InitiatorDepth(link.terms.reads),
        flow_control: !link.terms.shares_receives,
        srq: link.terms.shares_receives,
        rnr_retry_count: link.terms.rnr_retries,
        addressing: service.ip_port().map(|_| addressing(link.qpn, (from, to))),
        ..Request::new(service, link.qpn, psn, from, to)
    }
}
