//! Why a request was not carried out, and what broke a queue pair.

use thiserror::Error;

use crate::nic::keep_alive::limits::{KeepAlive, Silence};
use crate::nic::protection::registration::KeyError;
use crate::wire::RnrTimer;

/// Why a request was not carried out. The queue pair is then in the error state: whatever else was
/// posted is flushed, and it is of use again only after a reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Failure {
    /// This request broke the queue pair.
    #[error("{0}")]
    Broke(Cause),
    /// The queue pair was broken before, or told to stop. What of the request reached the peer is
    /// unknown.
    #[error("given up, and not known to have been carried out: {0}")]
    Flushed(Cause),
}

/// What broke a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Cause {
    /// The program told it to.
    #[error("the queue pair was told to go to the error state")]
    Told,
    /// Memory that the request names may not be used so.
    #[error("segment {segment} of the request: {why}")]
    LocalProtection {
        /// Which of the request's segments.
        segment: u16,
        /// What is wrong with it.
        why: KeyError,
    },
    /// A message came that its receive has no room for.
    #[error("a message of more than {room} bytes came for a receive of {room}")]
    TooLong {
        /// What the receive had room for.
        room: u32,
    },
    /// The peer does not answer; or, on a lossless device, its NIC answers that it is not there, or
    /// not connected to this queue pair.
    #[error(
        "no answer from the peer to {tries} tries: its queue pair has ended, or what is sent does not \
         reach it"
    )]
    NoAnswer {
        /// How often it was sent.
        tries: u8,
    },
    /// Something comes from the peer, but it takes nothing of what is under way: the path loses too
    /// much, or the two sides do not agree on what was sent any more, as when somebody else has
    /// sent something in this side's name.
    #[error(
        "the peer is there, but has taken nothing of it in {tries} tries: the path loses too much, or the \
         two sides do not agree on what was sent any more; connect anew"
    )]
    NoProgress {
        /// How often it was sent.
        tries: u8,
    },
    /// Nothing at all comes from the peer, for as long as [`KeepAlive`](crate::nic::KeepAlive) allows.
    #[error(
        "the peer has been silent for {millis} ms {limit}: it has ended, was stopped, or is not reached \
         any more"
    )]
    PeerSilent {
        /// For how long.
        millis: u32,
        /// Which limit that is.
        limit: Silence,
    },
    /// The link to the peer, a lossless device's, is no more.
    #[error("the peer has left the link to it, or its process has ended")]
    LinkGone,
    /// The peer has no receives posted.
    #[error("the peer had no receive for it, {tries} times; it asked to wait {:?}", .wait.delay())]
    ReceiverNotReady {
        /// How often it was refused.
        tries: u8,
        /// How long the peer asked to wait, the last time.
        wait: RnrTimer,
    },
    /// The peer wants to have what was [copied](crate::nic::Nic::send_copied) once more.
    #[error("the peer asked for a message again of which nothing was kept")]
    NotKept,
    /// The peer says that the request is not one: wrong length or order, or not allowed there.
    #[error("the peer took it for an invalid request; is it longer than the peer's receive?")]
    PeerInvalidRequest,
    /// The peer says that key, bounds or rights do not allow it.
    #[error(
        "the peer refused access to its memory: its key may have been revoked or be another domain's, the \
         request may reach beyond the memory of that key, or the key or the peer's queue pair may lack the \
         right to read, write or do atomics"
    )]
    PeerAccess,
    /// The peer could not carry it out.
    #[error("the peer could not carry it out")]
    PeerOperation,
    /// The peer answered what makes no sense.
    #[error("the peer's answer makes no sense (syndrome {0:#04x})")]
    BadAnswer(u8),
    /// An answer to a read has another length than it must.
    #[error("an answer to the read carried {found} bytes where {expected} were to come")]
    AnswerLength {
        /// What it carried.
        found: u16,
        /// What it had to.
        expected: u16,
    },
    /// The connection was made without reads and atomic operations.
    #[error("the peer takes no reads and atomic operations: connect with a depth for them")]
    NoReads,
    /// A datagram does not go into one packet.
    #[error("a datagram of {len} bytes does not go into a packet of {most}")]
    LongDatagram {
        /// Its length.
        len: u32,
        /// The most that a packet carries.
        most: u16,
    },
    /// The way that a datagram was to go was dropped.
    #[error("the address was dropped before the datagram could be sent")]
    NoAddress,
    /// The peer takes no metadata.
    #[error("the peer has not offered to take metadata: send it in a message of its own")]
    NoMetadata,
    /// A peer's request was not one, and was refused.
    #[error("a request of the peer's was invalid, and was refused")]
    InvalidRequest,
    /// A peer's write carried metadata that this side had not offered to take.
    #[error("the peer sent metadata, which this side has not offered to take: it was refused")]
    MetadataNotOffered,
    /// A peer's request was of a kind that this queue pair does not allow.
    #[error("the peer wanted to write, read or do atomics, and this queue pair's rights lack that")]
    NotGranted,
    /// A peer's request named memory that it may not use so.
    #[error("a request of the peer's was refused access: {0}")]
    Access(KeyError),
}

impl Cause {
    /// The cause that a queue pair breaks with when its peer has been silent for as long as a limit
    /// of the keep-alive allows.
    pub(crate) fn peer_silent(limits: &KeepAlive, limit: Silence) -> Self {
        let millis = limits.of(limit).as_millis();
        Self::PeerSilent { millis: u32::try_from(millis).unwrap_or(u32::MAX), limit }
    }
}
