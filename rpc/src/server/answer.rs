//! Answers, from what handlers return to Active Messages.

use doorbell_am as am;

use super::router::Answered;
use crate::message::{Body, Response};
use crate::metadata::Metadata;
use crate::status::{Code, Status};
use crate::wire::{ANSWER, Content, Flags};

/// The most bytes of a status's message that travel.
const LONGEST_MESSAGE: usize = 1024;

/// A request that can be answered: at once, or later.
pub trait Answers: Sized {
    /// Answers a call with flags and a payload. Returns why the payload was not sent, if it was not.
    fn send(self, call: u64, shape: u64, payload: &[u8]) -> Result<(), am::SendError>;

    /// Answers with what a handler has returned.
    fn answers(self, call: u64, answered: Answered) {
        let sent = match answered.and_then(content) {
            Ok(content) => {
                let flags = Flags { metadata: content.metadata, ..Flags::default() };
                self.send(call, flags.pack(), &content.bytes)
            }
            Err(status) => self.fails(call, &status),
        };
        if let Err(why) = sent {
            tracing::debug!(%why, "an answer was not sent");
        }
    }

    /// Answers with an error.
    fn fails(self, call: u64, status: &Status) -> Result<(), am::SendError> {
        let flags = Flags { code: status.code().number(), ..Flags::default() };
        let message = status.message();
        let end = message.floor_char_boundary(LONGEST_MESSAGE);
        self.send(call, flags.pack(), &message.as_bytes()[..end])
    }
}

impl Answers for am::Request<'_> {
    fn send(self, call: u64, shape: u64, payload: &[u8]) -> Result<(), am::SendError> {
        self.reply_with(ANSWER, [call, shape], payload)
    }
}

impl Answers for am::Kept {
    fn send(self, call: u64, shape: u64, payload: &[u8]) -> Result<(), am::SendError> {
        self.reply_with(ANSWER, [call, shape], payload)
    }
}

/// Refuses a request at once.
#[cold]
pub fn refuse(request: am::Request<'_>, call: u64, status: &Status) {
    debug_assert_ne!(status.code(), Code::Ok, "a refusal is an error");
    if let Err(why) = request.fails(call, status) {
        tracing::debug!(%why, "a refusal was not sent");
    }
}

fn content(response: Response<Body>) -> Result<Content, Status> {
    let metadata: Metadata = response.metadata().clone();
    Content::new(&metadata, response.into_inner().whole()?)
}
