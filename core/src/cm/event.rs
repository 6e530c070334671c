//! Events: what a driver hears about its connections, and why connections come to an end.

use std::time::Duration;

use crate::wire::Qpn;
use crate::wire::cm::RejectReason;

use super::extensions::Extensions;
use super::ids::ConnectionId;
use super::terms::{Reply, Request};

/// An event that the program, or the driver of its queue pairs, must hear of.
///
/// A connection's events come in this order: `Asked`, `Identified`, or `Shaken`, `Replied`;
/// `Established`, `Failed` or `Ended`, `Released`. Any but the last may be missing. `Claimed` may come at any time while the
/// connection is established.
///
/// Private data is what the peer's application sent, followed by zeros up to the room that the
/// message has for it: the wire does not tell how long the application's data was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event<W> {
    /// A peer requests a connection (REQ), which the program has to
    /// [accept](super::ConnectionManager::accept), [reject](super::ConnectionManager::reject) or
    /// [delay](super::ConnectionManager::delay). If the extensions include encryption, the private
    /// data is the first message of a handshake, which is to be
    /// [answered](super::ConnectionManager::answer) first.
    Asked {
        /// The connection that the peer requests.
        id: ConnectionId,
        /// The way to the peer.
        way: W,
        /// The terms that the peer proposes.
        request: Box<Request>,
        /// The extensions that both sides can use.
        extensions: Extensions,
        /// The private data of the peer's REQ.
        private: Vec<u8>,
    },
    /// The peer answers the handshake of a connection that this side requested, and whose packets are
    /// to be encrypted (the first REP). Call [`confirm`](super::ConnectionManager::confirm), or
    /// [reject](super::ConnectionManager::reject) the connection.
    Shaken {
        /// The connection that this side requested.
        id: ConnectionId,
        /// The extensions that are agreed upon.
        extensions: Extensions,
        /// The handshake's second message, with zeros behind it.
        message: Vec<u8>,
    },
    /// The peer has ended the handshake of a connection that it requested, and whose packets are to be
    /// encrypted (the first RTU). If the peer is one that may connect, the program has to
    /// [accept](super::ConnectionManager::accept), [reject](super::ConnectionManager::reject) or
    /// [delay](super::ConnectionManager::delay) the connection now.
    Identified {
        /// The connection that the peer requests.
        id: ConnectionId,
        /// The handshake's third message, with zeros behind it.
        message: Vec<u8>,
    },
    /// The peer accepts a connection that this side requested (REP). Make the queue pair ready to
    /// send and call [`ready`](super::ConnectionManager::ready), or
    /// [reject](super::ConnectionManager::reject) the connection.
    Replied {
        /// The connection that this side requested.
        id: ConnectionId,
        /// The terms that the peer adds.
        reply: Box<Reply>,
        /// The extensions that are agreed upon.
        extensions: Extensions,
        /// The private data of the peer's REP.
        private: Vec<u8>,
    },
    /// A connection that was accepted here is established: make the queue pair ready to send. The
    /// side that requested a connection gets no such event: for it, the connection is established
    /// once it has called [`ready`](super::ConnectionManager::ready).
    Established {
        /// The connection that is established.
        id: ConnectionId,
        /// The private data of the peer's RTU; empty if the peer's first packet came before its
        /// RTU.
        private: Vec<u8>,
    },
    /// A connection ended before it was established.
    Failed {
        /// The connection that failed.
        id: ConnectionId,
        /// The reason for the failure.
        why: Why,
    },
    /// An established connection is over. Flush the queue pair.
    Ended {
        /// The connection that is over.
        id: ConnectionId,
        /// The reason for the end.
        why: Why,
    },
    /// A message names the communication ID or the queue pair of an established connection for
    /// another connection, as if the peer had begun anew. That may be a stranger's lie, so nothing
    /// has changed. Find out whether the peer still answers on this connection (as with
    /// [`Nic::probe`](crate::nic::Nic::probe)), and if it does not, end the connection as a broken
    /// one. The message is dropped meanwhile, and its sender repeats it.
    Claimed {
        /// The connection whose communication ID or queue pair is claimed.
        id: ConnectionId,
    },
    /// A peer sent a REQ or a REP by a way on which connections with other GUIDs are established,
    /// and its queue pair number has the same process tag as their peers' numbers. It may have
    /// taken the place of those peers: find out whether they are still alive (as with
    /// [`Nic::suspect`](crate::nic::Nic::suspect)). For each way and tag, the next such event comes
    /// only after this one was taken.
    Newcomer {
        /// The way to the peer.
        way: W,
        /// The newcomer's queue pair.
        qpn: Qpn,
    },
    /// The manager has forgotten the connection, and its queue pair may be used again.
    ///
    /// This is the last event of every connection. Until it is taken, the connection's place in the
    /// table stays occupied, so no more than six events wait for each place.
    Released {
        /// The connection, whose ID now means nothing.
        id: ConnectionId,
        /// The queue pair, if the program had named one.
        qpn: Option<Qpn>,
    },
}

/// Why a connection is over, or was never established.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Why {
    /// The peer rejected the connection, or gave it up (REJ).
    Refused {
        /// The reason that the REJ gives.
        reason: RejectReason,
        /// Additional rejection information, which explains the reason.
        info: Vec<u8>,
        /// The private data of the REJ.
        private: Vec<u8>,
    },
    /// The peer ended the connection (DREQ).
    PeerLeft {
        /// The private data of the peer's DREQ.
        private: Vec<u8>,
    },
    /// The program here ended the connection, and the peer confirmed it (DREP).
    Agreed {
        /// The private data of the peer's DREP.
        private: Vec<u8>,
    },
    /// The peer or the program did not answer in time.
    TimedOut {
        /// The party that did not answer.
        silence: Silent,
        /// How long the connection waited in the state that it was in.
        waited: Duration,
    },
    /// The connection was half-open and gave its place to a newer request, because peers request
    /// [more](super::Config::half_open) connections at a time than are held.
    Crowded,
    /// The system of the peer's host says that nobody listens on the UDP port that the request was
    /// sent to.
    PortClosed,
    /// The peer accepted the connection with a communication ID or a queue pair that belongs to
    /// another connection, whose peer is still alive.
    Stale,
}

/// The party that did not answer, when a connection [timed out](Why::TimedOut).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Silent {
    /// The peer's manager, which never answered the request with any message.
    Peer,
    /// The peer's program, which did not decide although its manager had asked for time (MRA).
    PeersProgram,
    /// The program here, which did not decide about a request or a reply.
    OwnProgram,
    /// The peer, which neither confirmed a connection that was accepted here nor sent data on it.
    Confirmation,
    /// The peer, which did not confirm that the connection is ended.
    End,
}
