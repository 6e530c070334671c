//! How calls end that have no answer.

use crate::status::Status;

/// How a call that has no answer ended.
pub enum Lost {
    /// The request was never sent.
    Unsent(Status),
    /// The connection ended after the request was sent: whether it was handled is not known.
    Unknown(Status),
    /// The call is over.
    Over(Status),
}
