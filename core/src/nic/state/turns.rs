//! How the turns of a queue pair's requester and responder end.

use crate::nic::requests::failure::Cause;

/// Packets that a queue pair sends before the next has its turn.
pub(crate) const QUANTUM: u32 = 32;

/// The most packets, there and back, that may be unacknowledged: half of all sequence numbers, or
/// those before could not be told from those behind.
pub(crate) const MOST_UNDER_WAY: u32 = (1 << 23) - 1;

/// How a turn of sending ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequesterTurn {
    /// There is nothing to send until something happens.
    Idle,
    /// There is more.
    More,
    /// A completion queue has no room.
    Starved,
    /// The device has no room.
    DeviceFull,
}

/// Why a packet was not sent.
pub(crate) enum NotSent {
    /// This is how the turn ends.
    TurnEnded(RequesterTurn),
    /// The request can't be carried out.
    Invalid(Cause),
}

/// How a turn of answering ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ResponderTurn {
    /// Nothing more is owed.
    AllSent,
    /// There is more.
    MoreOwed,
    /// The device has no room.
    DeviceFull,
}
