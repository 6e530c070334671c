//! What follows from an event, and is done without the lock on the endpoint's state.

use std::sync::Arc;
use std::task::Waker;

use super::arrived::PullJob;
use super::lane::Lane;

/// The effects of an event that wait until the state's lock is released: frames that are to be
/// sent, tasks that are to be woken, and bodies that are to be pulled.
#[derive(Debug, Default)]
pub struct Effects {
    lanes: Vec<Arc<Lane>>,
    cut_off: Option<Arc<Lane>>,
    waker: Option<Waker>,
    /// The wakers beyond the first, of which there are few.
    wakers: Vec<Waker>,
    pulls: Vec<PullJob>,
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

    /// Has a task woken, if there is one.
    pub fn wake(&mut self, waker: Option<Waker>) {
        match self.waker {
            None => self.waker = waker,
            Some(_) => self.wakers.extend(waker),
        }
    }

    /// Has a long body pulled.
    pub fn pull(&mut self, job: PullJob) {
        self.pulls.push(job);
    }

    /// Takes out the bodies that are to be pulled.
    pub fn take_pulls(&mut self) -> Vec<PullJob> {
        std::mem::take(&mut self.pulls)
    }

    /// Sends what is to be sent, and wakes who is to be woken. Returns whether a task was woken, or
    /// begun.
    pub fn finish(self) -> bool {
        debug_assert!(self.pulls.is_empty(), "they are taken out before");
        let woke = self.waker.is_some();
        self.waker.into_iter().chain(self.wakers).for_each(Waker::wake);
        self.cut_off.iter().for_each(|lane| lane.cut_off());
        self.lanes.iter().fold(woke, |woke, lane| lane.flush() || woke)
    }
}
