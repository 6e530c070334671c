//! Clients: channels to servers, and typed calls over them.
//!
//! | file or folder | what it does |
//! |---|---|
//! | `typed` | turns values into bodies and back, over a channel or any tower service |
//! | `builder` | configures a channel and opens its endpoint |
//! | `ready` | is a channel whose readiness says whether there is a connection |
//! | `channel` | takes requests, with their deadlines and traces |
//! | [`session`] | owns the relation to a server: its states, connections and calls in flight, and each call's way |
//! | `sharing` | has the channels of a process share NICs |
//! | `backoff` | is the pauses between attempts |
//!
//! Each uses only those below it in the table. The handlers of Active Messages tell the folder
//! about answers, streams and the ends of connections, and the folder tells the program a response
//! or a [`Status`](crate::Status).

mod backoff;
mod builder;
mod channel;
mod ready;
mod session;
mod sharing;
mod typed;

pub use backoff::Backoff;
pub use builder::ChannelBuilder;
pub use channel::{Channel, Sending};
pub use ready::WhenReady;
pub use typed::{Calling, Client};
