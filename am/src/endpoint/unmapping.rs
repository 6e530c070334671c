//! Taking peers off the translation table, and ending links that nobody uses any more.

use std::sync::Arc;

use super::core::{Core, left};
use super::user::User;
use crate::error::SendError;
use crate::link::Link;
use crate::peer::{ask, settle};
use crate::wire::Ask;

impl Core {
    /// Takes a peer off its place, and waits until the peer has handled what was sent there, as
    /// long as that takes. If the link has no users on either side then, the connection ends.
    pub async fn unmap(self: &Arc<Self>, index: usize) -> Result<(), SendError> {
        let link = {
            let mut table = self.places_mut();
            table.get_mut(index).and_then(Option::take).ok_or(SendError::NotMapped(index))?
        };
        match User::that_stayed(self, link.clone()).leave() {
            Some(asks) => drop(asks.await),
            // The link has other users, and stays.
            None => settle(&link).await,
        }
        Ok(())
    }

    /// Takes the peer of a link off all its places.
    pub async fn unmap_link(self: &Arc<Self>, link: &Arc<Link>) -> Result<(), SendError> {
        let places = self.places().len();
        let mut found = false;
        for index in 0..places {
            if self.place(index).is_some_and(|there| Arc::ptr_eq(&there, link)) {
                found |= self.unmap(index).await.is_ok();
            }
        }
        if found { Ok(()) } else { Err(SendError::NotConnected { peer: link.peer_text() }) }
    }

    /// Takes all peers off their places. A peer that another task takes off meanwhile is skipped.
    pub async fn unmap_all(self: &Arc<Self>) {
        let places = self.places().len();
        for index in 0..places {
            let _ = self.unmap(index).await;
        }
        // Unmaps whose futures were dropped may go on.
        for link in self.links().iter().filter(|link| link.usage.is_asking()) {
            settle(link).await;
        }
    }

    /// Asks the peer whether a link may end that has lost its last user on this side, and ends the
    /// link if the peer does not use it. The peer has handled what was sent before, since it
    /// answers in turn.
    pub async fn ask_to_end(&self, link: &Arc<Link>) {
        let mut in_use = false;
        for link in link.lanes().iter().chain([link]) {
            let answer = ask(link, &[Ask::Leave as u64], &[]).await;
            in_use = answer.is_ok_and(|reply| reply.words().eq([1]));
        }
        if !link.usage.is_answered(in_use) {
            return;
        }
        for link in link.lanes().iter().chain([link]) {
            let ended = link.connection.disconnect(&[]).await;
            self.end(link, ended.unwrap_or(left()));
        }
    }
}
