//! The progress engine: which thread runs the NIC, and when.
//!
//! **Inline**, waiting tasks run the NIC. A future that is polled locks the NIC, and spins for a
//! while by taking turns. It lets other tasks run, and spins again. How soon it lets them run is
//! learnt from earlier waits. When nothing has come for the configured time, the future arms the
//! device, looks once more, and sleeps.
//!
//! | role | what the task or thread does |
//! |---|---|
//! | holder | holds the lock, takes turns, and sends what others post |
//! | leader | has yielded between two polls, and comes back soon to take turns |
//! | follower | sleeps; one follower is woken when no task leads any more |
//! | watch | runs the NIC when no task waits: wakes with the device, or looks every millisecond |
//! | rescue thread | runs the NIC when neither the tasks nor the watch get to run |
//!
//! The engine keeps one invariant: there is a holder, a leader, an armed device, or a ticking
//! watch, whenever a task sleeps. So a task that gives up leadership wakes a follower, or arms the
//! device, or leaves the watch ticking; and a task enters the list of followers before it looks
//! once more whether it can lead.
//!
//! **Dedicated**, a thread of its own runs the NIC for good, and other threads only look at their
//! queues.
//!
//! This folder is told that work was posted, that a task waits, and what the task looks for. It
//! tells the adapter to take turns and to sleep, and tasks that their result is there.

mod closing;
mod dedicated;
mod engine;
mod held;
mod leader;
mod look;
mod patience;
mod rescue;
mod wait;
mod watch;
mod watch_state;
mod watch_timer;
mod yielding;

pub(crate) use engine::{Held, Pacing, ProgressEngine};
pub use held::{HeldNic, NicGuard};
#[cfg(all(test, verbs_loom))]
pub(crate) use leader::LeaderLock;
pub use leader::Precedence;
pub use look::Look;
pub(crate) use wait::WaitState;
pub(crate) use watch_state::{WatchState, WatchStep};
pub(crate) use watch_timer::WatchTimer;
pub(crate) use yielding::{poll_blocked, yield_to_any, yield_to_others};
