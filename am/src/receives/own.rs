//! The receives of one peer, where they are not drawn from those of all.

use std::sync::Mutex;

use doorbell_verbs::{Buf, ReceiveQueue};

use crate::lock::locked;

/// A queue that is there once the link is open; until then, what is to be posted waits.
#[derive(Default)]
pub(crate) struct OwnReceives(Mutex<State>);

#[derive(Default)]
struct State {
    queue: Option<ReceiveQueue>,
    waiting: Vec<Buf>,
    closed: bool,
}

impl OwnReceives {
    pub fn open(&self, mut queue: ReceiveQueue) {
        let mut state = locked(&self.0);
        state.waiting.drain(..).for_each(|buffer| post(&mut queue, buffer));
        state.queue = Some(queue);
    }

    /// Posts a buffer that was received into, or one in its place.
    pub fn post(&self, buffer: Buf) {
        let State { queue, waiting, closed } = &mut *locked(&self.0);
        match queue {
            Some(queue) => post(queue, buffer),
            None if *closed => {}
            None => waiting.push(buffer),
        }
    }

    /// The link is over: nothing is posted any more.
    pub fn close(&self) {
        let closed = State { closed: true, ..State::default() };
        let state = std::mem::replace(&mut *locked(&self.0), closed);
        drop(state);
    }
}

/// There is room: it came out of this queue.
fn post(queue: &mut ReceiveQueue, buffer: Buf) {
    let posted = queue.post(0, buffer);
    debug_assert!(posted.is_ok(), "as many are posted as it has room for");
}
