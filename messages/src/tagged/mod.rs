//! Tagged messages: sent with 64 bits of match information, and received by them.
//!
//! This room shares [`matching`](crate::matching) and the [slots](crate::slot) of outcomes with
//! frames, and nothing with streams. [Collectives](crate::collectives) stand on it.
//!
//! | | |
//! |---|---|
//! | `endpoint` | endpoints, peers, sends and receives, and the handlers of what peers say |
//! | `pull` | long bodies, which receivers read from their senders' memory |
//! | `pacing`, `striping` | windows, and messages that go by several devices: state machines without sockets |
//! | `wire` | what endpoints say to each other |
//! | `body`, `limits`, `error` | what is sent, what an endpoint may hold, and what goes wrong |

mod body;
mod endpoint;
mod error;
mod limits;
mod pacing;
mod pull;
mod striping;
mod wire;

pub use body::Body;
pub use endpoint::{
    Anywhere, Endpoint, EndpointBuilder, Match, Message, Peer, Probed, Received, Receiving,
    Request, Room, Sending, Statistics, wait_any,
};
pub use error::{
    CloseError, ConnectError, GivenUp, OpenError, ReceiveError, SendError, Unsent, Unwelcome,
    WhyGivenUp, WhyGone,
};
pub use pull::RegionPart;
