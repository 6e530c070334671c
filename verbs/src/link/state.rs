//! The state of a connection, and why it ended.

use doorbell_core::cm::Why;
use doorbell_core::nic::Cause;

use super::private::Private;

/// The state of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConnectionState {
    /// No connection was asked for yet.
    Unconnected,
    /// The connection is being made.
    Connecting,
    /// The connection is established.
    Connected,
    /// The connection has ended, and everything that was posted is flushed.
    Ended(Ending),
}

/// The reason why a connection has ended.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Ending {
    /// The connection was ended by this side.
    #[error("this side ended the connection")]
    Left {
        /// The private data of the peer's answer.
        private: Private,
    },
    /// The peer has ended the connection.
    #[error("the peer ended the connection")]
    PeerLeft {
        /// The private data that came with the end.
        private: Private,
    },
    /// A request could not be carried out, or the peer is gone.
    #[error("{0}")]
    Broken(Cause),
}

impl Ending {
    /// Returns how a connection ended that was established.
    pub(crate) fn of(why: Why) -> Self {
        match why {
            Why::PeerLeft { private } | Why::Refused { private, .. } => {
                Self::PeerLeft { private: private.into() }
            }
            Why::Agreed { private } => Self::Left { private: private.into() },
            // The error of connecting tells more of a connection that was never established.
            Why::TimedOut { .. } | Why::PortClosed | Why::Crowded | Why::Stale => {
                Self::Left { private: Private::default() }
            }
        }
    }
}
