//! Failures: why a request was not carried out, and what broke its queue pair.

use thiserror::Error;

use crate::nic::keep_alive::limits::{KeepAlive, Silence};
use crate::nic::protection::registration::KeyError;
use crate::wire::RnrTimer;

/// Why a request was not carried out. Its queue pair is in the error state then: whatever else was
/// posted is flushed, and the queue pair is of use again only after a reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Failure {
    /// The request itself broke the queue pair.
    #[error("{0}")]
    Broke(Cause),
    /// The queue pair was broken before, or told to stop. How much of the request reached the peer
    /// is unknown.
    #[error("given up, and not known to have been carried out: {0}")]
    Flushed(Cause),
}

/// The cause of a queue pair's break.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Cause {
    /// The program told the queue pair to go to the error state.
    #[error("the queue pair was told to go to the error state")]
    Told,
    /// Memory of the program's own that a request names may not be used in this way.
    #[error("segment {segment} of the request: {why}")]
    LocalProtection {
        /// The index of the segment that may not be used.
        segment: u16,
        /// Why the segment may not be used.
        why: KeyError,
    },
    /// A message came that its receive has no room for.
    #[error("a message of more than {room} bytes came for a receive of {room}")]
    TooLong {
        /// How many bytes the receive had room for.
        room: u32,
    },
    /// The peer does not answer; or, on a lossless device, its NIC answers that the queue pair is
    /// not there, or is not connected to this one.
    #[error(
        "no answer from the peer to {tries} tries: its queue pair has ended, or what is sent does not \
         reach it"
    )]
    NoAnswer {
        /// How often the packet was sent.
        tries: u8,
    },
    /// Something comes from the peer, but the peer acknowledges nothing that is under way: the path
    /// loses too much, or the two sides do not agree on what was sent any more, as when somebody
    /// else has sent something in this side's name.
    #[error(
        "the peer is there, but has taken nothing of it in {tries} tries: the path loses too much, or the \
         two sides do not agree on what was sent any more; connect anew"
    )]
    NoProgress {
        /// How often the packet was sent.
        tries: u8,
    },
    /// The peer was silent for as long as [`KeepAlive`](crate::nic::KeepAlive) allows: nothing at
    /// all has come from it.
    #[error(
        "the peer has been silent for {millis} ms {limit}: it has ended, was stopped, or is not reached \
         any more"
    )]
    PeerSilent {
        /// For how many milliseconds the peer was silent.
        millis: u32,
        /// The limit of the keep-alive that was exceeded.
        limit: Silence,
    },
    /// The link of a lossless device that led to the peer is gone.
    #[error("the peer has left the link to it, or its process has ended")]
    LinkGone,
    /// The peer had no receive posted, as often as retries were allowed.
    #[error("the peer had no receive for it, {tries} times; it asked to wait {:?}", .wait.delay())]
    ReceiverNotReady {
        /// How often the message was refused.
        tries: u8,
        /// How long the peer asked to wait, the last time.
        wait: RnrTimer,
    },
    /// The peer asked for a retransmission of a message that was
    /// [copied](crate::nic::Nic::send_copied) and not kept.
    #[error("the peer asked for a message again of which nothing was kept")]
    NotKept,
    /// The peer refused the request as invalid: its length or its order is wrong, or the peer's
    /// queue pair does not allow it.
    #[error("the peer took it for an invalid request; is it longer than the peer's receive?")]
    PeerInvalidRequest,
    /// The peer refused access: the key, its bounds or its rights do not allow it.
    #[error(
        "the peer refused access to its memory: its key may have been revoked or be another domain's, the \
         request may reach beyond the memory of that key, or the key or the peer's queue pair may lack the \
         right to read, write or do atomics"
    )]
    PeerAccess,
    /// The peer could not carry the request out.
    #[error("the peer could not carry it out")]
    PeerOperation,
    /// The peer's acknowledgement has a syndrome that makes no sense.
    #[error("the peer's answer makes no sense (syndrome {0:#04x})")]
    BadAnswer(u8),
    /// A response to a read has another length than it must.
    #[error("an answer to the read carried {found} bytes where {expected} were to come")]
    AnswerLength {
        /// How many bytes the response carried.
        found: u16,
        /// How many bytes the response had to carry.
        expected: u16,
    },
    /// The connection was made without reads and atomic operations.
    #[error("the peer takes no reads and atomic operations: connect with a depth for them")]
    NoReads,
    /// A datagram is too long for one packet.
    #[error("a datagram of {len} bytes does not go into a packet of {most}")]
    LongDatagram {
        /// How many bytes the datagram has.
        len: u32,
        /// The most bytes that a packet carries.
        most: u16,
    },
    /// The address that a datagram was to be sent to was dropped.
    #[error("the address was dropped before the datagram could be sent")]
    NoAddress,
    /// The peer has not offered to take metadata.
    #[error("the peer has not offered to take metadata: send it in a message of its own")]
    NoMetadata,
    /// A request of the peer's was invalid, and was refused.
    #[error("a request of the peer's was invalid, and was refused")]
    InvalidRequest,
    /// A peer's write carried metadata that this side had not offered to take.
    #[error("the peer sent metadata, which this side has not offered to take: it was refused")]
    MetadataNotOffered,
    /// A peer's request was of a kind that this queue pair does not allow.
    #[error("the peer wanted to write, read or do atomics, and this queue pair's rights lack that")]
    NotGranted,
    /// A peer's request named memory that it may not use in this way.
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
