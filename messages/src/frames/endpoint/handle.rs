//! What the program's handles ask of their endpoint.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use doorbell_verbs::Name;
use tokio::sync::futures::OwnedNotified;

use crate::frames::error::SendError;
use crate::matching::PostedId;
use crate::slot::Slot;

/// The outcome of a send.
pub type SendSlot = Slot<Result<(), SendError>>;

/// An endpoint, as peers and receives see it.
pub trait Handle: Send + Sync + fmt::Debug {
    /// Posts a send of a message to a peer. The outcome will be in `slot`.
    fn send(&self, to: &Name, bits: u64, body: Bytes, slot: &Arc<SendSlot>);

    /// Takes a receive back. Returns whether it was still waiting.
    fn cancel(&self, receive: PostedId) -> bool;

    /// Has the lane to a peer made, if the policy needs one, and tells how that stands.
    fn lane(&self, to: &Name) -> LaneState;
}

/// How making a lane stands.
#[derive(Debug)]
pub enum LaneState {
    /// Frames can be placed.
    Made,
    /// Frames can't be placed.
    Not,
    /// Wait, and ask again.
    UnderWay(OwnedNotified),
}
