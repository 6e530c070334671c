//! The message `WRITTEN`, by which the sender of a body says that it writes no more.

use std::time::Duration;

use doorbell_am::{Credit, Peer, SendError};

use crate::owed::Word;
use crate::wire::{CallKey, WRITTEN};

/// How long a `WRITTEN` message waits for a credit. A peer that gives no credit for as long does
/// not take any other message either.
const PATIENCE: Duration = Duration::from_secs(30);

/// Tells the receiver of a body that nothing is written any more into the memory that it has lent,
/// and whether the body is there as a whole.
pub async fn send_written(peer: &Peer, (session, call): CallKey, whole: bool) {
    let words = [session, call, u64::from(whole)];
    // A receiver knows by itself which senders have gone.
    let _ = peer.within(PATIENCE).request(WRITTEN, words).await;
}

/// A `WRITTEN` that the receiver of a body is owed, which says that the body is incomplete.
#[derive(Debug)]
pub struct Unwritten(pub CallKey);

impl Word for Unwritten {
    fn send(self, credit: Credit<'_>) -> Result<(), SendError> {
        let Self((session, call)) = self;
        credit.request(WRITTEN, [session, call, 0])
    }
}
