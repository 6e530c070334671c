//! Peers: handles by which programs call, send and place, and the waiting for what comes back.
//!
//! The folder is told what a program wants of a peer, has the link send it, and waits while it has
//! the progress engine handle what comes. It knows neither endpoints nor bundles.

mod call;
mod coming;
mod credit;
mod deadline;
mod lookup;
mod placing;
mod question;
mod sending;
mod waiting;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use doorbell_verbs::Ending;

use crate::error::SendError;
use crate::link::Link;
use crate::name::Name;
pub use credit::Credit;
pub(crate) use lookup::learn;
pub use placing::Placing;
pub(crate) use question::{ask, ask_within, settle};

/// An endpoint's peer, to call and to send to. Clones are handles to the same. It may be used for
/// as long as the [`Endpoint`](crate::Endpoint) is there; kept for longer, it keeps the memory of
/// the endpoint's NIC.
#[derive(Clone)]
pub struct Peer {
    link: Arc<Link>,
    /// How long whoever waits for it by this handle does so.
    within: Option<Duration>,
}

/// A peer that is probed for signs of life until this is dropped.
pub(crate) struct Watch(Arc<Link>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.end_sleep();
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Peer").field(&self.link.peer_text()).finish()
    }
}

/// The name, or what there is of it: see [`Peer::name`].
impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.link.peer_text())
    }
}

/// Handles to the same peer by the same connection are equal, however long they wait.
impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.link, &other.link)
    }
}

impl Eq for Peer {}

impl Hash for Peer {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        Arc::as_ptr(&self.link).hash(hasher);
    }
}

impl Peer {
    pub(crate) fn of(link: Arc<Link>) -> Self {
        let within = link.endpoint.config.deadline;
        Self { link, within }
    }

    /// A handle by which calls wait so long for their answers, and requests and payloads for
    /// credits, whatever the endpoint's [`deadline`](crate::EndpointConfig::deadline) is: for one
    /// call, or for many. The time of each counts from when it begins to sleep. With
    /// [`Duration::MAX`] they wait as long as the peer is there.
    ///
    /// When the time is over a call ends with [`CallError::Deadline`], and what else needs a credit
    /// with [`SendError::NoCredit`]. A call that was sent is given up then, as one that is dropped:
    /// its answer, if one comes, goes nowhere.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use doorbell::am::{Call, CallError, Peer};
    ///
    /// const ADD: Call<(u64, u64), u64> = Call::new("add");
    ///
    /// async fn add(peer: &Peer) -> Result<u64, CallError> {
    ///     peer.within(Duration::from_secs(2)).call(ADD, (2, 3)).await
    /// }
    /// ```
    #[must_use]
    pub fn within(&self, within: Duration) -> Self {
        Self { link: self.link.clone(), within: Some(within) }
    }

    /// Why it has gone, if it has.
    pub fn ending(&self) -> Option<Ending> {
        self.link.ending()
    }

    /// The name by which this endpoint has connected to the peer, or `None` if only the peer has
    /// connected to this endpoint.
    pub fn name(&self) -> Option<Name> {
        self.link.name()
    }

    /// Takes the peer off the endpoint's translation table, wherever it is there, and waits until
    /// it has handled what was sent there before: see [`Endpoint::unmap`](crate::Endpoint::unmap).
    /// Who drops a `Peer` instead stays connected, and may [connect](crate::Endpoint::connect)
    /// again for the same one.
    ///
    /// # Errors
    /// When this endpoint has not mapped the peer, or has taken it off already.
    pub async fn disconnect(&self) -> Result<(), SendError> {
        match self.link.endpoint.owner.upgrade() {
            Some(owner) => owner.disconnect(&self.link).await,
            None => Err(SendError::NotConnected { peer: self.link.peer_text() }),
        }
    }

    /// The runtime that serves the endpoint. For layers of this workspace that stand on Active Messages.
    #[doc(hidden)]
    pub fn runtime(&self) -> &tokio::runtime::Handle {
        &self.link.endpoint.runtime
    }

    /// The longest payload that it takes in a message.
    pub fn longest_payload(&self) -> usize {
        self.link.longest()
    }

    /// Has the peer probed for signs of life until what this gives is dropped.
    pub(crate) fn watch(&self) -> Watch {
        self.link.begin_sleep();
        Watch(self.link.clone())
    }

    /// Demands a sign of life from the peer's NIC, or else the connection ends: for layers of this
    /// workspace that wait for a peer's messages and do not call it. To be repeated while they
    /// wait.
    #[doc(hidden)]
    pub fn probe(&self) {
        self.link.connection.probe();
    }
}
