//! Credits: rights to have one more request under way to a peer.

use std::fmt;
use std::sync::Arc;

use super::Peer;
use super::awaitable::Admission;
use super::deadline::Deadline;
use super::waiting::found;
use crate::arguments::{Arguments, Room};
use crate::error::SendError;
use crate::kinds::RequestId;
use crate::link::Link;
use crate::shared::handles;
use crate::wire::Content;

/// A credit is the right to have one more request under way to a peer. If it is dropped, another
/// task may use it.
#[must_use = "a credit is given back if nothing is sent by it"]
pub struct Credit<'p> {
    pub(super) link: &'p Arc<Link>,
    used: bool,
}

impl Peer {
    /// Waits for a credit, for no longer than [`within`](Self::within) says if there is a bound.
    ///
    /// # Errors
    /// When the peer has gone, the time is over, or a handler calls this that does not wait.
    pub async fn credit(&self) -> Result<Credit<'_>, SendError> {
        if handles() {
            return Err(SendError::InHandler);
        }
        credit(&self.link, &mut Deadline::of(self.within)).await
    }

    /// Takes a credit, if there is one now.
    ///
    /// # Errors
    /// When the peer has gone, or a handler calls this that does not wait.
    pub fn try_credit(&self) -> Result<Option<Credit<'_>>, SendError> {
        if handles() {
            return Err(SendError::InHandler);
        }
        let admitted = self.link.admit(&mut self.link.send_side())?;
        Ok(admitted.then(|| Credit { link: &self.link, used: false }))
    }
}

/// Waits for a credit of a link.
pub(super) async fn credit<'l>(
    link: &'l Arc<Link>,
    deadline: &mut Deadline<'l>,
) -> Result<Credit<'l>, SendError> {
    credit_by(link, Admission::default(), deadline).await
}

/// Waits for a credit of a link, and for a number of a call.
pub(super) async fn credit_for_call<'l>(
    link: &'l Arc<Link>,
    deadline: &mut Deadline<'l>,
) -> Result<Credit<'l>, SendError> {
    credit_by(link, Admission::of_call(), deadline).await
}

async fn credit_by<'l>(
    link: &'l Arc<Link>,
    admission: Admission,
    deadline: &mut Deadline<'l>,
) -> Result<Credit<'l>, SendError> {
    match found(link, admission, deadline).await {
        Some(admitted) => admitted?,
        None => {
            let (peer, within) = (link.peer_text(), deadline.within());
            let credits = link.send_side().who_has_credits();
            return Err(SendError::NoCredit { peer, within, credits });
        }
    }
    Ok(Credit { link, used: false })
}

impl Credit<'_> {
    /// Sends a request by this credit, without waiting.
    ///
    /// # Errors
    /// When there are more words than the peer takes.
    pub fn request<A: Arguments>(self, id: RequestId<A>, arguments: A) -> Result<(), SendError> {
        let mut room = Room::new();
        let content = room.content(&arguments);
        self.link.check_allowed(content)?;
        self.send(id.index(), content)
    }

    /// Sends a request with a copy of a payload beside the arguments by this credit, without
    /// waiting.
    ///
    /// # Errors
    /// As [`request`](Self::request), and when the peer does not take so long a payload.
    pub fn request_with<A: Arguments>(
        self,
        id: RequestId<A>,
        arguments: A,
        payload: impl AsRef<[u8]>,
    ) -> Result<(), SendError> {
        let mut room = Room::new();
        let content = room.content_with(&arguments, payload.as_ref());
        self.link.check_allowed(content)?;
        self.send(id.index(), content)
    }

    pub(super) fn send(self, handler: u16, content: Content<'_>) -> Result<(), SendError> {
        let link = self.link;
        self.uses(|| link.request(&mut link.send_side(), handler, content))
    }

    /// Sends the request of a call by this credit. Returns the call's number, or `None` if another
    /// call has taken the last number.
    pub(super) fn send_call(
        mut self,
        handler: u16,
        content: Content<'_>,
    ) -> Result<Option<u16>, SendError> {
        let call = self.link.call(&mut self.link.send_side(), handler, content);
        self.used = !matches!(call, Ok(None));
        call
    }

    /// Uses the credit up for what `sends` sends.
    pub(super) fn uses<R>(mut self, sends: impl FnOnce() -> R) -> R {
        self.used = true;
        sends()
    }
}

impl Drop for Credit<'_> {
    fn drop(&mut self) {
        if !self.used {
            self.link.put_back();
        }
    }
}

impl fmt::Debug for Credit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credit").field("peer", &self.link.peer_text()).finish_non_exhaustive()
    }
}
