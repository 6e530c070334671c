//! Short calls, which most calls are: their bodies are whole and fit messages, and they find a
//! permit, a connection and a credit at once.
//!
//! A [`Short`] call takes the steps of [`call`](super::call) without a future that waits for each,
//! so it needs no memory beside its place in the table of calls. If it ends with anything but a
//! whole answer, it goes on as any other call does.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use doorbell_verbs::floor::watch_over;

use super::Session;
use super::call::{remaining, unreadable};
use super::calls::{Answer, Outcome};
use super::connection::Connection;
use super::permits::Permit;
use crate::alarm::Alarm;
use crate::message::{Body, Request, Response};
use crate::status::{Code, Status};
use crate::wire::{self, CALL, CallHead, CallKey, Content, Flags};

/// A call that was sent, and waits for its answer. Dropping it gives the call up.
pub struct Short {
    session: Arc<Session>,
    request: Request<Body>,
    key: CallKey,
    alarm: Option<Pin<Box<Alarm>>>,
    /// Whether the call has ended, or goes on elsewhere.
    is_over: bool,
}

/// How the wait for an answer has ended.
pub enum End {
    Ended(Result<Response<Body>, Status>),
    /// The call goes on: a stream or a long body follows, or the call is sent again.
    GoesOn(Going),
}

pub type Going = Pin<Box<dyn Future<Output = Result<Response<Body>, Status>> + Send>>;

impl Short {
    /// Sends a request, if it finds all that it needs.
    ///
    /// # Errors
    /// The request, of which nothing was sent.
    #[expect(clippy::result_large_err, reason = "the request is moved on")]
    pub fn send(
        session: Arc<Session>,
        request: Request<Body>,
    ) -> Result<Self, (Arc<Session>, Request<Body>)> {
        match session.send_at_once(&request) {
            Some(key) => Ok(Self { session, request, key, alarm: None, is_over: false }),
            None => Err((session, request)),
        }
    }

    /// Waits for the end, until the request's deadline.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<End> {
        if let Poll::Ready((outcome, connection)) = self.session.calls.poll(self.key.1, context) {
            return Poll::Ready(self.ends(outcome, connection));
        }
        let Some(deadline) = self.request.deadline() else { return Poll::Pending };
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(Alarm::at(deadline)));
        std::task::ready!(alarm.as_mut().poll(context));
        self.give_up();
        Poll::Ready(End::Ended(Err(self.session.unanswered())))
    }

    fn ends(&mut self, outcome: Outcome, connection: Arc<Connection>) -> End {
        self.is_over = true;
        match outcome {
            Ok(Answer { flags, payload, stream: None }) if is_whole(flags) => {
                self.session.permits.give_back();
                End::Ended(whole(flags, payload))
            }
            outcome => End::GoesOn(self.goes_on(outcome, connection)),
        }
    }

    #[cold]
    fn goes_on(&mut self, outcome: Outcome, connection: Arc<Connection>) -> Going {
        let (session, key) = (self.session.clone(), self.key);
        let request = std::mem::replace(&mut self.request, Request::new(Body::empty()));
        let permit = Permit::of(&session);
        let given_up = session.given_up(&connection, key);
        Box::pin(async move {
            session.goes_on(request, (connection, key, ready(outcome), given_up), permit).await
        })
    }

    /// Gives the call up: the server is told, and another call may have the permit.
    #[cold]
    fn give_up(&mut self) {
        self.is_over = true;
        if let Some(connection) = self.session.calls.leave(self.key.1) {
            drop(self.session.given_up(&connection, self.key));
        }
        self.session.permits.give_back();
    }
}

impl Drop for Short {
    fn drop(&mut self) {
        if !self.is_over {
            self.give_up();
        }
    }
}

/// Whether an answer is a response that has come wholly.
fn is_whole(flags: Flags) -> bool {
    let Flags { code, streams, long, leaves, .. } = flags;
    code == Code::Ok.number() && !(streams || long || leaves)
}

fn whole(flags: Flags, payload: Bytes) -> Result<Response<Body>, Status> {
    let received = wire::split(flags, payload).map_err(unreadable)?;
    Ok(Response::with_metadata(received.metadata, Body::Whole(received.body)))
}

impl Session {
    /// Sends a request whose body is whole and short, if there are a connection, a permit and a
    /// credit now. The permit is the call's until somebody gives it back.
    fn send_at_once(&self, request: &Request<Body>) -> Option<CallKey> {
        let Body::Whole(body) = request.get_ref() else { return None };
        let connection = self.connector.latest()?;
        let (peer, metadata) = (&connection.peer, request.metadata());
        let encoded;
        let (flags, payload) = if metadata.is_empty() && body.len() <= peer.longest_payload() {
            (Flags::default(), body)
        } else {
            encoded = Content::new(metadata, body.clone(), peer.longest_payload()).ok()?;
            (encoded.flags, &encoded.payload)
        };
        let (method, timeout) = (request.method(), remaining(request.deadline()).ok()?);
        let mut head = CallHead {
            session: connection.welcome.session,
            call: 0,
            method: method.number(),
            schema: method.schema_number(),
            timeout,
            flags,
        };
        if flags.long || !self.permits.try_take() {
            return None;
        }
        let number = self.numbers.try_send(|number| {
            head.call = number;
            // The answer may come as soon as the call is sent.
            self.calls.enter(number, connection.clone());
            let sent = peer.try_request_with(CALL, &head.words(), payload);
            let is_sent = sent.unwrap_or(false);
            if !is_sent {
                self.calls.leave(number);
            }
            is_sent
        });
        let Some(number) = number else {
            self.permits.give_back();
            return None;
        };
        watch_over(&self.calls, peer.nic(), peer.runtime());
        Some((head.session, number))
    }
}
