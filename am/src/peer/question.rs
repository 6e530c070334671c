//! Questions between endpoints, beside the messages of programs.

use std::sync::Arc;
use std::time::Duration;

use super::Peer;
use super::call::{begin, begin_later, not_sent, too_late, undelivered};
use super::deadline::Deadline;
use crate::error::CallError;
use crate::kinds::Reply;
use crate::link::Link;
use crate::wire::{Ask, Content, SYSTEM};

impl Peer {
    /// Waits until the peer has handled all that was sent to it before, or has gone. For layers of
    /// this workspace that end, and whose last messages are to arrive.
    #[doc(hidden)]
    pub async fn settled(&self) {
        settle(&self.link).await;
    }
}

/// Asks the peer's endpoint something, and waits for the answer as long as the link stands.
pub(crate) async fn ask(
    link: &Arc<Link>,
    words: &[u64],
    payload: &[u8],
) -> Result<Reply, CallError> {
    ask_within(link, words, payload, None).await
}

/// Asks the peer's endpoint something, and waits for the answer until the time is over, if there is
/// a bound, or the link is.
pub(crate) async fn ask_within(
    link: &Arc<Link>,
    words: &[u64],
    payload: &[u8],
    within: Option<Duration>,
) -> Result<Reply, CallError> {
    let which = (None, "a question between endpoints");
    let content = Content { words, payload };
    let (mut deadline, mut answer) = (Deadline::of(within), None);
    let begun = match begin(link, SYSTEM, content) {
        Ok(Some(begun)) => Ok(begun),
        Ok(None) => begin_later(link, SYSTEM, content, &mut deadline).await,
        Err(why) => Err(why),
    };
    let begun = begun.map_err(|why| not_sent(link, which, why))?;
    begun.answered(link, &mut answer, &mut deadline).await;
    let Some(answer) = answer else { return Err(too_late(link, which, &deadline)) };
    answer.map_err(|why| undelivered(link, which, why))
}

/// Waits until the peer has handled what was sent to it by a link, which this side is about to end.
///
/// # Errors
/// When the connection ends before the peer has said so, be it by its answer or by its last words.
pub(crate) async fn settle_last(link: &Arc<Link>) -> Result<(), CallError> {
    let mut settled = Ok(());
    for link in link.lanes().iter().chain([link]) {
        if link.is_taken_by_closing() {
            continue;
        }
        link.begin_closing();
        if let Err(why) = ask(link, &[Ask::Close as u64], &[]).await
            && !link.is_taken_at_end()
        {
            settled = Err(why);
        }
    }
    settled
}

/// Waits until the peer has handled what was sent to it by a link, or has gone. The peer answers a
/// question in its turn, behind what was sent before.
pub(crate) async fn settle(link: &Arc<Link>) {
    for link in link.lanes().iter().chain([link]) {
        // An empty listing is like any other, so the answer says only that its turn has come.
        let _ = ask(link, &[Ask::Compare as u64], &[]).await;
    }
}
