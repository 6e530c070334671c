//! The tasks that close an endpoint, and the peers that they name as lost.

use std::sync::{Mutex, MutexGuard};
use std::task::Waker;

use crate::tagged::error::GivenUp;
use doorbell_verbs::floor::locked;

/// The most peers that are remembered as having gone with messages that were theirs.
const MOST_LOST: usize = 64;

/// The tasks that close an endpoint, and the peers that were lost before, whom they name.
#[derive(Debug, Default)]
pub struct Closing(Mutex<ClosingState>);

#[derive(Debug, Default)]
struct ClosingState {
    /// The tasks that wait until nothing is owed to any peer.
    waiting: Vec<Waker>,
    /// The peers that have gone while messages to them had not left, the first ones.
    lost: Vec<GivenUp>,
}

impl Closing {
    /// Has closing tasks look again, since something happened that was no message.
    pub fn wake(&self) {
        let waiting = std::mem::take(&mut self.lock().waiting);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Remembers a peer that has gone while messages to it had not left.
    pub fn loses(&self, lost: GivenUp) {
        let mut state = self.lock();
        if state.lost.len() < MOST_LOST {
            state.lost.push(lost);
        }
    }

    /// Has a closing task woken when something happens that is no message.
    pub fn arm(&self, waker: &Waker) {
        let mut state = self.lock();
        if !state.waiting.iter().any(|there| there.will_wake(waker)) {
            state.waiting.push(waker.clone());
        }
    }

    /// Takes the peers that were lost.
    pub fn take_lost(&self) -> Vec<GivenUp> {
        std::mem::take(&mut self.lock().lost)
    }

    fn lock(&self) -> MutexGuard<'_, ClosingState> {
        locked(&self.0)
    }
}
