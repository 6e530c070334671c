//! The message `WRITTEN`, by which the sender of a body says that it writes no more.

use std::time::Duration;

use doorbell_am::Peer;

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

/// Starts a task that sends the receiver of a body a `WRITTEN`, as [`send_written`] does.
pub fn spawn_written(peer: &Peer, key: CallKey, whole: bool) {
    let to = peer.clone();
    peer.runtime().spawn(async move { send_written(&to, key, whole).await });
}
