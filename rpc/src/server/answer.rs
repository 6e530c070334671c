//! Answers: encoding what a handler returned, and sending it to the client.

use std::sync::Arc;

use bytes::Bytes;
use doorbell_am as am;

use super::slot::Slot;
use super::state::Core;
use crate::bulk::Offered;
use crate::message::{Body, Pieces};
use crate::meters;
use crate::router::Answered;
use crate::status::{Code, Status};
use crate::stream::pump;
use crate::wire::{ANSWER, CallHead, Content, Flags, RESPONSE};

/// The longest status message that is sent to a client, in bytes. Longer messages are cut off.
const LONGEST_MESSAGE: usize = 1024;

/// An answer as it is sent: the content of its message, and a stream of pieces if its body is one.
pub struct Encoded {
    content: Content,
    /// The pieces of the body, if the body is a stream.
    pieces: Option<Pieces>,
}

impl Encoded {
    /// Encodes what a handler returned, for a client that receives messages of at most `most`
    /// bytes.
    pub fn of(answered: Answered, most: usize) -> Self {
        let (metadata, body) = match answered {
            Ok(response) => response.into_parts(),
            Err(status) => return Self::error(&status),
        };
        let (body, pieces) = match body {
            Body::Whole(bytes) => (bytes, None),
            Body::Stream(pieces) => (Bytes::new(), Some(pieces)),
        };
        match Content::new(&metadata, body, most) {
            Err(status) => Self::error(&status),
            Ok(mut content) => {
                content.flags.streams = pieces.is_some();
                Self { content, pieces }
            }
        }
    }

    /// Encodes an error as an answer, which tells whether the handler is known not to have run.
    #[cold]
    pub fn error(status: &Status) -> Self {
        let (code, not_run) = (status.error_code().number(), status.has_not_run());
        let flags = Flags { code, not_run, ..Flags::default() };
        let message = status.message();
        let message = message[..message.floor_char_boundary(LONGEST_MESSAGE)].to_owned();
        Self { content: Content { flags, payload: message.into(), long: None }, pieces: None }
    }

    /// Encodes the status of a call whose handler has not begun and will not. A call that may have
    /// begun before, over another connection, is no such call.
    #[cold]
    pub fn refusal(status: Status) -> Self {
        let has_begun = status.code() == Code::Aborted;
        Self::error(&if has_begun { status.may_have_run() } else { status.not_run() })
    }

    /// Has an error tell whether the server refuses the call since it is shutting down.
    #[cold]
    pub fn leaving(mut self, leaves: bool) -> Self {
        self.content.flags.leaves = leaves;
        self
    }

    /// Whether a stream or a long body follows the answer's message.
    pub fn is_followed(&self) -> bool {
        self.content.long.is_some() || self.pieces.is_some()
    }

    /// Answers a request in the handler that has received it. The answer must fit one message.
    pub fn answer_here(&self, request: am::Request<'_>, call: u64) {
        let words = [call, self.content.flags.pack()];
        note(request.reply_with(ANSWER, words, &self.content.payload));
    }

    /// Answers a request that was retained. The answer must fit one message.
    pub fn answer_kept(self, kept: am::Kept, call: u64) {
        let words = [call, self.content.flags.pack()];
        note(kept.reply_with(ANSWER, words, &self.content.payload));
    }
}

/// The answer to a call that was refused, so that its handler does not run.
#[cold]
pub fn refused(status: Status) -> Encoded {
    meters::refused(status.code());
    Encoded::refusal(status)
}

/// How the answer of a call travels whose handler runs as a task.
pub enum ReplyPath {
    /// By the reply to the request, which was retained.
    Reply(am::Kept),
    /// By a message of its own, because the request was replied to when the call was accepted.
    Message,
}

impl ReplyPath {
    /// Tells the client that its call runs, unless that was told before, so that the client gets
    /// back the credit with which it sent the call.
    pub fn accept(self, call: u64) -> Self {
        if let Self::Reply(kept) = self {
            let flags = Flags { accepted: true, ..Flags::default() };
            kept.reply(ANSWER, [call, flags.pack()]);
        }
        Self::Message
    }

    /// Sends an answer, and the stream or the long body that follows it, to its end.
    ///
    /// The slot keeps the call's place among the running handlers while the answer waits for a
    /// credit, so that no more answers wait than handlers may run, and while something follows the
    /// answer. A server that shuts down waits until all of that is sent.
    pub async fn answer(
        self,
        core: &Arc<Core>,
        peer: &am::Peer,
        head: CallHead,
        answer: Encoded,
        slot: Slot,
    ) {
        let is_followed = answer.is_followed();
        let Encoded { content, pieces } = answer;
        let key = (head.session, head.call);
        // The entries are made before the answer is sent, because the client may ask for the body,
        // or stop the stream, as soon as it has the answer.
        let offered = content.long.map(|body| Offered::new(&core.transfers, key, peer, body));
        let stream = pieces.map(|pieces| (core.streams.open_outgoing(key, peer), pieces));
        let shape = content.flags.pack();
        let mut slot = slot;
        // A client that has its answer may call again at once, so the place is given back first.
        let mut gives_back = || {
            if !is_followed {
                slot.give_back();
            }
        };
        let sent = match self {
            Self::Reply(kept) => {
                gives_back();
                kept.reply_with(ANSWER, [head.call, shape], &content.payload)
            }
            Self::Message => match peer.credit().await {
                Ok(credit) => {
                    gives_back();
                    let words = [head.session, head.call, shape];
                    credit.request_with(RESPONSE, words, &content.payload)
                }
                Err(why) => Err(why),
            },
        };
        if sent.is_err() {
            note(sent);
            return core.streams.close_outgoing(key, peer);
        }
        if let Some(offered) = offered
            && let Err(why) = offered.write(core.bulk.of(head.session)).await
        {
            tracing::debug!(%why, "the body of an answer was not sent");
        }
        if let Some((window, pieces)) = stream {
            pump(core.streams.clone(), key, peer.clone(), window, pieces).await;
        }
    }
}

/// Traces why an answer could not be sent, if it could not: the client has gone, or accepts no
/// message of that length.
fn note(sent: Result<(), am::SendError>) {
    if let Err(why) = sent {
        tracing::debug!(%why, "an answer was not sent");
    }
}
