//! The table of connections that the connection manager knows, with the tasks that wait for them.

use std::collections::HashMap;
use std::sync::Arc;

use doorbell_core::cm::{ConnectionId, ConnectionManager, Extensions, Request, Why};
use doorbell_core::connect::Agreement;
use doorbell_core::wire::PathMtu;
use doorbell_core::wire::cm::RejectReason;
use tokio::sync::oneshot;

use super::encryption::{Shaking, may_be_clear};
use crate::error::{ConnectError, Target};
use crate::link::{Ending, Link, Private, Way};

/// The connection manager of a NIC.
pub(crate) type Manager = ConnectionManager<Way>;

/// The sending end of the outcome that a task awaits.
pub(crate) type Answer = oneshot::Sender<Result<Private, ConnectError>>;
/// The receiver of a connection's outcome, for the task that waits for it.
pub(crate) type Answered = oneshot::Receiver<Result<Private, ConnectError>>;

/// The connections that are being made, or stand, by the numbers of the connection manager.
#[derive(Default)]
pub(crate) struct ConnectionTable(pub(super) HashMap<ConnectionId, Entry>);

/// One connection that the connection manager knows.
pub(super) struct Entry {
    pub link: Arc<Link>,
    pub stage: Stage,
}

/// How far a connection has come.
pub(super) enum Stage {
    /// A connection that this side has asked for.
    Asked(Box<Outgoing>),
    /// A connection that this side has accepted.
    Accepted(Box<Accepted>),
    /// A connection whose outcome the waiting task was told.
    Decided,
}

/// A connection that this side has asked for, until its peer has answered.
pub(super) struct Outgoing {
    pub request: Request,
    pub way: Way,
    pub target: Target,
    pub private: Box<[u8]>,
    pub answer: Answer,
    /// Whether the peer has refused the proposed packet size, and will be asked again with the
    /// smaller one that the request has now.
    pub again: bool,
    /// How far its handshake has come.
    pub shaking: Shaking,
    /// Whether the peer does not encrypt, and is asked in the clear.
    pub in_the_clear: bool,
    /// Whether the connection may be in the clear if the peer does not encrypt.
    pub may_be_clear: bool,
}

/// A connection that this side has accepted, until its peer has confirmed it.
pub(super) struct Accepted {
    pub agreement: Agreement,
    pub extensions: Extensions,
    pub target: Target,
    pub answer: Answer,
}

impl ConnectionTable {
    pub fn link(&self, id: ConnectionId) -> Option<Arc<Link>> {
        self.0.get(&id).map(|entry| entry.link.clone())
    }

    /// Tells the waiting task that its connection was not established. If the peer refused the
    /// packet size, and there is a smaller one, notes instead that the peer will be asked again.
    pub fn failed(&mut self, id: ConnectionId, why: Why) {
        let Some(entry) = self.0.get_mut(&id) else { return };
        tracing::debug!(qpn = %entry.link.qpn, ?why, "no connection");
        if let Stage::Asked(outgoing) = &mut entry.stage
            && matches!(why, Why::Refused { reason: RejectReason::INVALID_MTU, .. })
            && let Some(mtu) = smaller(outgoing.request.mtu)
        {
            (outgoing.request.mtu, outgoing.again) = (mtu, true);
            return;
        }
        let why = match &mut entry.stage {
            Stage::Asked(outgoing) => match outgoing.refused(why) {
                Some(why) => why,
                None => return,
            },
            _ => why,
        };
        entry.link.end(Ending::of(why.clone()));
        if let Some((answer, target)) = entry.decide() {
            let _ = answer.send(Err(ConnectError::of(why, target)));
        }
    }

    /// Tells the waiting task that its connection can't be established, for a reason of this side's.
    pub fn fail(&mut self, id: ConnectionId, why: ConnectError) {
        let Some(entry) = self.0.get_mut(&id) else { return };
        tracing::debug!(qpn = %entry.link.qpn, %why, "no connection");
        if let Some((answer, _)) = entry.decide() {
            let _ = answer.send(Err(why));
        }
    }

    /// Ends the connection of a queue pair in whatever state it is, if there is one, with private
    /// data for the peer if it stands.
    pub fn give_up(&mut self, link: &Link, private: &[u8], manager: &mut Manager) {
        let Some(id) = link.nic_side(|side| side.id) else { return };
        // One of the three calls fits the state of a connection; none does when it has ended
        // already.
        let _ = manager
            .disconnect(id, private)
            .or_else(|_| manager.cancel(id))
            .or_else(|_| manager.reject(id, RejectReason::CONSUMER, &[]));
        if let Some((answer, target)) = self.0.get_mut(&id).and_then(Entry::decide) {
            let Target { peer, service } = target;
            let _ = answer.send(Err(ConnectError::GivenUp { peer, service }));
        }
    }
}

impl Outgoing {
    /// Takes the reason why the connection was not established. Returns it as the program is to see
    /// it; or none if the peer does not encrypt, need not, and will be asked in the clear.
    fn refused(&mut self, why: Why) -> Option<Why> {
        let Why::Refused { reason, info, private } = why else { return Some(why) };
        let private = match &self.shaking {
            Shaking::Ended(session) => session.open_refusal(&private).unwrap_or_default(),
            Shaking::Begun(_) if self.may_be_clear && may_be_clear(reason) => {
                (self.in_the_clear, self.again) = (true, true);
                return None;
            }
            _ => private,
        };
        Some(Why::Refused { reason, info, private })
    }
}

/// Returns the next smaller packet size, if there is one.
fn smaller(mtu: PathMtu) -> Option<PathMtu> {
    PathMtu::ALL.into_iter().rev().find(|other| *other < mtu)
}

impl Entry {
    /// Takes the sender of the outcome, and the names for the error, unless the task was told
    /// before.
    fn decide(&mut self) -> Option<(Answer, Target)> {
        match std::mem::replace(&mut self.stage, Stage::Decided) {
            Stage::Asked(outgoing) => Some((outgoing.answer, outgoing.target)),
            Stage::Accepted(accepted) => Some((accepted.answer, accepted.target)),
            Stage::Decided => None,
        }
    }
}
