//! The errors of listening.

use doorbell_core::cm::ListenError;
use doorbell_core::wire::ServiceId;
use doorbell_transports::sharing::ServiceError;

/// The error of a service that can't be listened to.
#[derive(Debug, thiserror::Error)]
pub enum ListenRefused {
    /// The connection manager has refused the listener.
    #[error(transparent)]
    Manager(#[from] ListenError),
    /// The other processes of the interface could not be asked for the service.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// Another process of the interface listens to the service.
    #[error("service {0} is listened to by another process of this interface")]
    Taken(ServiceId),
    /// The NIC here is closed.
    #[error("listening to service {0}: the NIC here was closed (`Nic::close`): open another")]
    NicClosed(ServiceId),
}

/// Why nobody connects to a listener any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenerEnded {
    /// The NIC here is closed.
    #[error("waiting for a connection: the NIC here was closed (`Nic::close`), and nobody comes")]
    NicClosed,
    /// The listener was stopped by another task.
    #[error("waiting for a connection: the listener was stopped, and nobody comes")]
    Stopped,
}
