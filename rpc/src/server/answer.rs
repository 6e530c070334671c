//! Answers: from what handlers return to messages.

use std::sync::Arc;

use doorbell_am as am;

use super::core::Core;
use super::router::Answered;
use crate::message::{Body, Pieces};
use crate::status::Status;
use crate::stream::pump;
use crate::wire::{ANSWER, CallHead, Content, Flags, RESPONSE};

/// The most bytes of a status's message that travel.
const LONGEST_MESSAGE: usize = 1024;

/// An answer as it is sent: flags and a payload.
pub struct Encoded {
    flags: Flags,
    content: Content,
}

impl Encoded {
    /// What a handler has returned, and the stream that follows if the body is one.
    pub fn of(answered: Answered) -> (Self, Option<Pieces>) {
        let response = match answered {
            Ok(response) => response,
            Err(status) => return (Self::error(&status), None),
        };
        let metadata = response.metadata().clone();
        let (body, pieces) = match response.into_inner() {
            Body::Whole(bytes) => (bytes, None),
            Body::Stream(pieces) => (bytes::Bytes::new(), Some(pieces)),
        };
        match Content::new(&metadata, body) {
            Err(status) => (Self::error(&status), None),
            Ok(content) => {
                let (metadata, streams) = (content.metadata, pieces.is_some());
                let flags = Flags { metadata, streams, ..Flags::default() };
                (Self { flags, content }, pieces)
            }
        }
    }

    /// An error.
    #[cold]
    pub fn error(status: &Status) -> Self {
        let flags = Flags { code: status.code().number(), ..Flags::default() };
        let message = status.message();
        let message = message[..message.floor_char_boundary(LONGEST_MESSAGE)].to_owned();
        Self { flags, content: Content { metadata: 0, bytes: message.into() } }
    }

    fn payload(&self) -> &[u8] {
        &self.content.bytes
    }
}

/// Answers a request where it was received.
pub fn answer_here(request: am::Request<'_>, call: u64, answer: &Encoded) {
    let words = [call, answer.flags.pack()];
    if let Err(why) = request.reply_with(ANSWER, words, answer.payload()) {
        tracing::debug!(%why, "an answer was not sent");
    }
}

/// How a call is answered whose handler runs as a task.
pub enum Way {
    /// By a reply to the request.
    Reply(am::Kept),
    /// By a message of its own, since the request was replied to when it was accepted.
    Message,
}

impl Way {
    /// Replies that the call runs, unless that was said before. So the client gets the credit back with
    /// which it has sent the call.
    pub fn accept(self, call: u64) -> Self {
        if let Self::Reply(kept) = self {
            let flags = Flags { accepted: true, ..Flags::default() };
            kept.reply(ANSWER, [call, flags.pack()]);
        }
        Self::Message
    }

    /// Sends an answer, and the stream behind it to its end.
    pub async fn answer(
        self,
        core: &Arc<Core>,
        peer: &am::Peer,
        head: CallHead,
        answered: Answered,
    ) {
        let (answer, pieces) = Encoded::of(answered);
        let key = (head.session, head.call);
        // The client may ask for the stream to stop as soon as it has the answer.
        let stream = pieces.map(|pieces| (core.streams.open_outgoing(key, peer), pieces));
        let shape = answer.flags.pack();
        let sent = match self {
            Self::Reply(kept) => kept.reply_with(ANSWER, [head.call, shape], answer.payload()),
            Self::Message => match peer.credit().await {
                Ok(credit) => {
                    let words = [head.session, head.call, shape];
                    credit.request_with(RESPONSE, words, answer.payload())
                }
                Err(why) => Err(why),
            },
        };
        if let Err(why) = &sent {
            tracing::debug!(%why, "an answer was not sent");
        }
        if let Some((window, pieces)) = stream {
            match sent {
                Ok(()) => pump(core.streams.clone(), key, peer.clone(), window, pieces).await,
                Err(_) => core.streams.close_outgoing(key),
            }
        }
    }
}
