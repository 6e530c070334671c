//! Users of a link: entries of the translation table, and maps under way.

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::endpoint::core::Core;
use crate::link::Link;
use crate::wire::Tag;

/// A user of a link, which is an entry of the translation table, or a map under way.
pub(super) struct User {
    core: Arc<Core>,
    link: Arc<Link>,
    has_left: bool,
}

impl User {
    /// Makes a new user of a link that shows a tag, if the link takes one.
    pub fn of(core: &Arc<Core>, link: &Arc<Link>, tag: Option<Tag>) -> Option<Self> {
        link.usage.join(tag).then(|| Self::that_stayed(core, link.clone()))
    }

    #[inline]
    pub fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Removes the user from the link. If it was the last, a task asks the peer whether the link
    /// may end, and goes on to its end whether it is waited for or not.
    pub fn leave(mut self) -> Option<JoinHandle<()>> {
        self.leave_once()
    }

    /// Leaves the user on the link, as an entry of the translation table, or for as long as the
    /// link stands.
    pub fn stays(mut self) -> Arc<Link> {
        self.has_left = true;
        self.link.clone()
    }

    /// Takes up a user again that [stayed](Self::stays).
    pub fn that_stayed(core: &Arc<Core>, link: Arc<Link>) -> Self {
        Self { core: core.clone(), link, has_left: false }
    }

    fn leave_once(&mut self) -> Option<JoinHandle<()>> {
        let leaves = !std::mem::replace(&mut self.has_left, true);
        let asks = leaves && self.link.usage.leave() && self.link.ending().is_none();
        asks.then(|| {
            let (core, link) = (self.core.clone(), self.link.clone());
            core.local.runtime.clone().spawn(async move { core.ask_to_end(&link).await })
        })
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.leave_once();
    }
}
