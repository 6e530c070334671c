//! Connections that are being made, stand, or are being ended.

use std::collections::HashMap;
use std::sync::Arc;

use doorbell_core::cm::{ConnectionId, Extensions, Reply, Request, Why};
use doorbell_core::connect::{Agreement, Route};
use doorbell_core::nic::{self, Change, ChangeError, Sending, State};
use doorbell_core::wire::PathMtu;
use doorbell_core::wire::cm::RejectReason;
use tokio::sync::oneshot;

use super::{Control, Manager, Way};
use crate::connect::{Answer, Answered, Asked, Private, Whom, proposal};
use crate::error::ConnectError;
use crate::pair::{Ending, Link, Stand};

#[derive(Default)]
pub(crate) struct Calls(HashMap<ConnectionId, Call>);

/// A connection that the manager knows.
struct Call {
    link: Arc<Link>,
    stage: Stage,
}

enum Stage {
    /// This side has asked for it.
    Asked(Box<Outgoing>),
    /// This side has taken it up.
    Accepted(Box<Accepted>),
    /// It is decided.
    Decided,
}

struct Outgoing {
    request: Request,
    way: Way,
    whom: Whom,
    private: Box<[u8]>,
    answer: Answer,
    /// Whether the peer has refused packets of the size that was proposed, and is to be asked again
    /// with the size that the request has now.
    again: bool,
}

struct Accepted {
    agreement: Agreement,
    extensions: Extensions,
    whom: Whom,
    answer: Answer,
}

impl Calls {
    pub fn link(&self, id: ConnectionId) -> Option<Arc<Link>> {
        self.0.get(&id).map(|call| call.link.clone())
    }

    /// Whoever waits for a connection is told that it did not come about; unless the peer refused
    /// it for the size of packets, and there are smaller ones: then it is asked again.
    pub fn failed(&mut self, id: ConnectionId, why: Why) {
        let Some(call) = self.0.get_mut(&id) else { return };
        tracing::debug!(qpn = %call.link.qpn, ?why, "no connection");
        if let Stage::Asked(outgoing) = &mut call.stage
            && matches!(why, Why::Refused { reason: RejectReason::INVALID_MTU, .. })
            && let Some(mtu) = smaller(outgoing.request.mtu)
        {
            (outgoing.request.mtu, outgoing.again) = (mtu, true);
            return;
        }
        call.link.end(Ending::of(why.clone()));
        if let Some((answer, whom)) = call.decide() {
            let _ = answer.send(Err(ConnectError::of(why, whom)));
        }
    }

    /// Ends a queue pair's connection, in whichever state it is, if it has one.
    pub fn give_up(&mut self, link: &Link, manager: &mut Manager) {
        let Some(id) = link.ways(|ways| ways.id) else { return };
        // One of them is right; all of them, when it is over already, are wrong.
        let _ = manager
            .disconnect(id, &[])
            .or_else(|_| manager.cancel(id))
            .or_else(|_| manager.reject(id, RejectReason::CONSUMER, &[]));
        if let Some((answer, whom)) = self.0.get_mut(&id).and_then(Call::decide) {
            let Whom { peer, service } = whom;
            let _ = answer.send(Err(ConnectError::GivenUp { peer, service }));
        }
    }
}

/// The next smaller size of packets, if there is one.
fn smaller(mtu: PathMtu) -> Option<PathMtu> {
    PathMtu::ALL.into_iter().rev().find(|other| *other < mtu)
}

impl Call {
    /// Who waits for the connection, and with whom it was to be.
    fn decide(&mut self) -> Option<(Answer, Whom)> {
        match std::mem::replace(&mut self.stage, Stage::Decided) {
            Stage::Asked(outgoing) => Some((outgoing.answer, outgoing.whom)),
            Stage::Accepted(accepted) => Some((accepted.answer, accepted.whom)),
            Stage::Decided => None,
        }
    }
}

impl Control {
    /// Asks for a connection.
    pub fn call(
        &mut self,
        link: &Arc<Link>,
        way: nic::Way,
        whom: Whom,
        private: &[u8],
    ) -> Result<Answered, ConnectError> {
        let psn = self.nic.first_psn();
        let mut request = proposal(link, &way, whom.service, psn).within(self.connect_timeout);
        request.mtu = self.mtu;
        let way = self.way(Route::new(way));
        let id = self.manager.connect(way.clone(), &request, private)?;
        link.now_stands(Stand::Connecting);
        let (answer, answered) = oneshot::channel();
        let private = private.into();
        let outgoing = Outgoing { request, way, whom, private, answer, again: false };
        self.asked(id, link.clone(), Box::new(outgoing));
        Ok(answered)
    }

    fn asked(&mut self, id: ConnectionId, link: Arc<Link>, outgoing: Box<Outgoing>) {
        link.ways(|ways| ways.id = Some(id));
        self.calls.0.insert(id, Call { link, stage: Stage::Asked(outgoing) });
    }

    /// Nothing is left of a connection, and its queue pair may have another: where the peer takes
    /// smaller packets only, it is asked for them now.
    pub fn released(&mut self, id: ConnectionId) {
        let Some(Call { link, stage }) = self.calls.0.remove(&id) else { return };
        link.ways(|ways| ways.id = None);
        let Stage::Asked(mut outgoing) = stage else { return };
        if !std::mem::take(&mut outgoing.again) {
            return;
        }
        tracing::debug!(qpn = %link.qpn, mtu = outgoing.request.mtu.bytes(), "asks again");
        let Outgoing { request, way, private, .. } = &*outgoing;
        match self.manager.connect(way.clone(), request, private) {
            Ok(id) => self.asked(id, link, outgoing),
            Err(why) => {
                link.end(Ending::of(Why::Refused {
                    reason: RejectReason::INVALID_MTU,
                    info: Vec::new(),
                    private: Vec::new(),
                }));
                let _ = outgoing.answer.send(Err(why.into()));
            }
        }
    }

    /// Takes a connection up that a peer asks for.
    pub fn accept(
        &mut self,
        link: &Arc<Link>,
        asked: Asked,
        peer: String,
        private: &[u8],
    ) -> Result<Answered, ConnectError> {
        let Asked { id, way, request, extensions, .. } = asked;
        let reply = Reply {
            flow_control: !link.terms.shares_receives,
            srq: link.terms.shares_receives,
            rnr_retry_count: link.terms.rnr_retries,
            ..Reply::to(&request, link.qpn, self.nic.first_psn(), link.terms.reads)
        };
        let agreement = Agreement::responders(&request, &reply);
        let whom = Whom { peer, service: request.service };
        let connection = self.connection(link, (&agreement, id), &way, extensions);
        let receives = Change::ReadyToReceive(Box::new(connection));
        let changed = self
            .nic
            .change(link.qpn, agreement.init(link.terms.rights))
            .and_then(|()| self.nic.change(link.qpn, receives));
        let accepted = changed
            .map_err(ConnectError::from)
            .and_then(|()| self.manager.accept(id, &reply, private).map_err(ConnectError::from));
        let extensions = accepted.inspect_err(|_| {
            let _ = self.manager.reject(id, RejectReason::CONSUMER, &[]);
        })?;
        link.ways(|ways| ways.peer = Some(agreement.peer));
        link.ways(|ways| ways.id = Some(id));
        link.now_stands(Stand::Connecting);
        let (answer, answered) = oneshot::channel();
        let stage = Stage::Accepted(Box::new(Accepted { agreement, extensions, whom, answer }));
        self.calls.0.insert(id, Call { link: link.clone(), stage });
        Ok(answered)
    }

    /// Ends a connection, if it is not over.
    pub fn disconnect(&mut self, link: &Link, private: &[u8]) -> Result<(), ConnectError> {
        match link.stand() {
            Stand::Unconnected | Stand::Connecting => {
                return Err(ConnectError::NotConnected(link.qpn));
            }
            Stand::Connected => {}
            Stand::Ended(_) => return Ok(()),
        }
        let id = link.ways(|ways| ways.id);
        // If there are too many bytes to tell, it goes on.
        id.map_or(Ok(()), |id| self.manager.disconnect(id, private))?;
        self.nic.change(link.qpn, Change::Error)?;
        self.parts = true;
        // It was agreed upon elsewhere, and there is no way to tell.
        if id.is_none() {
            self.end(link, Ending::Left { private: Private::default() });
        }
        Ok(())
    }

    /// Makes a queue pair ready, by what was agreed upon.
    fn ready(
        &mut self,
        link: &Link,
        (agreement, id): (&Agreement, ConnectionId),
        way: &Way,
        extensions: Extensions,
    ) -> Result<(), ChangeError> {
        let connection = self.connection(link, (agreement, id), way, extensions);
        self.nic.change(link.qpn, agreement.init(link.terms.rights))?;
        self.nic.change(link.qpn, Change::ReadyToReceive(Box::new(connection)))?;
        self.nic.change(link.qpn, self.sending(agreement, extensions))?;
        link.ways(|ways| ways.peer = Some(agreement.peer));
        Ok(())
    }

    /// What a queue pair must know of a peer, as far as the manager has agreed upon it.
    fn connection(
        &mut self,
        link: &Link,
        (agreement, id): (&Agreement, ConnectionId),
        way: &Way,
        extensions: Extensions,
    ) -> nic::Connection {
        let path = self.path(link, way);
        let peer_guid = self.manager.peer(id);
        nic::Connection { peer_guid, ..agreement.connection(path, extensions) }
    }

    /// How a queue pair insists: for as long as hosts may be silent.
    fn sending(&self, agreement: &Agreement, extensions: Extensions) -> Change {
        let patience = self.patience;
        Change::ReadyToSend(Sending { patience, ..agreement.sending(extensions) })
    }
}

/// A peer has taken a connection up.
pub(crate) fn replied(
    control: &mut Control,
    (id, reply, extensions): (ConnectionId, &Reply, Extensions),
    private: Vec<u8>,
) {
    let call = control.calls.0.get_mut(&id);
    let Some((link, stage)) =
        call.map(|call| (call.link.clone(), std::mem::replace(&mut call.stage, Stage::Decided)))
    else {
        return;
    };
    let Stage::Asked(outgoing) = stage else { return };
    let Outgoing { request, way, whom, answer, .. } = *outgoing;
    let agreement = Agreement::requesters(&request, reply);
    let ready = control
        .ready(&link, (&agreement, id), &way, extensions)
        .map_err(|why| not_ready(&link, why, whom));
    let ready = ready.and_then(|()| Ok(control.manager.ready(id, &[])?));
    let _ = match ready {
        Ok(()) => {
            tracing::debug!(qpn = %link.qpn, peer = %reply.qpn, "connected");
            link.now_stands(Stand::Connected);
            answer.send(Ok(private.into()))
        }
        Err(why) => {
            let _ = control.manager.reject(id, RejectReason::CONSUMER, &[]);
            answer.send(Err(why))
        }
    };
}

/// The peer knows that a connection stands which this side has taken up.
pub(crate) fn established(control: &mut Control, id: ConnectionId, private: Vec<u8>) {
    let Some(call) = control.calls.0.get_mut(&id) else { return };
    let (link, stage) = (call.link.clone(), std::mem::replace(&mut call.stage, Stage::Decided));
    let Stage::Accepted(accepted) = stage else { return };
    let Accepted { agreement, extensions, whom, answer } = *accepted;
    let sending = control.sending(&agreement, extensions);
    let _ = match control.nic.change(link.qpn, sending) {
        Ok(()) => {
            tracing::debug!(qpn = %link.qpn, peer = %agreement.peer, "connected");
            link.now_stands(Stand::Connected);
            answer.send(Ok(private.into()))
        }
        // The queue pair broke before its connection stood.
        Err(why) => {
            let _ = control.manager.disconnect(id, &[]);
            answer.send(Err(not_ready(&link, why, whom)))
        }
    };
}

/// Why a queue pair was not made ready for a connection: if it is in the error state, or was
/// dropped, how its connection ended tells more than that it can't change.
fn not_ready(link: &Link, why: ChangeError, Whom { peer, service }: Whom) -> ConnectError {
    let is_over = match why {
        ChangeError::NoSuchQueuePair(_) => true,
        ChangeError::Transition { from, .. } => from == State::Error,
        _ => false,
    };
    match link.stand() {
        _ if !is_over => why.into(),
        Stand::Ended(Ending::PeerLeft { .. }) => ConnectError::PeerLeft { peer, service },
        _ => ConnectError::GivenUp { peer, service },
    }
}
