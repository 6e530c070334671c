//! The receive queue of one link, where receives are not shared by all links.

use std::sync::Mutex;

use doorbell_verbs::{Buf, ReceiveQueue};

use doorbell_verbs::floor::locked;

/// A receive queue of a link. Buffers that are posted before the link is open wait.
#[derive(Default)]
pub(crate) struct OwnReceives(Mutex<State>);

/// The state of a link's own receive queue, under its lock.
#[derive(Default)]
struct State {
    /// The receive queue, while the link is open.
    queue: Option<ReceiveQueue>,
    /// Buffers that are posted when the link opens.
    waiting: Vec<Buf>,
    closed: bool,
}

impl OwnReceives {
    /// Posts the buffers that waited, since the link is open.
    pub fn open(&self, mut queue: ReceiveQueue) {
        let mut state = locked(&self.0);
        state.waiting.drain(..).for_each(|buffer| post(&mut queue, buffer));
        state.queue = Some(queue);
    }

    /// Posts a buffer that was received into, or another in its place.
    pub fn post(&self, buffer: Buf) {
        let State { queue, waiting, closed } = &mut *locked(&self.0);
        match queue {
            Some(queue) => post(queue, buffer),
            None if *closed => {}
            None => waiting.push(buffer),
        }
    }

    /// Drops the queue, since the link is over. Nothing is posted any more.
    pub fn close(&self) {
        let closed = State { closed: true, ..State::default() };
        let state = std::mem::replace(&mut *locked(&self.0), closed);
        drop(state);
    }
}

/// Posts a buffer to a queue that has room, since a buffer came out of it before.
fn post(queue: &mut ReceiveQueue, buffer: Buf) {
    let posted = queue.post(0, buffer);
    debug_assert!(posted.is_ok(), "as many are posted as it has room for");
}
