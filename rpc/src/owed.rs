//! Words that are owed to peers, and wait for their credits.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use doorbell_am::{Credit, Peer, SendError};
use doorbell_verbs::floor::locked;

/// How long words wait for a peer's next credit. A peer that gives no credit for as long does not
/// take any other message either.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most words that wait for one peer. A peer is owed a few for each call that is in flight; one
/// that is owed more has asked for them without reason, gives no credits, and is cut off.
const MOST: usize = 1 << 15;

/// A message that is owed to a peer.
pub trait Word: Send + 'static {
    /// Sends the message by a credit.
    ///
    /// # Errors
    /// When the peer has gone.
    fn send(self, credit: Credit<'_>) -> Result<(), SendError>;
}

/// The words of one kind that are owed to the peers of an endpoint. One task for each peer sends
/// them as credits come.
#[derive(Debug)]
pub struct Owed<W>(Mutex<HashMap<Peer, VecDeque<W>>>);

impl<W> Default for Owed<W> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<W: Word> Owed<W> {
    /// Has a word sent to a peer as soon as there is a credit, behind others that wait.
    pub fn put(self: &Arc<Self>, peer: &Peer, word: W) {
        let mut waiting = locked(&self.0);
        if let Some(words) = waiting.get_mut(peer) {
            let has_room = words.len() < MOST;
            if has_room {
                words.push_back(word);
            }
            drop(waiting);
            if !has_room {
                peer.cut_off();
            }
            return;
        }
        waiting.insert(peer.clone(), VecDeque::from([word]));
        drop(waiting);
        let (owed, to) = (self.clone(), peer.within(PATIENCE));
        peer.runtime().spawn(async move { owed.pay(&to).await });
    }

    /// Sends the words for a peer, until none is left or the peer gives no credit.
    async fn pay(&self, peer: &Peer) {
        loop {
            let credit = peer.credit().await;
            let mut waiting = locked(&self.0);
            let Ok(credit) = credit else {
                waiting.remove(peer);
                return;
            };
            let Some(word) = waiting.get_mut(peer).and_then(VecDeque::pop_front) else {
                waiting.remove(peer);
                return;
            };
            drop(waiting);
            // Sending fails only if the peer has gone, and then nobody needs the word.
            let _ = word.send(credit);
        }
    }
}
