//! The queue of an endpoint's datagrams: frames are laid into requests.

use doorbell_verbs::work::Datagram;
use doorbell_verbs::{Destination, Inline, SendQueue, WorkRequest};

use crate::frames::wire::{FRAME_HEADER, Head, LONGEST_NAME, MESSAGE_HEADER};

/// The most bytes that go into a request itself.
const MOST_INLINE: usize = 64;

/// The queue of an endpoint's datagrams.
#[derive(Debug)]
pub struct Wire {
    queue: SendQueue,
    /// The identity of this endpoint, and its name.
    identity: u64,
    name: String,
    /// Requests are unsignalled but for one in this many, so that a full queue tells when there is
    /// room.
    signal_every: usize,
    unsignalled: usize,
    /// The last request of a burst, which is kept back until the next is there: all requests of a
    /// burst leave together.
    last: Option<WorkRequest>,
}

impl Wire {
    pub fn new(queue: SendQueue, identity: u64, name: String) -> Self {
        let signal_every = (queue.room() / 4).max(1);
        Self { queue, identity, name, signal_every, unsignalled: 0, last: None }
    }

    /// Whether another frame can be sent.
    pub fn has_room(&self) -> bool {
        self.queue.room() > usize::from(self.last.is_some())
    }

    /// Puts a frame into the queue. It leaves with [`flush`](Self::flush).
    pub fn put(&mut self, head: &Head, data: &[u8], is_named: bool, to: &Destination) {
        let name = is_named.then_some(self.name.as_str());
        let most =
            FRAME_HEADER + MESSAGE_HEADER + data.len() + if is_named { LONGEST_NAME } else { 0 };
        let mut bytes = Vec::with_capacity(most);
        head.encode(self.identity, name, &mut bytes);
        bytes.extend_from_slice(data);
        let request = match Inline::new(&bytes).filter(|_| bytes.len() <= MOST_INLINE) {
            Some(inline) => Datagram::new(inline, to),
            None => Datagram::new(bytes, to),
        };
        self.unsignalled += 1;
        let request = match self.unsignalled < self.signal_every {
            true => request.unsignalled(),
            false => {
                self.unsignalled = 0;
                request
            }
        };
        if let Some(before) = self.last.replace(request.into()) {
            let put = self.queue.put(before);
            debug_assert!(put.is_ok(), "there is room");
        }
    }

    /// Sends what was put into the queue.
    pub fn flush(&mut self) {
        if let Some(last) = self.last.take() {
            let posted = self.queue.post(last);
            debug_assert!(posted.is_ok(), "there is room");
        }
    }
}
