//! The error of connecting.

use std::error::Error;
use std::time::Duration;

use super::listen::ListenerEnded;
use super::unwelcome::Unwelcome;
use crate::link::Private;
use crate::name::NameError;
use doorbell_core::cm::{ConnectionError, Silent, Why};
use doorbell_core::nic::{ChangeError, ResourceError};
use doorbell_core::wire::cm::RejectReason;
use doorbell_core::wire::{Qpn, ServiceId};
use doorbell_transports::{Address, AddressError, LookUpError, ReachError};

/// The peer's address and the service that a connection is for, as errors name them.
pub(crate) struct Target {
    pub peer: String,
    pub service: ServiceId,
}

/// The error of a connection that was not established, on any floor.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The text is no name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// No name was given.
    #[error("connecting to an endpoint: no name was given")]
    NoName,
    /// The text is not an address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// No address was found for the host that the text names.
    #[error(transparent)]
    LookUp(#[from] LookUpError),
    /// The peer's device can't be reached.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// The peer's connection manager has refused the connection.
    #[error(
        "{peer} refused a connection to service {service}: {reason}{}{}",
        hint(*.reason),
        said(.private)
    )]
    Refused {
        /// The peer's address.
        peer: String,
        /// The service that was asked for.
        service: ServiceId,
        /// The reason that the peer's connection manager gave.
        reason: RejectReason,
        /// The private data that the peer's program sent with the refusal.
        private: Private,
    },
    /// Nobody is at the peer's port, as the system of its host says. So the connection has failed
    /// at once: a program that waits for its peer to start asks again after a pause.
    #[error(
        "{peer} could not be asked for service {service}: the system of its host says that the port is \
         closed. Is its program running, and its NIC open at that address and port?{}",
        of_loopback(.peer)
    )]
    PortClosed {
        /// The peer's address.
        peer: String,
        /// The service that was asked for.
        service: ServiceId,
    },
    /// The handshake that goes before an encrypted connection has come to nothing.
    #[error("agreeing on keys: {0}")]
    Handshake(Box<dyn Error + Send + Sync>),
    /// The peer does not encrypt, and connections of this side must be encrypted.
    #[error(
        "{peer} answered for service {service} in the clear, and connections must be encrypted here:          configure encryption there, or say here that it is offered and not required"
    )]
    NotEncrypted {
        /// The peer's address.
        peer: String,
        /// The service that was asked for.
        service: ServiceId,
    },
    /// A reply was not the peer's.
    #[error(
        "somebody has changed or forged the reply of {peer} for service {service}: ask again, by a          network that nobody else can write to"
    )]
    Forged {
        /// The peer's address.
        peer: String,
        /// The service that was asked for.
        service: ServiceId,
    },
    /// A party to the connection has not answered in time.
    #[error(
        "{} for {waited:.1?} {}{}",
        silent(*.silence, .peer, *.service),
        advice(*.silence),
        match .silence {
            Silent::Peer => of_loopback(.peer),
            _ => "",
        }
    )]
    TimedOut {
        /// The peer's address.
        peer: String,
        /// The service that was asked for.
        service: ServiceId,
        /// The party that has not answered.
        silence: Silent,
        /// How long this side has waited for the answer.
        waited: Duration,
    },
    /// The connection gave way to others, since too many peers asked at the same time.
    #[error(
        "{peer} asked for service {service}, and had not confirmed the connection when it had to make \
         room for others that ask: it may ask again"
    )]
    Crowded {
        /// The peer's address.
        peer: String,
        /// The service that was asked for.
        service: ServiceId,
    },
    /// The peer answered with numbers of another connection to it, which is established and works.
    #[error(
        "{peer} answered for service {service} with a queue pair or a name that another connection to it \
         has: ask again"
    )]
    Stale {
        /// The peer's address.
        peer: String,
        /// The service that was asked for.
        service: ServiceId,
    },
    /// The peer has ended the connection while it was being made.
    #[error("{peer} ended the connection to service {service} while it was being made")]
    PeerLeft {
        /// The peer's address.
        peer: String,
        /// The service that was asked for.
        service: ServiceId,
    },
    /// The queue pair broke, or this side has dropped it, before the connection was established.
    #[error(
        "the queue pair broke, or was dropped, while its connection with {peer} for service {service} was \
         being made"
    )]
    GivenUp {
        /// The peer's address.
        peer: String,
        /// The service that was asked for.
        service: ServiceId,
    },
    /// The queue pair has no connection that could be ended.
    #[error("{0} is not connected yet: to give the connection up, drop the future that makes it")]
    NotConnected(Qpn),
    /// The connection manager has refused the operation.
    #[error(transparent)]
    Manager(#[from] ConnectionError),
    /// The NIC here is closed.
    #[error("connecting to {0}: the NIC here was closed (`Nic::close`): open another")]
    NicClosed(String),
    /// Nobody connects to the listener any more.
    #[error(transparent)]
    Listener(#[from] ListenerEnded),
    /// The queue pair could not change its state.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// An unreliable connection can't be made by the connection manager.
    #[error(
        "{0} has an unreliable connection, which the connection manager can't make: exchange addresses \
         by TCP"
    )]
    Unreliable(Qpn),
    /// The exchange of addresses by TCP has failed.
    #[error("exchanging addresses by TCP: {0}")]
    Exchange(String),
    /// No queue pair could be made for the connection.
    #[error(transparent)]
    Resource(#[from] ResourceError),
    /// The endpoint here has no room for another peer.
    #[error("connecting to {name}: this endpoint has no room for another peer")]
    NoRoom {
        /// The name of the peer.
        name: String,
        /// The resource that is used up.
        #[source]
        why: Box<dyn Error + Send + Sync>,
    },
    /// The peer was reached, and is no peer of this endpoint.
    #[error("connecting to {name}: {why}")]
    Unwelcome {
        /// The name of the peer.
        name: String,
        /// The reason.
        why: Unwelcome,
    },
    /// The peer has gone, or does not answer what endpoints ask each other, before the connection
    /// was of use.
    #[error("connecting to {name}: what is there has not answered as an endpoint does: {why}")]
    Lost {
        /// The name of the peer.
        name: String,
        /// The error of the question that the peer did not answer.
        why: Box<dyn Error + Send + Sync>,
    },
    /// A peer is mapped at the place already.
    #[error(
        "connecting to {name}: place {index} is taken by {}: unmap that first, or take another place",
        if .there == .name { "this same peer" } else { .there.as_str() }
    )]
    Taken {
        /// The name of the peer that was to be mapped.
        name: String,
        /// The index of the place.
        index: usize,
        /// The name of the peer that is mapped there.
        there: String,
    },
    /// The endpoint's table of peers has no such place.
    #[error(
        "connecting to {name} at place {index}: this endpoint has the places below {most}: configure \
         more of them (`EndpointConfig::places`), or take one of these"
    )]
    Place {
        /// The name of the peer that was to be mapped.
        name: String,
        /// The index of the place.
        index: usize,
        /// The number of places.
        most: usize,
    },
    /// The endpoint here has ended meanwhile.
    #[error(
        "connecting to {name}: the endpoint here has ended: it was closed or dropped, or its runtime has \
         ended"
    )]
    Closed {
        /// The name of the peer.
        name: String,
    },
}

fn hint(reason: RejectReason) -> &'static str {
    match reason {
        RejectReason::INVALID_SERVICE_ID => "; does its program listen to that service?",
        RejectReason::NO_RESOURCES => {
            "; its NIC has as many queue pairs as it may (its Config::queue_pairs), some of which may \
             rest after their connections have ended, or too many others ask at this moment"
        }
        RejectReason::UNENCRYPTED => {
            "; connections must be encrypted there, by keys, a secret or both, as it is configured: \
             configure the same here"
        }
        RejectReason::NOT_TRUSTED => {
            "; it has refused the handshake: is this side's key among those that may connect, and is \
             the secret the same?"
        }
        RejectReason::INVALID_MTU => "; it was asked for packets of every size, down to 256 bytes",
        _ => "",
    }
}

/// Returns what the peer's program has sent with its refusal, if that is text of a few words.
fn said(private: &[u8]) -> String {
    let end = private.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    match std::str::from_utf8(&private[..end]) {
        Ok(text) if text.contains(' ') && !text.contains(char::is_control) => {
            format!(", and says: {text}")
        }
        _ => String::new(),
    }
}

/// Names the party that has not answered, as the beginning of a sentence that goes on with the
/// time.
fn silent(silence: Silent, peer: &str, service: ServiceId) -> String {
    match silence {
        Silent::Peer => {
            format!(
                "nothing has come from the connection manager of {peer}, asked for service {service}"
            )
        }
        Silent::PeersProgram => format!(
            "the connection manager of {peer} answers, but its program has not decided about service \
             {service}"
        ),
        Silent::OwnProgram => {
            format!("this program has not decided about {peer}, which asks for service {service},")
        }
        Silent::Confirmation => {
            format!(
                "{peer} has not confirmed the connection to service {service} that was accepted"
            )
        }
        Silent::End => format!("{peer} has not confirmed the end of a connection"),
    }
}

/// Advises what to do when that party does not answer.
fn advice(silence: Silent) -> &'static str {
    match silence {
        Silent::Peer => {
            "(Config::connect_timeout): is a NIC of its program open there, and does the network carry \
             packets both ways?"
        }
        Silent::PeersProgram => {
            "(Config::accept_timeout): does it still take up those who ask, each in a task of its own?"
        }
        Silent::OwnProgram => "(Config::accept_timeout): decide sooner",
        Silent::Confirmation => {
            "(Config::connect_timeout): it is gone, its messages are lost, or the request was forged"
        }
        Silent::End => "(Config::connect_timeout): it is gone, or its messages are lost",
    }
}

/// Advises what to check when nobody is at a loopback address: the peer may be on this machine,
/// opened at a wildcard.
fn of_loopback(peer: &str) -> &'static str {
    // If a name was looked up, it stands behind the address.
    let address = peer.split(' ').next().unwrap_or(peer).parse();
    match address {
        Ok(Address::Udp(address)) if address.ip().is_loopback() => {
            " A NIC that was opened at a wildcard (`udp:0.0.0.0:…`, `udp:[::]:…`) is not at a \
             loopback address, but where its `Nic::address` tells."
        }
        _ => "",
    }
}

impl ConnectError {
    /// Returns whether another attempt must fail, too, unless one of the two programs is changed.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Name(_) | Self::NoName | Self::Address(_) => true,
            Self::NicClosed(_) | Self::Closed { .. } => true,
            // Another program may be there for a while.
            Self::Unwelcome { why: Unwelcome::Refused(_) | Unwelcome::OtherKind(_), .. } => false,
            Self::Unwelcome { .. } => true,
            _ => false,
        }
    }

    pub(crate) fn of(why: Why, Target { peer, service }: Target) -> Self {
        match why {
            Why::Refused { reason, private, .. } => {
                Self::Refused { peer, service, reason, private: private.into() }
            }
            Why::PeerLeft { .. } => Self::PeerLeft { peer, service },
            Why::Agreed { .. } => Self::GivenUp { peer, service },
            Why::TimedOut { silence, waited } => Self::TimedOut { peer, service, silence, waited },
            Why::PortClosed => Self::PortClosed { peer, service },
            Why::Crowded => Self::Crowded { peer, service },
            Why::Stale => Self::Stale { peer, service },
        }
    }
}
