//! A call under way: sent, waited for, and the errors that it may end with.

use std::sync::Arc;

use super::awaitable::Coming;
use super::credit::credit_for_call;
use super::deadline::Deadline;
use super::waiting::found_since;
use crate::error::{CallError, Called, SendError, Undeliverable, WaitedFor};
use crate::kinds::{Failure, Kind};
use crate::link::{Answer, Link};
use crate::wire::Content;

/// A call that was sent.
pub(super) struct Begun {
    call: u16,
    /// The link's count of changes before the call was sent. An answer that comes at once is found
    /// since it changes the count.
    seen: u32,
}

impl Begun {
    /// Waits for the answer, and puts it where the caller says, if it comes in time.
    #[inline]
    pub fn answered<'l>(
        self,
        link: &'l Arc<Link>,
        answer: &mut Option<Answer>,
        deadline: &mut Deadline<'l>,
    ) -> impl Future<Output = ()> {
        let coming = Coming::<Answer>::by(self.call);
        found_since(link, Some(self.seen), coming, answer, deadline)
    }
}

/// Sends the request of a call, if there is a credit.
#[inline]
pub(super) fn begin(
    link: &Arc<Link>,
    handler: u16,
    content: Content<'_>,
) -> Result<Option<Begun>, SendError> {
    link.check_allowed(content)?;
    let seen = link.changes();
    Ok(link.try_call(handler, content)?.map(|call| Begun { call, seen }))
}

/// Sends the request of a call once there is a credit.
pub(super) async fn begin_later<'l>(
    link: &'l Arc<Link>,
    handler: u16,
    content: Content<'_>,
    deadline: &mut Deadline<'l>,
) -> Result<Begun, SendError> {
    loop {
        let credit = credit_for_call(link, deadline).await?;
        let seen = link.changes();
        if let Some(call) = credit.send_call(handler, content)? {
            return Ok(Begun { call, seen });
        }
    }
}

/// The index of a handler, if the program has chosen it, and its name.
pub(super) type Handler = (Option<u16>, &'static str);

/// Returns the handler of a kind of message, for errors.
#[cold]
pub(super) fn called<K: Kind>(kind: K) -> Handler {
    (kind.index(), kind.name())
}

/// Returns the error of a call whose reply is no answer.
#[cold]
pub(super) fn failed(link: &Arc<Link>, (index, name): Handler, failure: Failure) -> CallError {
    let call = Called::new(link.peer_text(), index, name);
    match failure {
        Failure::Handler(text) => CallError::Failed { call, text },
        Failure::Other => CallError::NoAnswer { call },
    }
}

/// Returns the error of a call that was not sent.
#[cold]
pub(super) fn not_sent(link: &Arc<Link>, (index, name): Handler, why: SendError) -> CallError {
    let call = Called::new(link.peer_text(), index, name);
    match why {
        SendError::NoCredit { within, credits, .. } => {
            let waited_for = WaitedFor::Credit(credits);
            CallError::Deadline { call, within, waited_for }
        }
        why => CallError::NotSent { call, why },
    }
}

/// Returns the error of a call that was sent and has a reason instead of an answer.
#[cold]
pub(super) fn undelivered(
    link: &Arc<Link>,
    (index, name): Handler,
    why: Undeliverable,
) -> CallError {
    let call = Called::new(link.peer_text(), index, name);
    match link.ending() {
        Some(ending) if why == Undeliverable::PeerGone => CallError::PeerGone { call, ending },
        _ => CallError::Undeliverable { call, why },
    }
}

/// Returns the error of a call that was sent and whose time is over.
#[cold]
pub(super) fn too_late(
    link: &Arc<Link>,
    (index, name): Handler,
    deadline: &Deadline<'_>,
) -> CallError {
    let call = Called::new(link.peer_text(), index, name);
    CallError::Deadline { call, within: deadline.within(), waited_for: WaitedFor::Answer }
}
