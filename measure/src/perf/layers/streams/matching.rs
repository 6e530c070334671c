//! Tagged matching layered on streams, as MPI was on Fast Messages: a header of 24 bytes before
//! each message, which is received straight into the buffer that was posted for its tag.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use doorbell_messages::streams::{
    EndpointBuilder, HandlerError, Incoming, Peer, SendError, StreamId,
};
use doorbell_verbs::floor::locked;

const TAGGED: StreamId = StreamId::new("tagged");

/// The length of a header: the tag, the length, and the sender's number of the message.
const HEADER: usize = 24;

/// The most bytes of messages that wait for a receive.
const MOST_UNEXPECTED: usize = 1 << 24;

/// The receiving side of the layer: receives that are posted, messages that came before theirs, and
/// receives that are done.
#[derive(Clone, Default)]
pub struct Matching(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    posted: VecDeque<Receive>,
    unexpected: VecDeque<Receive>,
    held: usize,
    done: VecDeque<Receive>,
}

/// A tag, and the buffer that is received into.
pub struct Receive {
    pub tag: u64,
    pub buffer: Vec<u8>,
}

impl Matching {
    /// Adds the layer's handler to an endpoint.
    pub fn on(&self, endpoint: EndpointBuilder) -> EndpointBuilder {
        let matching = self.clone();
        endpoint.handler(TAGGED, move |message| matching.clone().handle(message))
    }

    /// Posts a receive into a buffer, whose length is the most that is received.
    pub fn post(&self, receive: Receive) {
        let mut state = self.lock();
        let waits = state.unexpected.iter().position(|there| there.tag == receive.tag);
        match waits.and_then(|at| state.unexpected.remove(at)) {
            Some(there) => {
                state.held -= there.buffer.len();
                state.done.push_back(there);
            }
            None => state.posted.push_back(receive),
        }
    }

    /// Takes the next receive that is done.
    pub fn take_done(&self) -> Option<Receive> {
        self.lock().done.pop_front()
    }

    async fn handle(self, mut message: Incoming) -> Result<(), HandlerError> {
        let mut header = [0; HEADER];
        message.receive_into(&mut header).await?;
        let word = |at: usize| u64::from_be_bytes(std::array::from_fn(|byte| header[at + byte]));
        let (tag, len) = (word(0), usize::try_from(word(8))?);
        let posted = {
            let mut state = self.lock();
            let at = state.posted.iter().position(|posted| posted.tag == tag);
            at.and_then(|at| state.posted.remove(at))
        };
        let Some(Receive { mut buffer, .. }) = posted else {
            return self.unexpected(tag, len, message).await;
        };
        if len > buffer.len() {
            return Err(format!("{len} bytes for a receive of {}", buffer.len()).into());
        }
        buffer.truncate(len);
        message.receive_into(&mut buffer).await?;
        self.lock().done.push_back(Receive { tag, buffer });
        Ok(())
    }

    /// Keeps a message whose receive is not posted yet.
    async fn unexpected(
        self,
        tag: u64,
        len: usize,
        mut message: Incoming,
    ) -> Result<(), HandlerError> {
        let held = self.lock().held;
        if len > MOST_UNEXPECTED.saturating_sub(held) {
            return Err(format!("{len} bytes, which no receive waits for").into());
        }
        self.lock().held += len;
        let buffer = message.receive(len).await?.to_vec();
        self.lock().held -= len;
        let mut state = self.lock();
        let posted = state.posted.iter().position(|posted| posted.tag == tag);
        match posted.and_then(|at| state.posted.remove(at)) {
            Some(_) => state.done.push_back(Receive { tag, buffer }),
            None => {
                state.held += len;
                state.unexpected.push_back(Receive { tag, buffer });
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        locked(&self.0)
    }
}

/// Sends a message with a tag.
pub async fn send(to: &Peer, tag: u64, number: u64, body: &[u8]) -> Result<(), SendError> {
    let mut header = [0; HEADER];
    let words = [tag, body.len() as u64, number].map(u64::to_be_bytes);
    header.iter_mut().zip(words.iter().flatten()).for_each(|(to, from)| *to = *from);
    let mut message = to.begin(TAGGED).await?;
    message.send(header).await?;
    message.send(body).await?;
    message.end().await
}
