//! Servers: a router of methods, opened on a device, that answers the calls of its clients.
//!
//! | file | what it does |
//! |---|---|
//! | `builder` | configures a server and opens it |
//! | `open` | is the open server: its handle, and the tasks that look after its clients |
//! | `intake` | receives a call, checks it, and has its handler run |
//! | `running` | runs one handler, at once or as a task |
//! | `answer` | encodes what a handler returned, and sends it with all that follows |
//! | `leaving` | shuts the server down |
//! | `state` | holds what all of these share: methods, sessions, streams, transfers, limits |
//! | `crowd` | decides who has to go when too many clients are connected |
//! | `slot`, `queue` | bound how many handlers run, and how long calls wait for theirs to begin |
//! | `sessions` | remembers each client, and which of its calls have begun |
//!
//! Each file uses only those below it in the table. The folder is given a [`Router`](crate::Router)
//! and limits, and tells nobody anything but its clients: what they see is a response or a
//! [`Status`](crate::Status).

mod answer;
mod builder;
mod crowd;
mod intake;
mod leaving;
mod open;
mod queue;
mod running;
mod sessions;
mod slot;
mod state;

pub use builder::ServerBuilder;
pub use open::Server;
