//! The stream of a response, which holds the permit of its call and ends with the call's deadline.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use tokio::time::Instant;

use super::Session;
use super::given_up::GivenUp;
use crate::alarm::Alarm;
use crate::message::Pieces;
use crate::status::Status;

/// The pieces of a response, with what their call holds until they have ended or are dropped.
pub struct HeldStream {
    pieces: Option<Pieces>,
    deadline: Option<Pin<Box<Alarm>>>,
    /// The end of the request's stream, and the session that gets the call's permit back.
    call: Option<(GivenUp, Arc<Session>)>,
}

impl HeldStream {
    /// Wraps the pieces of a response that must end by a deadline. The permit of the call must have
    /// been [forgotten](super::permits::Permit::forget).
    pub fn new(
        pieces: Pieces,
        deadline: Option<Instant>,
        given_up: GivenUp,
        session: Arc<Session>,
    ) -> Self {
        let deadline = deadline.map(|deadline| Box::pin(Alarm::at(deadline)));
        Self { pieces: Some(pieces), deadline, call: Some((given_up, session)) }
    }

    /// Ends the call of the response: drops the pieces, ends a request stream that the server has
    /// not read to its end, and gives the permit back.
    fn end(&mut self) {
        self.pieces = None;
        self.deadline = None;
        if let Some((given_up, session)) = self.call.take() {
            // Whoever gets the permit finds the call over.
            given_up.ends_sending();
            session.permits.give_back();
        }
    }
}

impl Stream for HeldStream {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(pieces) = &mut this.pieces else { return Poll::Ready(None) };
        if let Poll::Ready(piece) = pieces.as_mut().poll_next(context) {
            // The call is over now, even if the program keeps its stream for longer.
            if !matches!(piece, Some(Ok(_))) {
                this.end();
            }
            return Poll::Ready(piece);
        }
        match this.deadline.as_mut().map(|deadline| deadline.as_mut().poll(context)) {
            Some(Poll::Ready(())) => {
                this.end();
                let late = "the stream had not ended when the call's time was over";
                Poll::Ready(Some(Err(Status::deadline_exceeded(late))))
            }
            _ => Poll::Pending,
        }
    }
}

impl Drop for HeldStream {
    fn drop(&mut self) {
        self.end();
    }
}
