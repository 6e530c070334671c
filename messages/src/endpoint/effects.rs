//! What follows from an event, and is done without the lock on the endpoint's state.

use std::sync::Arc;

use super::lane::Lane;

/// The effects of an event that wait until the state's lock is released: frames that are to be
/// sent, and tasks that were woken.
#[derive(Debug, Default)]
pub struct Effects {
    lanes: Vec<Arc<Lane>>,
    cut_off: Option<Arc<Lane>>,
    woke: bool,
}

impl Effects {
    /// Has what is on a lane sent.
    pub fn send(&mut self, lane: &Arc<Lane>) {
        self.lanes.push(lane.clone());
    }

    /// Has the connection to a peer ended that breaks the rules.
    pub fn cut_off(&mut self, lane: &Arc<Lane>) {
        self.cut_off = Some(lane.clone());
    }

    /// Notes whether a task was woken.
    pub fn note(&mut self, woke: bool) {
        self.woke |= woke;
    }

    /// Sends what is to be sent. Returns whether a task was woken, or begun.
    pub fn finish(self) -> bool {
        self.cut_off.iter().for_each(|lane| lane.cut_off());
        self.lanes.iter().fold(self.woke, |woke, lane| lane.flush() || woke)
    }
}
