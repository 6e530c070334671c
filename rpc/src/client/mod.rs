//! Clients: channels to servers, and typed calls over them.
//!
//! | file | what it does |
//! |---|---|
//! | `typed` | turns values into bodies and back, over a channel or any tower service |
//! | `builder` | configures a channel and opens its endpoint |
//! | `ready` | is a channel whose readiness says whether there is a connection |
//! | `channel` | takes requests: permits, deadlines and traces |
//! | `delivery` | delivers one call, and sends it again where that is safe |
//! | `connector` | keeps one connection, and makes the next one with pauses when it has ended |
//! | `connection` | sends one call over one connection, with all that follows |
//! | `sharing` | has the channels of a process share NICs |
//! | `alive` | probes servers from which calls wait for answers |
//! | `calls` | is the table of calls in flight, which answers are delivered to |
//! | `backoff`, `standing`, `permits`, `numbers`, `given_up`, `response`, `stage`, `failure` | what the files above share |
//!
//! Each file uses only those below it in the table. The handlers of Active Messages tell the folder
//! about answers, streams and the ends of connections, and the folder tells the program a response
//! or a [`Status`](crate::Status).

mod alive;
mod backoff;
mod builder;
mod calls;
mod channel;
mod connection;
mod connector;
mod delivery;
mod failure;
mod given_up;
mod numbers;
mod permits;
mod ready;
mod response;
mod sharing;
mod stage;
mod standing;
mod typed;

pub use backoff::Backoff;
pub use builder::ChannelBuilder;
pub use channel::{Channel, Sending};
pub use ready::WhenReady;
pub use typed::{Calling, Client};
