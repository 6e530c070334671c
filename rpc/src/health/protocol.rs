//! The methods of the health service, and the statuses that they answer with.

use serde::{Deserialize, Serialize};

use crate::method::Method;

/// The method that answers with the present status of the service whose name it is given.
pub const CHECK: Method<String, ServingStatus> = Method::new("doorbell.health/check").idempotent();

/// The method that answers with the present status of a service, and then with each change.
pub const WATCH: Method<String, ServingStatus> = Method::new("doorbell.health/watch").idempotent();

/// The longest service name that a client may watch, in bytes. The bound is there because a server
/// keeps the name for as long as the watch lasts.
pub const LONGEST_NAME: usize = 256;

/// Whether a service takes calls.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Debug)]
pub enum ServingStatus {
    /// The service takes calls.
    Serving,
    /// The service takes no calls now, for example because it is starting or shutting down.
    NotServing,
    /// The server has no status for a service of this name. A watch reports this status; a check
    /// fails with [`NotFound`](crate::Code::NotFound) instead.
    ServiceUnknown,
}
