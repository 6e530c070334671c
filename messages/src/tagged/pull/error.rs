//! Errors of pulling long bodies.

use std::time::Duration;

/// Why a long body was not pulled.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PullError {
    #[error("this NIC has no room for it: {0}")]
    NoRoom(String),
    #[error("the sender can't be connected to: {0}")]
    Connect(String),
    #[error("the sender has not connected within {0:?}")]
    NotConnected(Duration),
    #[error("the sender has gone")]
    PeerGone,
    #[error("reading the sender's memory: {0}")]
    Read(String),
    /// The sender has no such memory, or has refused to have it read.
    #[error("reading the sender's memory: {0}")]
    Refused(String),
    #[error("the receive was dropped into whose memory it was to come")]
    NotWanted,
}

impl PullError {
    /// Returns whether the body can't be pulled by another attempt either.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::NotWanted)
    }
}
