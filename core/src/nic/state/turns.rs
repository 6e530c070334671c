//! Turns of a queue pair's requester and responder: how long they may be, and how they end.

use crate::nic::requests::failure::Cause;

/// How many packets a queue pair sends before the next one has its turn.
pub(crate) const QUANTUM: u32 = 32;

/// The most packets, of requests and responses, that may be unacknowledged: half of all sequence
/// numbers. With more, duplicates could not be told from new packets.
pub(crate) const MOST_UNDER_WAY: u32 = (1 << 23) - 1;

/// How a turn of sending requests ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequesterTurn {
    /// No request can be sent until something happens.
    Idle,
    /// More requests can be sent.
    More,
    /// The completion queue has no free slot for the next request.
    Starved,
    /// The device has no room for a packet.
    DeviceFull,
}

/// Why a packet was not sent.
pub(crate) enum NotSent {
    /// The turn ends in this way.
    TurnEnded(RequesterTurn),
    /// The request can't be carried out, for this cause.
    Invalid(Cause),
}

/// How a turn of sending responses and acknowledgements ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ResponderTurn {
    /// The peer is owed nothing more.
    AllSent,
    /// The peer is owed more responses.
    MoreOwed,
    /// The device has no room for a packet.
    DeviceFull,
}
