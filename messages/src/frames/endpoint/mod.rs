//! Endpoints: opened on a device, known by their names, sent to and received from.

mod builder;
mod closing;
mod driver;
mod handle;
mod known;
mod lane;
mod lanes;
mod peer;
mod posted;
mod reach;
mod receive;
mod shared;
mod state;
mod wire;
mod works;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use doorbell_verbs::{CloseError, ConnectError, Name, NameError, Nic, OpenError};
use tokio::task::AbortHandle;

pub use builder::EndpointBuilder;
pub use peer::{Peer, Sending};
pub use receive::{Match, Message, Receiving};

use super::policy::Policy;
use super::statistics::Statistics;
use reach::reach;
use shared::Shared;

/// An endpoint of messages that go as frames: receives, and peers to send to. Clones are handles to
/// the same endpoint, which ends when the last is dropped.
#[derive(Clone)]
pub struct Endpoint(Arc<Open>);

struct Open {
    shared: Arc<Shared>,
    accepts: AbortHandle,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.accepts.abort();
        self.shared.is_closing.store(true, Ordering::SeqCst);
        self.shared.stir();
    }
}

impl Endpoint {
    /// Returns the name by which others send to this endpoint.
    pub fn name(&self) -> &Name {
        &self.0.shared.name
    }

    /// Finds the way to another endpoint. Nothing is sent there: frames need no connection, and
    /// whether anybody is there shows when a message is sent.
    ///
    /// # Errors
    /// When the name is none, or its address can't be reached from this device.
    pub async fn connect<N>(&self, name: N) -> Result<Peer, ConnectError>
    where
        N: TryInto<Name, Error: Into<NameError>>,
    {
        let name: Name = name.try_into().map_err(Into::into)?;
        let shared = &self.0.shared;
        let peer = {
            let mut state = shared.lock();
            let most = state.settings.most_peers;
            if state.is_closed {
                return Err(ConnectError::Closed { name: name.to_string() });
            }
            let entered = state.enter(name.clone());
            entered.ok_or_else(|| crowded(&name, most))?
        };
        reach(shared, &name).await.inspect_err(|_| shared.lock().unreached(&name))?;
        Ok(peer)
    }

    /// Closes the endpoint, once peers have confirmed all messages that were sent to them before.
    /// Whoever sends by another handle meanwhile may be too late. From then on, all handles to the
    /// endpoint fail, and peers are told.
    ///
    /// # Errors
    /// When a peer closes its endpoint first, is silent, or does not receive everything within the
    /// [patience](EndpointBuilder::patience). The endpoint is closed all the same, and the error
    /// names the peers.
    ///
    /// Several tasks may close the endpoint, at once or one after another: each gets the same
    /// outcome. If the future is dropped, the endpoint stays open, unless another task closes it.
    pub async fn close(&self) -> Result<(), CloseError> {
        closing::close(&self.0.shared).await
    }

    /// Posts a receive of a message of at most `room` bytes. A longer one that matches is lost, and
    /// the receive fails with both lengths, as MPI has it.
    pub fn receive_at_most(&self, room: usize, of: Match) -> Receiving {
        let shared = &self.0.shared;
        let mut state = shared.lock();
        let receiving = state.receive(room, of, shared.now());
        shared.send(state);
        receiving
    }

    /// Looks for a message whose first frame has come, and that a receive would take now. Returns
    /// its match bits, its length, and its sender.
    pub fn probe(&self, of: Match) -> Option<(u64, u64, Peer)> {
        self.0.shared.lock().probe(of)
    }

    /// Changes the policy of messages that begin from now on, to any peer.
    pub fn set_policy(&self, policy: impl Into<Policy>) {
        self.0.shared.lock().set_policy(policy.into());
    }

    /// Returns what the endpoint has counted.
    pub fn statistics(&self) -> Statistics {
        self.0.shared.lock().statistics()
    }

    /// Takes a turn with the NIC, and handles what has come and what is due. Returns whether more
    /// may have come.
    ///
    /// Programs that await need not call this. It serves programs that compute, and look from time
    /// to time what has come, without letting other tasks run. Messages need no task. The
    /// connections for RDMA writes are made and taken by tasks, though: a program that only polls
    /// lets tasks run until [`Peer::ready`] has returned at both ends, or has frames go as
    /// datagrams.
    pub fn poll(&self) -> bool {
        self.0.shared.nic.turn();
        driver::step(&self.0.shared).0
    }

    /// Returns the NIC by which the endpoint sends and receives, for its statistics.
    pub fn nic(&self) -> &Nic {
        &self.0.shared.nic
    }
}

/// The error of a peer that would be one too many.
fn crowded(name: &Name, most: usize) -> ConnectError {
    let why = OpenError::Promised {
        what: "places for peers",
        has: most,
        advice: "configure more (`EndpointBuilder::peers`)",
    };
    ConnectError::NoRoom { name: name.to_string(), why: Box::new(why) }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("name", &self.name().to_string()).finish_non_exhaustive()
    }
}
