//! Giving calls up: ending their streams, and telling the server.

use std::sync::Arc;
use std::time::Duration;

use doorbell_am::Peer;

use crate::status::Status;
use crate::stream::Streams;
use crate::wire::{CANCEL, CallKey};

/// Gives a call up when dropped while armed: ends its streams, and tells the server. Armed while
/// the call waits for its answer, and while its request still streams.
pub struct GivenUp {
    pub peer: Peer,
    pub streams: Arc<Streams>,
    pub key: CallKey,
    pub armed: bool,
}

impl GivenUp {
    /// Whether the request is a stream that has not ended.
    pub fn is_sending(&self) -> bool {
        self.streams.is_sending(self.key, &self.peer)
    }

    /// Gives the call up if its request still streams, though the response has come to its end.
    pub fn ends_sending(mut self) {
        self.armed &= self.is_sending();
    }

    /// Tells the server that nobody waits for the call any more.
    fn cancel(&self) {
        let words = <[u64; 2]>::from(self.key);
        match self.peer.try_credit() {
            Ok(Some(credit)) => _ = credit.request(CANCEL, words),
            Ok(None) => {
                let peer = self.peer.within(Duration::from_secs(1));
                self.peer.runtime().spawn(async move { peer.request(CANCEL, words).await });
            }
            // A server knows by itself which clients have gone.
            Err(_) => {}
        }
    }
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        if self.armed {
            self.streams.end(self.key, &Status::cancelled("the call was given up"));
            self.cancel();
        }
    }
}
