//! The error of registering memory.

use doorbell_core::nic::TableFull;
use thiserror::Error;

/// The error of registering memory, or of revoking a registration.
#[derive(Debug, Error)]
pub enum RegisterError {
    /// The NIC's table of registrations is full.
    #[error(transparent)]
    Full(#[from] TableFull),
    /// The registration was revoked before, through another handle.
    #[error("this registration was revoked already, by another handle to it")]
    Revoked,
}
