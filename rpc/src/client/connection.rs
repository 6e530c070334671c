//! A connection of a client to its server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use doorbell_am::{Endpoint, Name, Peer, SendError};
use tokio::time::Instant;

use super::calls::{Answer, Calls};
use crate::message::{Body, Pieces, Response};
use crate::status::{Code, Status};
use crate::stream::{Key, pump};
use crate::wire::{self, CALL, CANCEL, CallHead, HELLO, Hello, VERSION, WELCOME, Welcome};

/// A connection over which calls go, and the session that the server has for the client.
#[derive(Debug)]
pub struct Connection {
    peer: Peer,
    /// The session's number, by which the server knows which calls have begun.
    pub session: u64,
    /// The number of the server, which is another one when it has started anew.
    pub server: u64,
    /// The longest body that the server takes.
    pub longest: u64,
    broken: AtomicBool,
}

/// How a call that has no answer ended.
pub enum Lost {
    /// The request was never sent.
    Unsent(Status),
    /// The connection ended after the request was sent: whether it was handled is not known.
    Unknown(Status),
    /// The call is over.
    Over(Status),
}

impl Connection {
    /// Connects, and opens a session or goes on with the one that the client had.
    pub async fn open(
        endpoint: &Endpoint,
        name: &Name,
        client: u64,
        before: u64,
    ) -> Result<Arc<Self>, Status> {
        let peer = endpoint.connect(name).await.map_err(|why| {
            Status::unavailable(format!("connecting to {name}: {why}")).with_source(why)
        })?;
        let hello = Hello { version: VERSION, client, session: before };
        let reply = peer.call(HELLO, hello.words()).await;
        let reply = reply.map_err(|why| {
            Status::unavailable(format!("greeting {name}: {why}")).with_source(why)
        })?;
        let words = reply.arguments(WELCOME).map_err(|why| {
            Status::unavailable(format!("{name} is no RPC server: {why}")).with_source(why)
        })?;
        let Welcome { version, session, server, longest } = Welcome::from_words(words);
        if version != VERSION {
            return Err(Status::failed_precondition(format!(
                "{name} speaks version {version} of Doorbell's RPC, and this client version {VERSION}: \
                 build both from the same version"
            )));
        }
        if session == 0 {
            return Err(Status::resource_exhausted(format!(
                "{name} has as many clients as it knows at a time: raise its limit of sessions"
            )));
        }
        let broken = AtomicBool::new(false);
        Ok(Arc::new(Self { peer, session, server, longest, broken }))
    }

    /// Whether calls may go over the connection.
    pub fn is_up(&self) -> bool {
        !self.broken.load(Ordering::Relaxed) && self.peer.ending().is_none()
    }

    /// Sends a call, with the stream of its request behind it if there is one, and waits for its answer
    /// until a deadline. A call that is dropped meanwhile, or whose deadline is over, is given up, and
    /// the server told.
    pub async fn call(
        &self,
        calls: &Calls,
        head: CallHead,
        (payload, pieces): (&[u8], &mut Option<Pieces>),
        deadline: Option<Instant>,
    ) -> Result<Answer, Lost> {
        let key = (head.session, head.call);
        let answered = calls.expect(key, self.peer.clone());
        self.send(head, payload, deadline).await.map_err(|why| self.unsent(why))?;
        let mut given_up = GivenUp { connection: self, calls, key, armed: true };
        if let Some(pieces) = pieces.take() {
            let window = calls.streams.open_outgoing(key, &self.peer);
            let (streams, peer) = (calls.streams.clone(), self.peer.clone());
            self.peer.runtime().spawn(pump(streams, key, peer, window, pieces));
        }
        let outcome = match deadline {
            None => Ok(answered.await),
            Some(deadline) => tokio::time::timeout_at(deadline, answered).await,
        };
        given_up.armed = outcome.is_err();
        outcome.unwrap_or_else(|_| {
            Err(Lost::Over(Status::deadline_exceeded(
                "the server has not answered before the call's time was over",
            )))
        })
    }

    /// Sends a call when there is a credit for it.
    async fn send(
        &self,
        head: CallHead,
        payload: &[u8],
        deadline: Option<Instant>,
    ) -> Result<(), SendError> {
        if let Some(credit) = self.peer.try_credit()? {
            return credit.request_with(CALL, head.words(), payload);
        }
        let peer = match deadline {
            None => self.peer.clone(),
            Some(deadline) => self.peer.within(deadline.saturating_duration_since(Instant::now())),
        };
        peer.credit().await?.request_with(CALL, head.words(), payload)
    }

    /// What an error of sending says of the call.
    #[cold]
    fn unsent(&self, why: SendError) -> Lost {
        let text = why.to_string();
        match why {
            SendError::Payload { .. } => {
                Lost::Over(Status::resource_exhausted(text).with_source(why))
            }
            SendError::NoCredit { .. } => {
                Lost::Over(Status::deadline_exceeded(text).with_source(why))
            }
            _ => {
                self.broken.store(true, Ordering::Relaxed);
                Lost::Unsent(Status::unavailable(text).with_source(why))
            }
        }
    }

    /// Tells the server that nobody waits for a call any more.
    fn cancel(&self, (session, call): Key) {
        let words = [session, call];
        match self.peer.try_credit() {
            Ok(Some(credit)) => _ = credit.request(CANCEL, words),
            Ok(None) => {
                let peer = self.peer.within(Duration::from_secs(1));
                self.peer.runtime().spawn(async move { peer.request(CANCEL, words).await });
            }
            // The server knows by itself of calls whose clients have gone.
            Err(_) => {}
        }
    }
}

/// Tells the server when a call is given up that was sent.
struct GivenUp<'c> {
    connection: &'c Connection,
    calls: &'c Calls,
    key: Key,
    armed: bool,
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.calls.streams.end(self.key, &Status::cancelled("the call was given up"));
            self.connection.cancel(self.key);
        }
    }
}

/// The response that an answer carries.
///
/// # Errors
/// The status that the server has answered with, or that of an answer that can't be read.
pub fn response(answer: Answer) -> Result<Response<Body>, Status> {
    let malformed = |why: &dyn std::fmt::Display| {
        Status::internal(format!("the server's answer can't be read: {why}"))
    };
    let Answer { flags, payload, stream } = answer;
    if flags.code != Code::Ok.number() {
        let message = String::from_utf8_lossy(&payload);
        return Err(Status::new(Code::from_number(flags.code), message));
    }
    let (metadata, body) = wire::split(flags.metadata, payload).map_err(|why| malformed(&why))?;
    Ok(Response::with_metadata(metadata, stream.unwrap_or(Body::Whole(body))))
}
