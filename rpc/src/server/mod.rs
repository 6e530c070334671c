//! Servers: a router of methods, opened on a device, that answers the calls of its clients.
//!
//! | file | what it does |
//! |---|---|
//! | `builder` | configures a server and opens it |
//! | `open` | is the open server: its handle, and the tasks that look after its clients |
//! | `intake` | receives a call, checks it, and has its handler run |
//! | `task` | has a handler run as a task |
//! | `running` | runs one handler, at once or as a task |
//! | `handling` | is the future of a handler, with all that it runs in |
//! | `answer` | encodes what a handler returned, and sends it with all that follows |
//! | `leaving` | shuts the server down |
//! | `state` | holds what all of these share: methods, sessions, streams, transfers, limits |
//! | `crowd` | decides who has to go when too many clients are connected |
//! | `slot`, `queue` | bound how many handlers run, and how long calls wait for theirs to begin |
//! | `sessions` | remembers each client, and which of its calls have begun |
//!
//! A call's way leads through these files from top to bottom. A call that fails a check is answered
//! at once with a status which says that its handler has not run.
//!
//! | step | what happens to the call | where | fails if |
//! |---|---|---|---|
//! | 1 | arrives as a message, and its handler is looked up | [`intake`]: `call`, `admit` | the method is unknown, or has another schema |
//! | 2 | takes a place among the handlers that run | [`slot`]: `take` | all places are taken, or the server shuts down |
//! | 3 | is expected to begin in time | [`queue`]: `expects_in_time`, `may_begin_inline` | too many calls are before it |
//! | 4 | is remembered by its client's session | [`sessions`]: `begin` | it has begun before, and must not run twice |
//! | 5 | becomes a request, perhaps with a stream | [`intake`]: `opened` | it can't be read |
//! | 6 | waits for its task, unless its handler is inline, and for its long body | [`queue`]: `Waiting`; [`task`]; [`intake`]: `run_later` | it has waited too long |
//! | 7 | runs; if it waits for something, its session can stop it | [`handling`]; [`running`]; [`sessions`]: `waits` | its caller gives it up or goes away |
//! | 8 | is answered, with all that follows the answer | [`answer`] | its client goes away |
//! | 9 | gives its place back, and stays in its session's memory | [`slot`]: `drop`; [`sessions`]: `RecentCalls` | |
//!
//! The session keeps no answers. A call that is sent again, because its answer was lost with a
//! connection, is refused in step 4 unless its method is idempotent.
//!
//! Each file uses only those below it in the table. The folder is given a [`Router`](crate::Router)
//! and limits, and tells nobody anything but its clients: what they see is a response or a
//! [`Status`](crate::Status).

mod answer;
mod builder;
mod crowd;
mod handling;
mod intake;
mod leaving;
mod open;
mod queue;
mod running;
mod sessions;
mod slot;
mod state;
mod task;

pub use builder::ServerBuilder;
pub use open::Server;
