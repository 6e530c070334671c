//! What a program hears of its connections, and why they come to an end.

use crate::wire::Qpn;
use crate::wire::cm::RejectReason;

use super::extensions::Extensions;
use super::ids::ConnectionId;
use super::terms::{Reply, Request};

/// Something that a program, or whoever drives its queue pairs, must hear of.
///
/// A connection's events come in this order: `Asked` or `Replied`, `Established`, `Failed` or
/// `Ended`, `Released`. Any but the last may be missing.
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
    /// The peer takes up a connection that was asked for. Make the queue pair ready to send, and say
    /// [ready](super::ConnectionManager::ready), or [reject](super::ConnectionManager::reject) it.
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
    /// Nothing of a connection is left, and its queue pair may be used again.
    ///
    /// It is the last event of every connection. Until it is taken, the connection's place in the
    /// table is not used again, so that no more events wait than four for each place.
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
    /// The peer did not answer, however often it was asked; or the program did not decide while the
    /// peer would wait.
    TimedOut,
    /// The peer began anew: it uses the connection's name, or its queue pair, for another one.
    Stale,
}
