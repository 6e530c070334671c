//! Answers: from what handlers return to messages.

use std::sync::Arc;

use bytes::Bytes;
use doorbell_am as am;

use super::router::Answered;
use super::running::Room;
use super::state::Core;
use crate::bulk::Offered;
use crate::message::{Body, Pieces};
use crate::status::Status;
use crate::stream::pump;
use crate::wire::{ANSWER, CallHead, Content, Flags, RESPONSE};

/// The most bytes of a status's message that travel.
const LONGEST_MESSAGE: usize = 1024;

/// An answer as it is sent.
pub struct Encoded {
    content: Content,
    /// The stream that follows, if the body is one.
    pieces: Option<Pieces>,
}

impl Encoded {
    /// What a handler has returned, for a client that takes so long messages.
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

    /// An error.
    #[cold]
    pub fn error(status: &Status) -> Self {
        let flags = Flags { code: status.error_code().number(), ..Flags::default() };
        let message = status.message();
        let message = message[..message.floor_char_boundary(LONGEST_MESSAGE)].to_owned();
        Self { content: Content { flags, payload: message.into(), long: None }, pieces: None }
    }

    /// Whether more follows than a message.
    pub fn is_followed(&self) -> bool {
        self.content.long.is_some() || self.pieces.is_some()
    }

    /// Answers a request where it was received. Nothing may follow.
    pub fn answer_here(&self, request: am::Request<'_>, call: u64) {
        let words = [call, self.content.flags.pack()];
        note(request.reply_with(ANSWER, words, &self.content.payload));
    }

    /// Answers a request that was kept. Nothing may follow.
    pub fn answer_kept(self, kept: am::Kept, call: u64) {
        let words = [call, self.content.flags.pack()];
        note(kept.reply_with(ANSWER, words, &self.content.payload));
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
    /// Replies that the call runs, unless that was said before. So the client gets the credit back
    /// with which it has sent the call.
    pub fn accept(self, call: u64) -> Self {
        if let Self::Reply(kept) = self {
            let flags = Flags { accepted: true, ..Flags::default() };
            kept.reply(ANSWER, [call, flags.pack()]);
        }
        Self::Message
    }

    /// Sends an answer, and what follows it to its end. The place among the handlers that run is
    /// kept while a credit for the answer is waited for, so that no more answers wait than handlers
    /// may run, and while something follows. A server that shuts down waits for all of it.
    pub async fn answer(
        self,
        core: &Arc<Core>,
        peer: &am::Peer,
        head: CallHead,
        answer: Encoded,
        room: Room,
    ) {
        let is_followed = answer.is_followed();
        let Encoded { content, pieces } = answer;
        let key = (head.session, head.call);
        // The client may ask for what follows, or for it to stop, as soon as it has the answer.
        let offered = content.long.map(|body| Offered::new(&core.transfers, key, peer, body));
        let stream = pieces.map(|pieces| (core.streams.open_outgoing(key, peer), pieces));
        let shape = content.flags.pack();
        let mut room = room;
        // A client that has its answer may call again at once.
        let mut gives_back = || {
            if !is_followed {
                room.give_back();
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
            && let Err(why) = offered.write(core.lines.of(head.session)).await
        {
            tracing::debug!(%why, "the body of an answer was not sent");
        }
        if let Some((window, pieces)) = stream {
            pump(core.streams.clone(), key, peer.clone(), window, pieces).await;
        }
    }
}

/// Traces why an answer was not sent, if it was not: its caller has gone, or does not take as much.
fn note(sent: Result<(), am::SendError>) {
    if let Err(why) = sent {
        tracing::debug!(%why, "an answer was not sent");
    }
}
