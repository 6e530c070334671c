//! How a call failed, as far as sending it again is concerned.

use crate::status::Status;

/// A call that failed, and whether it may be sent again over another connection.
pub enum Failure {
    /// The request was never sent, or the server has refused it since it shuts down, so the call may
    /// be sent again.
    NotBegun(Status),
    /// The connection ended after the request was sent. The server may or may not have handled the
    /// call, so only an idempotent call, or one that the same session remembers, may be sent again.
    OutcomeUnknown(Status),
    /// The call has its outcome, and is not sent again.
    Final(Status),
}
