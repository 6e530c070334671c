//! Peers: handles by which programs call, send and place, and the waiting for what comes back.
//!
//! The folder is told what a program wants of a peer, has the link send it, and waits while it has
//! the progress engine handle what comes. It knows neither endpoints nor bundles.

mod awaitable;
mod call;
mod credit;
mod deadline;
mod gathered;
mod lookup;
mod placing;
mod question;
mod sending;
mod waiting;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use doorbell_verbs::floor::PeerProcess;
use doorbell_verbs::{Ending, Name};

use crate::error::SendError;
use crate::link::Link;
use crate::wire::pack::{HEAD, PACKET};
pub use credit::Credit;
pub use gathered::Gathered;
pub(crate) use lookup::learn;
pub use placing::Placing;
pub(crate) use question::{ask, ask_within, settle, settle_last};

/// Returns how many bytes of a body of `len` bytes are best sent next, in a message with so many
/// words and a payload of at most `longest` bytes: all of them, or as many as fill the packets of
/// the message. Packets of one length leave in one frame, which a shorter one ends.
#[doc(hidden)]
#[must_use]
pub fn part_of(len: usize, words: usize, longest: usize) -> usize {
    if len <= longest {
        return len;
    }
    let beside = HEAD + 8 * words;
    let full = (longest + beside) / PACKET * PACKET;
    full.checked_sub(beside).filter(|part| *part > 0).unwrap_or(longest)
}

/// A handle to a peer of an endpoint, by which programs call and send. Clones are handles to the
/// same peer. A handle works for as long as the [`Endpoint`](crate::Endpoint) is there; a handle
/// that is kept for longer keeps the memory of the endpoint's NIC.
#[derive(Clone)]
pub struct Peer {
    link: Arc<Link>,
    /// The time that waits by this handle may take, if it is bounded.
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

/// Shows the peer's [name](Peer::name), or its number if this side has not mapped the peer.
impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.link.peer_text())
    }
}

/// Compares the connections of two handles. How long the handles wait does not matter.
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

/// Where a peer is: at an address of a network, or in a process of this machine, which is 0 if it
/// is not known.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PeerHost {
    Address(IpAddr),
    Process(u32),
}

impl Peer {
    pub(crate) fn of(link: Arc<Link>) -> Self {
        let within = link.endpoint.config.deadline;
        Self { link, within }
    }

    /// Returns a handle with a deadline of its own, in place of the endpoint's
    /// [`deadline`](crate::EndpointConfig::deadline). By that handle, calls wait for their answers
    /// no longer than `within`, and requests and payloads wait no longer for credits. The time of
    /// each wait counts from when it begins to sleep. With [`Duration::MAX`], waits last as long as
    /// the peer is there.
    ///
    /// When its time is over, a call ends with [`CallError::Deadline`](crate::CallError::Deadline),
    /// and other waits end with [`SendError::NoCredit`]. A call that was sent is given up then, as
    /// if its future were dropped, and an answer that comes later is dropped.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use doorbell_am::{Call, CallError, Peer};
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

    /// Returns how the connection to the peer has ended, if it has.
    pub fn ending(&self) -> Option<Ending> {
        self.link.ending()
    }

    /// Returns how the connection to the peer has ended, if it has and all messages of the peer are
    /// handled. For layers of this workspace that stand on Active Messages.
    #[doc(hidden)]
    pub fn departed(&self) -> Option<Ending> {
        self.link.has_departed().then(|| self.link.ending()).flatten()
    }

    /// Returns the name by which this endpoint has connected to the peer, or `None` if only the
    /// peer has connected to this endpoint.
    pub fn name(&self) -> Option<Name> {
        self.link.name()
    }

    /// Takes the peer off all its places of the endpoint's translation table, and waits until the
    /// peer has handled what was sent to it before: see
    /// [`Endpoint::unmap`](crate::Endpoint::unmap). Dropping a `Peer` does not disconnect; a
    /// program that does so may [connect](crate::Endpoint::connect) again, and gets a handle to the
    /// same peer.
    ///
    /// # Errors
    /// When this endpoint has not mapped the peer, or has taken it off already.
    pub async fn disconnect(&self) -> Result<(), SendError> {
        match self.link.endpoint.owner.upgrade() {
            Some(owner) => owner.disconnect(&self.link).await,
            None => Err(SendError::NotConnected { peer: self.link.peer_text() }),
        }
    }

    /// Ends the connection to the peer, because the peer breaks the rules of a layer above. For
    /// layers of this workspace that stand on Active Messages.
    #[doc(hidden)]
    pub fn cut_off(&self) {
        self.link.end_overrun();
    }

    /// Ends the connection to the peer, of which no further message is handled, to make room for
    /// others. For layers of this workspace that stand on Active Messages.
    #[doc(hidden)]
    pub fn give_up(&self) {
        if let Some(owner) = self.link.endpoint.owner.upgrade() {
            owner.give_up(&self.link);
        }
    }

    /// Returns where the peer is. Not for handlers, which may hold the NIC. For layers of this
    /// workspace that stand on Active Messages.
    #[doc(hidden)]
    pub fn host(&self) -> PeerHost {
        match self.link.connection.peer_address() {
            Some(address) => PeerHost::Address(address.ip()),
            None => PeerHost::Process(self.process().map_or(0, |process| process.number())),
        }
    }

    /// Returns the process of the peer, as the kernel tells, if the peer is on this machine. For
    /// layers of this workspace that stand on Active Messages.
    #[doc(hidden)]
    pub fn process(&self) -> Option<PeerProcess> {
        self.link.connection.peer_process()
    }

    /// Returns the address and port of the peer's NIC, or `None` on a device whose peers have no
    /// such addresses. For layers of this workspace that stand on Active Messages.
    #[doc(hidden)]
    pub fn peer_address(&self) -> Option<SocketAddr> {
        self.link.connection.peer_address()
    }

    /// Returns the runtime that serves the endpoint. For layers of this workspace that stand on
    /// Active Messages.
    #[doc(hidden)]
    pub fn runtime(&self) -> &tokio::runtime::Handle {
        &self.link.endpoint.runtime
    }

    /// Notes the number by which a layer above knows the peer, which requests of the peer
    /// [tell](crate::Request::noted); 0 stands for none. For layers of this workspace that stand on
    /// Active Messages.
    #[doc(hidden)]
    pub fn note(&self, number: u64) {
        self.link.note(number);
    }

    /// Returns a count that changes with each answer, credit and end of the peer's. For layers of
    /// this workspace that stand on Active Messages.
    #[doc(hidden)]
    #[inline]
    pub fn changes(&self) -> u32 {
        self.link.changes()
    }

    /// Returns the NIC by which the peer is reached. For layers of this workspace that stand on
    /// Active Messages.
    #[doc(hidden)]
    pub fn nic(&self) -> &doorbell_verbs::Nic {
        &self.link.endpoint.nic
    }

    /// Returns the longest payload that the peer takes in a message.
    pub fn longest_payload(&self) -> usize {
        self.link.longest()
    }

    /// Returns how many bytes of a body of `len` bytes are best sent to the peer next, in a message
    /// with so many words beside them: all of them, or as many as fill the packets of the message.
    pub fn part_of(&self, len: usize, words: usize) -> usize {
        part_of(len, words, self.link.longest())
    }

    /// Has the peer probed for signs of life until the returned value is dropped.
    pub(crate) fn watch(&self) -> Watch {
        self.link.begin_sleep();
        Watch(self.link.clone())
    }

    /// Demands a sign of life from the peer's NIC, without which the connection ends. For layers of
    /// this workspace that wait for a peer's messages and do not call it, and that repeat this
    /// meanwhile.
    #[doc(hidden)]
    pub fn probe(&self) {
        self.link.connection.probe();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_body_fill_packets_and_the_last_is_what_is_left() {
        for (words, longest, part) in
            [(1, 4096, 4080), (3, 4096, 4064), (1, 16 << 10, (16 << 10) - 16), (2, 5000, 4072)]
        {
            assert_eq!(part_of(usize::MAX, words, longest), part);
            assert_eq!(part_of(longest + 1, words, longest), part);
            assert_eq!(part_of(longest, words, longest), longest);
            assert_eq!(part_of(7, words, longest), 7);
        }
        // No packet is full that has so short a payload and so few words.
        assert_eq!(part_of(5000, 3, 512), 512);
    }
}
