//! What goes wrong, and why.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use doorbell_core::cm::{ConfigError, ConnectionError, ListenError, Silent, Why};
use doorbell_core::memory::Buf;
use doorbell_core::nic::{
    self, Cause, ChangeError, Failure, Memory, NumberingError, PostError, ReceiveRequest, Refused,
    ResourceError, TableFull, WorkRequest,
};
use doorbell_core::wire::cm::RejectReason;
use doorbell_core::wire::{Qpn, ServiceId};
use doorbell_transports::sharing::{ServiceError, SharingError};
use doorbell_transports::{Address, AddressError, LookUpError, OpenError, ReachError, SpecError};
use thiserror::Error;

use crate::connect::{Connection, Private, Whom};
use crate::pair::{Ending, Stand};

/// A request that was not carried out, or not posted, and the memory that it had.
#[derive(Debug)]
pub struct Failed(Box<Details>);

struct Details {
    why: FailedWhy,
    ending: Option<Ending>,
    /// Where the peer is, if its device has an address there.
    peer: Option<SocketAddr>,
    memory: Memory,
}

impl fmt::Debug for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failed").field("why", &self.why).field("ending", &self.ending).finish()
    }
}

/// Why a request failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum FailedWhy {
    /// It was posted, and broke the queue pair, or was flushed when that was broken.
    #[error(transparent)]
    Carried(#[from] Failure),
    /// It was not posted.
    #[error(transparent)]
    Refused(#[from] PostError),
    /// It names more memory of the peer's than that is of.
    #[error("{len} bytes are more than the {room} of the peer's memory that was named")]
    Beyond {
        /// How many.
        len: u64,
        /// How much memory.
        room: u64,
    },
    /// Atomic operations are on words of 8 bytes.
    #[error("{len} bytes at {address:#x} hold no word of 8 bytes at a multiple of 8")]
    NoWord {
        /// Where.
        address: u64,
        /// How many.
        len: u64,
    },
    /// More bytes than travel in a request.
    #[error("{len} bytes do not go into a request, which takes {most}: send a Buf")]
    TooLong {
        /// How many.
        len: usize,
        /// The most.
        most: usize,
    },
    /// The connection is over.
    #[error("no more is received")]
    Over,
}

impl Failed {
    fn new(why: FailedWhy, memory: Memory) -> Self {
        Self(Box::new(Details { why, ending: None, peer: None, memory }))
    }

    pub(crate) fn of(why: Failure, memory: Memory) -> Self {
        Self::new(why.into(), memory)
    }

    pub(crate) fn refused(why: PostError, memory: Memory) -> Self {
        Self::new(why.into(), memory)
    }

    pub(crate) fn of_request(refused: Refused<WorkRequest>, connection: &Connection) -> Self {
        let memory = match refused.request.data {
            nic::Data::Memory(memory) => memory,
            nic::Data::Inline(_) => Memory::None,
        };
        Self::refused(refused.why, memory).because(connection)
    }

    pub(crate) fn beyond((len, room): (u64, u64), memory: Memory) -> Self {
        Self::new(FailedWhy::Beyond { len, room }, memory)
    }

    pub(crate) fn no_word(address: u64, len: u64) -> Self {
        Self::new(FailedWhy::NoWord { address, len }, Memory::None)
    }

    pub(crate) fn too_long(len: usize) -> Self {
        Self::new(FailedWhy::TooLong { len, most: nic::MOST_INLINE }, Memory::None)
    }

    pub(crate) fn over(connection: &Connection) -> Self {
        Self::new(FailedWhy::Over, Memory::None).because(connection)
    }

    /// With the peer's address, and the reason why the connection is over, if it is.
    pub(crate) fn because(mut self, connection: &Connection) -> Self {
        self.0.peer = connection.link().peer_address();
        if let Stand::Ended(ending) = connection.stand() {
            self.0.ending = Some(ending);
        }
        self
    }

    /// Why.
    pub fn why(&self) -> FailedWhy {
        self.0.why
    }

    /// Why the connection is over, if it is.
    pub fn ending(&self) -> Option<&Ending> {
        self.0.ending.as_ref()
    }

    /// The buffer that the request had, or an empty one.
    pub fn into_buf(self) -> Buf {
        self.0.memory.into_buf()
    }
}

/// What is said of a request that was posted before the connection ended, for no fault of its own.
const UNKNOWN: &str = "given up, and not known to have been carried out";

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(peer) = self.0.peer {
            write!(f, "connection to {peer}: ")?;
        }
        // It is the end of the connection that tells a queue pair to stop, and nobody else.
        let told = FailedWhy::Carried(Failure::Flushed(Cause::Told));
        match (&self.0.ending, self.0.why) {
            (Some(ending), why) if why == told => write!(f, "{UNKNOWN}: {ending}"),
            // Until the peer has agreed.
            (None, why) if why == told => {
                write!(f, "{UNKNOWN}: this side is ending the connection")
            }
            // A cause that the request broke upon is the connection's, too.
            (Some(Ending::Broken(_)) | None, why) => write!(f, "{why}"),
            (Some(ending), why) => write!(f, "{why}: {ending}"),
        }
    }
}

impl std::error::Error for Failed {}

/// A receive that was not posted.
#[derive(Debug, Error)]
#[error("{why}")]
pub struct PostReceiveError {
    /// Why.
    pub why: PostError,
    /// The receive, with its buffer.
    pub request: Box<ReceiveRequest>,
}

/// A NIC that is not opened.
#[derive(Debug, Error)]
pub enum NicError {
    /// The configuration says what can't be.
    #[error("{field} is {found}, and must be {allowed}: {why}")]
    Config {
        /// The field, as in [`Config`](crate::Config).
        field: &'static str,
        /// What it is.
        found: String,
        /// What it may be.
        allowed: String,
        /// Why.
        why: &'static str,
    },
    /// It is not said of which device.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The device can't be opened.
    #[error(transparent)]
    Device(#[from] OpenError),
    /// The interface is not shared.
    #[error(transparent)]
    Sharing(#[from] SharingError),
    /// Its numbers can't be.
    #[error(transparent)]
    Numbering(#[from] NumberingError),
    /// Its connection manager can't be.
    #[error(transparent)]
    Manager(#[from] ConfigError),
    /// Its completions have no place.
    #[error(transparent)]
    Resource(#[from] ResourceError),
    /// The system refused.
    #[error("{what}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The other processes of the interface do not answer.
    #[error("{0}")]
    Alone(doorbell_transports::Trouble),
}

/// A connection that does not come about.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The address is none.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The address names a host for which there is no address.
    #[error(transparent)]
    LookUp(#[from] LookUpError),
    /// The peer's device can't be reached.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// The peer's connection manager has refused it.
    #[error("{peer} refused a connection to service {service}: {reason}{}", hint(*.reason))]
    Refused {
        /// The peer's address.
        peer: String,
        /// The service that was asked for.
        service: ServiceId,
        /// Why.
        reason: RejectReason,
        /// What the peer's program said to that.
        private: Private,
    },
    /// Somebody has not answered in time.
    #[error(
        "{} for {waited:.1?} {}{}",
        silent(*.silence, .peer, *.service),
        advice(*.silence),
        of_loopback(*.silence, .peer)
    )]
    TimedOut {
        /// The peer's address.
        peer: String,
        /// The service that was asked for.
        service: ServiceId,
        /// Who has not answered.
        silence: Silent,
        /// For how long that was waited for.
        waited: Duration,
    },
    /// So many peers asked at a time that this one had to make room.
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
    /// The peer answered with numbers that belong to another connection to it, which works.
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
    /// The peer went while the connection was being made.
    #[error("{peer} ended the connection to service {service} while it was being made")]
    PeerLeft {
        /// The peer's address.
        peer: String,
        /// The service that was asked for.
        service: ServiceId,
    },
    /// The queue pair broke, or this side has dropped it, before the connection stood.
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
    /// Nothing is there yet to be ended.
    #[error("{0} is not connected, or not yet: to give it up, drop what connects it")]
    NotConnected(Qpn),
    /// The connection manager did not do it.
    #[error(transparent)]
    Manager(#[from] ConnectionError),
    /// The queue pair did not change.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// Only reliable connections are made in band.
    #[error(
        "{0} has a connection without answers, which the connection manager does not make: \
             exchange addresses by TCP"
    )]
    Unreliable(Qpn),
    /// The other side of a TCP exchange.
    #[error("exchanging addresses by TCP: {0}")]
    Exchange(String),
    /// There is no queue pair.
    #[error(transparent)]
    Resource(#[from] ResourceError),
}

fn hint(reason: RejectReason) -> &'static str {
    match reason {
        RejectReason::INVALID_SERVICE_ID => "; does its program listen to that service?",
        RejectReason::INVALID_MTU => "; it was asked for packets of every size, down to 256 bytes",
        _ => "",
    }
}

/// Who has not answered, as the beginning of a sentence that goes on with the time.
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

/// What to do about that.
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

/// What to look at when nothing comes from a loopback address: the peer may be on this machine, and
/// opened at a wildcard.
fn of_loopback(silence: Silent, peer: &str) -> &'static str {
    // Behind the address stands the name that was looked up, if one was.
    let address = peer.split(' ').next().unwrap_or(peer).parse();
    match (silence, address) {
        (Silent::Peer, Ok(Address::Udp(address))) if address.ip().is_loopback() => {
            " A NIC that was opened at a wildcard (`udp:0.0.0.0:…`, `udp:[::]:…`) is not at a \
             loopback address, but where its `Nic::address` tells."
        }
        _ => "",
    }
}

impl ConnectError {
    pub(crate) fn of(why: Why, Whom { peer, service }: Whom) -> Self {
        match why {
            Why::Refused { reason, private, .. } => {
                Self::Refused { peer, service, reason, private: private.into() }
            }
            Why::PeerLeft { .. } => Self::PeerLeft { peer, service },
            Why::Agreed { .. } => Self::GivenUp { peer, service },
            Why::TimedOut { silence, waited } => Self::TimedOut { peer, service, silence, waited },
            Why::Crowded => Self::Crowded { peer, service },
            Why::Stale => Self::Stale { peer, service },
        }
    }
}

/// A service that is not listened to.
#[derive(Debug, Error)]
pub enum ListenRefused {
    /// The connection manager did not do it.
    #[error(transparent)]
    Manager(#[from] ListenError),
    /// It was not asked for.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// Another process has it.
    #[error("service {0} is listened to by another process of this interface")]
    Taken(ServiceId),
}

/// Memory that is not registered, or not taken back.
#[derive(Debug, Error)]
pub enum RegisterError {
    /// The table is full.
    #[error(transparent)]
    Full(#[from] TableFull),
    /// It was taken back before, by another handle.
    #[error("this registration was revoked already, by another handle to it")]
    Revoked,
}
