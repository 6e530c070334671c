//! The word of a body's sender that nothing writes any more.

use std::time::Duration;

use doorbell_am::Peer;

use crate::stream::Key;
use crate::wire::WRITTEN;

/// For how long the word that a body is written waits for a credit. A peer that gives none for as
/// long is stuck with everything.
const PATIENCE: Duration = Duration::from_secs(30);

/// Tells the receiver of a body that nothing writes any more into the memory that it has lent, and
/// whether the body is there as a whole.
pub async fn say_written(peer: &Peer, (session, call): Key, whole: bool) {
    let words = [session, call, u64::from(whole)];
    // The receiver knows by itself of senders that have gone.
    let _ = peer.within(PATIENCE).request(WRITTEN, words).await;
}

/// Has a task tell the receiver of a body that nothing writes any more, as [`say_written`] does.
pub fn tell_written(peer: &Peer, key: Key, whole: bool) {
    let to = peer.clone();
    peer.runtime().spawn(async move { say_written(&to, key, whole).await });
}
