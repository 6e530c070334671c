//! What a program hears of its connections, and why they come to an end.

use std::time::Duration;

use crate::wire::Qpn;
use crate::wire::cm::RejectReason;

use super::extensions::Extensions;
use super::ids::ConnectionId;
use super::terms::{Reply, Request};

/// Something that a program, or whoever drives its queue pairs, must hear of.
///
/// A connection's events come in this order: `Asked` or `Replied`, `Established`, `Failed` or
/// `Ended`, `Released`. Any but the last may be missing. `Claimed` may come at any time while it
/// stands.
///
/// Private data is what the peer's application said, with zeros behind it as far as there was room:
/// the wire does not tell how long it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event<W> {
    /// A peer asks for a connection, to be [accepted](super::ConnectionManager::accept),
    /// [rejected](super::ConnectionManager::reject) or
    /// [delayed](super::ConnectionManager::delay).
    Asked {
        /// The connection.
        id: ConnectionId,
        /// The way to the peer.
        way: W,
        /// What it proposes.
        request: Box<Request>,
        /// The extensions that both sides speak.
        extensions: Extensions,
        /// Private data.
        private: Vec<u8>,
    },
    /// The peer takes up a connection that was asked for. Make the queue pair ready to send, and
    /// say [ready](super::ConnectionManager::ready), or [reject](super::ConnectionManager::reject)
    /// it.
    Replied {
        /// The connection.
        id: ConnectionId,
        /// What the peer adds.
        reply: Box<Reply>,
        /// The extensions that are agreed upon.
        extensions: Extensions,
        /// Private data.
        private: Vec<u8>,
    },
    /// A connection that was accepted stands: make the queue pair ready to send. It is not told of
    /// a connection that this side asked for, which stands when the program says it is ready.
    Established {
        /// The connection.
        id: ConnectionId,
        /// Private data; empty if the peer's first packet was faster than its message.
        private: Vec<u8>,
    },
    /// A connection did not come about.
    Failed {
        /// The connection.
        id: ConnectionId,
        /// Why.
        why: Why,
    },
    /// A connection that stood is over. Flush the queue pair.
    Ended {
        /// The connection.
        id: ConnectionId,
        /// Why.
        why: Why,
    },
    /// A message claims that the peer of a connection, which stands, has begun anew: it names the
    /// connection's name or queue pair for another one. That may be a stranger's lie, so nothing
    /// has changed: find out whether the peer still answers on this connection (as with
    /// [`Nic::probe`](crate::nic::Nic::probe)), and if it does not, end the connection as one that
    /// broke. What claims it is left unanswered meanwhile, to be repeated.
    Claimed {
        /// The connection.
        id: ConnectionId,
    },
    /// A peer with a GUID of its own has sent a request or a reply by a way on which connections
    /// with other GUIDs stand, and its queue pair's number bears the process tag of their peers'
    /// numbers. It may have taken the place of those: find out whether they are still there (as
    /// with [`Nic::suspect`](crate::nic::Nic::suspect)). For a way and a tag it is not told again
    /// before the event was taken.
    Newcomer {
        /// The way to the peer.
        way: W,
        /// The newcomer's queue pair.
        qpn: Qpn,
    },
    /// Nothing of a connection is left, and its queue pair may be used again.
    ///
    /// It is the last event of every connection. Until it is taken, the connection's place in the
    /// table is not used again, so that no more events wait than six for each place.
    Released {
        /// The connection, whose name now means nothing.
        id: ConnectionId,
        /// The queue pair, if one had been named.
        qpn: Option<Qpn>,
    },
}

/// Why a connection is over, or did not come about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Why {
    /// The peer refused it, or gave it up.
    Refused {
        /// Why.
        reason: RejectReason,
        /// What explains the reason.
        info: Vec<u8>,
        /// Private data.
        private: Vec<u8>,
    },
    /// The peer ended it.
    PeerLeft {
        /// Private data.
        private: Vec<u8>,
    },
    /// This side ended it, and the peer agreed.
    Agreed {
        /// Private data.
        private: Vec<u8>,
    },
    /// Somebody did not answer in time.
    TimedOut {
        /// Who did not.
        silence: Silent,
        /// How long the connection waited in the state that it was in.
        waited: Duration,
    },
    /// It was half-open, and gave its place to a newer request: peers ask for
    /// [more](super::Config::half_open) at a time than are held.
    Crowded,
    /// The system of the peer's host says that nobody is at the port which the request was sent to.
    PortClosed,
    /// The peer took a connection up that was asked for, but with a name or a queue pair that
    /// belongs to another connection of its own, which still works.
    Stale,
}

/// Who has not answered, when a connection [timed out](Why::TimedOut).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Silent {
    /// The peer's manager: it never answered the request with anything.
    Peer,
    /// The peer's program: its manager has asked for patience, and the program did not decide.
    PeersProgram,
    /// The program here: it did not decide about what the peer asked or answered.
    OwnProgram,
    /// The peer: it did not confirm a connection that was accepted here, and sent no data on it.
    Confirmation,
    /// The peer: it did not answer that the connection is ended.
    End,
}
