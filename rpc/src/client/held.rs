//! The stream of a response, which holds the permit of its call and ends with the call's deadline.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use tokio::time::{Instant, Sleep};

use crate::message::Pieces;
use crate::status::Status;

/// The pieces of a response. The call's permit comes back when the pieces have ended, or are dropped.
pub struct Held {
    pieces: Option<Pieces>,
    deadline: Option<Pin<Box<Sleep>>>,
    gives_back: Option<Box<dyn FnOnce() + Send>>,
}

impl Held {
    /// Pieces, until a deadline, that hold a permit which was
    /// [forgotten](tokio::sync::SemaphorePermit::forget) and which `gives_back` gives back.
    pub fn new(
        pieces: Pieces,
        deadline: Option<Instant>,
        gives_back: impl FnOnce() + Send + 'static,
    ) -> Self {
        let deadline = deadline.map(|deadline| Box::pin(tokio::time::sleep_until(deadline)));
        Self { pieces: Some(pieces), deadline, gives_back: Some(Box::new(gives_back)) }
    }
}

impl Held {
    /// Lets go of the call: the permit comes back, and the stream of the request ends if the server
    /// has not read that to its end.
    fn end(&mut self) {
        // The stream goes first, which may be told of with the call's permit.
        self.pieces = None;
        self.deadline = None;
        if let Some(give_back) = self.gives_back.take() {
            give_back();
        }
    }
}

impl Stream for Held {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(pieces) = &mut this.pieces else { return Poll::Ready(None) };
        if let Poll::Ready(piece) = pieces.as_mut().poll_next(context) {
            // The call is over, however long the program keeps its stream.
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

impl Drop for Held {
    fn drop(&mut self) {
        self.end();
    }
}
