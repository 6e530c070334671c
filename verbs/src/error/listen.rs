//! The error of listening.

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
}
