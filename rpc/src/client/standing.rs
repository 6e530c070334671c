//! How a channel stands with its server: what calls that find no connection do.

use doorbell_am::Name;

use crate::status::Status;

/// How a channel stands with its server.
#[derive(Clone, Debug)]
pub enum Standing {
    /// There is no connection, and none is being made. The next call begins to make one.
    Idle,
    /// A connection is being made, and the server may be there: calls wait.
    Connecting,
    /// There is a connection, or there was one that has ended since.
    Up,
    /// The server is gone for the reason in the status. Calls that do not wait for it fail, while
    /// attempts to connect go on.
    Gone(Status),
    /// The runtime has ended that served the channel, and the channel with it.
    Over,
}

/// The status of calls of a channel whose runtime has ended.
#[cold]
pub fn runtime_ended(name: &Name) -> Status {
    Status::unavailable(format!(
        "the runtime has ended in which the channel to {name} was made, and the channel with it: make \
         channels in a runtime that lasts for as long as they are used"
    ))
}
