//! The error of a request, with the memory that the request had.

use std::fmt;
use std::net::SocketAddr;

use doorbell_core::memory::Buf;
use doorbell_core::nic::{self, Cause, Failure, Memory, PostError, Refused, WorkRequest};
use doorbell_core::wire::{RemoteAddr, Rkey};
use thiserror::Error;

use crate::link::{ConnectionState, Ending, Link};

/// A request that failed, or was never posted, with the memory that it had.
#[derive(Debug)]
pub struct Failed(Box<Details>);

struct Details {
    why: FailedWhy,
    ending: Option<Ending>,
    /// The peer's address, on a device that has such addresses.
    peer: Option<SocketAddr>,
    /// The access to the peer's memory that the peer has refused, if it has.
    refused: Option<Access>,
    memory: Memory,
}

/// An access to a peer's memory, as it was asked for.
struct Access {
    key: Rkey,
    address: RemoteAddr,
    len: u64,
}

impl fmt::Debug for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failed").field("why", &self.why).field("ending", &self.ending).finish()
    }
}

/// The reason why a request failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum FailedWhy {
    /// The request was posted, and broke the queue pair, or was flushed when the queue pair broke.
    #[error(transparent)]
    Carried(#[from] Failure),
    /// The request was refused, and not posted.
    #[error(transparent)]
    Refused(#[from] PostError),
    /// The request reaches beyond the remote memory that it names.
    #[error("{len} bytes are more than the {room} bytes of remote memory that the request names")]
    Beyond {
        /// The bytes that the request transfers.
        len: u64,
        /// The bytes of the remote memory.
        room: u64,
    },
    /// An atomic operation names no aligned word of 8 bytes.
    #[error("{len} bytes at {address:#x} hold no aligned word of 8 bytes")]
    NoWord {
        /// The address of the remote memory.
        address: u64,
        /// The bytes of the remote memory.
        len: u64,
    },
    /// The data is longer than a request can carry inline.
    #[error("{len} bytes are more than the {most} that a request carries inline: send a Buf")]
    TooLong {
        /// The bytes of the data.
        len: usize,
        /// The most bytes that a request carries inline.
        most: usize,
    },
    /// The connection has ended, and no more messages come.
    #[error("the connection has ended, and no more messages come")]
    Over,
}

impl Failed {
    fn new(why: FailedWhy, memory: Memory) -> Self {
        Self(Box::new(Details { why, ending: None, peer: None, refused: None, memory }))
    }

    pub(crate) fn of(why: Failure, memory: Memory) -> Self {
        Self::new(why.into(), memory)
    }

    pub(crate) fn refused(why: PostError, memory: Memory) -> Self {
        Self::new(why.into(), memory)
    }

    pub(crate) fn of_request(refused: Refused<WorkRequest>, link: &Link) -> Self {
        let memory = match refused.request.data {
            nic::Data::Memory(memory) => memory,
            nic::Data::Inline(_) => Memory::None,
        };
        Self::refused(refused.why, memory).because(link)
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

    pub(crate) fn over(link: &Link) -> Self {
        Self::new(FailedWhy::Over, Memory::None).because(link)
    }

    /// Adds the peer's address and, if the connection has ended, the reason.
    pub(crate) fn because(mut self, link: &Link) -> Self {
        self.0.peer = link.peer_address();
        if let ConnectionState::Ended(ending) = link.state() {
            self.0.ending = Some(ending);
        }
        self
    }

    /// Adds what was asked for, if the peer has refused to give access to its memory: `len` bytes
    /// from `address` on, of the memory with the key `key`.
    #[cold]
    pub(crate) fn asking(mut self, (key, address): (Rkey, RemoteAddr), len: u64) -> Self {
        if self.0.why == FailedWhy::Carried(Failure::Broke(Cause::PeerAccess)) {
            self.0.refused = Some(Access { key, address, len });
        }
        self
    }

    /// Returns the reason why the request failed.
    pub fn why(&self) -> FailedWhy {
        self.0.why
    }

    /// Returns why the connection ended, if it has.
    pub fn ending(&self) -> Option<&Ending> {
        self.0.ending.as_ref()
    }

    /// Returns the buffer that the request had, or an empty one.
    pub fn into_buf(self) -> Buf {
        self.0.memory.into_buf()
    }
}

/// The text for a request that was posted before the connection ended and is not at fault.
const UNKNOWN: &str = "given up, and not known to have been carried out";

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(peer) = self.0.peer {
            write!(f, "connection to {peer}: ")?;
        }
        // Only the end of the connection tells a queue pair to stop.
        let told = FailedWhy::Carried(Failure::Flushed(Cause::Told));
        match (&self.0.ending, self.0.why) {
            (Some(ending), why) if why == told => write!(f, "{UNKNOWN}: {ending}"),
            // The peer has not yet agreed to the end.
            (None, why) if why == told => {
                write!(f, "{UNKNOWN}: this side is ending the connection")
            }
            // A connection that a request broke has ended for the same cause, which is shown once.
            (Some(Ending::Broken(_)) | None, why) => write!(f, "{why}"),
            (Some(ending), why) => write!(f, "{why}: {ending}"),
        }?;
        let Some(Access { key, address, len }) = &self.0.refused else { return Ok(()) };
        let (key, address) = (key.0, address.0);
        write!(f, "; it was asked for {len} bytes at {address:#x} by key {key:#010x}")
    }
}

impl std::error::Error for Failed {}
