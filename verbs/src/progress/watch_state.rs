//! What a look after a NIC leads to, and what is kept until the next look.

use doorbell_core::time::Time;

/// The next step of the watch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WatchStep {
    /// Let other tasks run, and look again.
    Again,
    /// Let the tasks run that were woken. If they do not go on with the NIC, look again soon.
    HandOver,
    /// Sleep until the device or the timer wakes the watch.
    Rest,
}

/// The state that a watch keeps from one look to the next.
#[derive(Default)]
pub(crate) struct WatchState {
    pub turns_taken: u64,
    /// The time since when nothing has come.
    pub since: Option<Time>,
    /// Whether the watch has let other tasks run in order to look again.
    pub again: bool,
}
