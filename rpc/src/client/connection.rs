//! A connection of a client to its server: sending one call, with all that belongs to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use doorbell_am::{CallError, Endpoint, Name, Peer, SendError, Undeliverable};
use doorbell_verbs::ServiceId;
use futures_util::StreamExt;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::alive;
use super::calls::{Answer, Answered, Calls, Outcome};
use super::failure::Failure;
use super::stage::{Progress, Stage};
use crate::bulk::{BulkConnection, Offered};
use crate::message::{Body, Pieces, Response};
use crate::status::{Code, Status, chain};
use crate::stream::{Streams, pump};
use crate::wire::{
    self, CALL, CANCEL, CallHead, CallKey, Content, HELLO, Hello, LEFT, Received, VERSION, WELCOME,
    Welcome,
};

/// A connection over which calls are sent, and the session that the server has for this client.
#[derive(Debug)]
pub struct Connection {
    peer: Peer,
    /// The number of the session, by which the server knows which calls have begun.
    pub session: u64,
    /// The random number of the server. A server that was restarted has another one.
    pub server: u64,
    /// The longest request body that the server accepts, in bytes.
    pub longest: u64,
    /// The number of the service at which the server accepts bulk connections.
    bulk_service: u64,
    /// The bulk connection, once it was needed.
    bulk: Mutex<Option<Arc<BulkConnection>>>,
    endpoint: Endpoint,
    name: Name,
    /// Whether sending has failed, so that the next call needs another connection.
    broken: AtomicBool,
    /// Whether the server is shutting down, and is to be told when no call follows any more.
    is_left: AtomicBool,
}

/// How long the word that no call follows waits for a credit.
const LEFT_PATIENCE: Duration = Duration::from_secs(5);

/// The status of a client whose hello was not answered. An endpoint that has no handler for hellos
/// will not get one by asking again, so that failure is final.
#[cold]
fn ungreeted(name: &Name, why: CallError) -> Status {
    use Undeliverable::{Arguments, NoHandler};
    let text = chain(&why);
    match why {
        CallError::Undeliverable { why: NoHandler | Arguments, .. } => Status::failed_precondition(
            format!("{name} is an endpoint of Active Messages, but no RPC server: {text}"),
        ),
        _ => Status::unavailable(format!("greeting {name}: {text}")),
    }
}

impl Connection {
    /// Connects to a server, and opens a session or goes on with the session `before`. `client` is
    /// the number that the client has drawn at random. `left` is a connection whose server
    /// shuts down, and whose calls may still wait for answers.
    pub async fn open(
        endpoint: &Endpoint,
        name: &Name,
        client: u64,
        before: u64,
        left: Option<&Peer>,
    ) -> Result<Arc<Self>, Status> {
        let peer = endpoint
            .connect(name)
            .await
            .map_err(|why| Status::unavailable(format!("connecting to {name}: {}", chain(&why))))?;
        let hello = Hello { version: VERSION, client, session: before };
        let reply = peer.call(HELLO, hello.words()).await;
        let reply = reply.map_err(|why| ungreeted(name, why))?;
        let words = reply
            .arguments(WELCOME)
            .map_err(|why| Status::unavailable(format!("{name} is no RPC server: {why}")))?;
        let Welcome { version, session, server, longest, bulk_service } =
            Welcome::from_words(words);
        if version != VERSION {
            return Err(Status::failed_precondition(format!(
                "{name} speaks version {version} of Doorbell's RPC, and this client version {VERSION}: \
                 build both from the same version"
            )));
        }
        if session == Welcome::LEAVES {
            // A server that takes its time to end is asked again and again, and keeps no
            // connection of each time.
            if left != Some(&peer) {
                peer.runtime().clone().spawn(async move { peer.disconnect().await });
            }
            return Err(Status::unavailable(format!("{name} is shutting down")));
        }
        if session == 0 {
            return Err(Status::resource_exhausted(format!(
                "{name} has as many clients as it knows at a time: raise its limit of sessions"
            )));
        }
        Ok(Arc::new(Self {
            peer,
            session,
            server,
            longest,
            bulk_service,
            bulk: Mutex::default(),
            endpoint: endpoint.clone(),
            name: name.clone(),
            broken: AtomicBool::new(false),
            is_left: AtomicBool::new(false),
        }))
    }

    /// Whether calls may be sent over the connection.
    pub fn is_up(&self) -> bool {
        !self.broken.load(Ordering::Relaxed) && self.peer.ending().is_none()
    }

    /// Whether the connection is that to `peer`.
    pub fn is_to(&self, peer: &Peer) -> bool {
        self.peer == *peer
    }

    /// Notes that the server is shutting down, so that no further call may get this connection.
    /// Calls that have it are still answered, or refused. When the last of them drops its handle to
    /// the connection, the server is told that no call follows.
    pub fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }

    /// Prepares what a call needs before it is sent. For a body that is too long for a message,
    /// that is the bulk connection, which must be there by the deadline.
    ///
    /// # Errors
    /// When the server accepts no body of that length, or there is no bulk connection in time.
    pub async fn prepare(
        &self,
        content: &Content,
        deadline: Option<Instant>,
    ) -> Result<(), Failure> {
        let Some(body) = &content.long else { return Ok(()) };
        self.fits(body.len())?;
        let bulk = match deadline {
            None => self.bulk().await,
            Some(deadline) => {
                let bulk = tokio::time::timeout_at(deadline, self.bulk()).await;
                bulk.map_err(|_| Failure::Final(self.no_bulk_in_time().not_run()))?
            }
        };
        bulk.map(drop).map_err(|why| {
            // The server may have gone, or be another process by now, so the next attempt connects
            // anew.
            self.broken.store(true, Ordering::Relaxed);
            Failure::NotSent(why)
        })
    }

    #[cold]
    fn no_bulk_in_time(&self) -> Status {
        Status::deadline_exceeded(format!(
            "there was no connection to {} for bodies that are too long for messages before the call's \
             time was over",
            self.name
        ))
    }

    /// Sends a call that is [prepared](Self::prepare), with its stream or long body, and waits for
    /// the whole response, until a deadline. If the future is dropped or the deadline passes, the
    /// call is given up, and the server is told.
    pub async fn call(
        &self,
        calls: &Arc<Calls>,
        head: CallHead,
        content: &Content,
        pieces: &mut Option<Pieces>,
        deadline: Option<Instant>,
    ) -> Result<Response<Body>, Failure> {
        let key = (head.session, head.call);
        let answered = calls.expect(key, &self.peer);
        alive::watch_over(calls, &self.peer);
        let offers = |body| Offered::new(&calls.transfers, key, &self.peer, body);
        let offered = content.long.clone().map(offers);
        self.send(head, &content.payload, deadline).await.map_err(|why| self.unsent(why))?;
        let streams = calls.streams.clone();
        let mut given_up = GivenUp { peer: self.peer.clone(), streams, key, armed: true };
        if let Some(pieces) = pieces.take() {
            let window = calls.streams.open_outgoing(key, &self.peer);
            let (streams, peer) = (calls.streams.clone(), self.peer.clone());
            self.peer.runtime().spawn(pump(streams, key, peer, window, pieces));
        }
        let progress = Progress::new();
        let exchanged = async {
            let answer = match offered {
                None => answered.await?,
                // Large futures, which a call without a long body need not carry.
                Some(offered) => {
                    Box::pin(self.answer_to_long(answered, offered, &progress)).await?
                }
            };
            self.response(calls, key, answer, &progress).await.map_err(Failure::Final)
        };
        let mut exchanged = std::pin::pin!(exchanged);
        let outcome = match deadline {
            None => Ok(exchanged.as_mut().await),
            Some(deadline) => tokio::time::timeout_at(deadline, exchanged).await,
        };
        let Ok(answered) = outcome else {
            return Err(Failure::Final(progress.too_late()));
        };
        // A call that is over must send nothing more, whether or not the server has asked for that.
        given_up.armed = given_up.is_sending();
        let is_stream = |response: &Response<Body>| matches!(response.get_ref(), Body::Stream(_));
        match answered {
            Ok(response) if given_up.armed && is_stream(&response) => {
                Ok(response.map(|body| given_up.with(body)))
            }
            answered => answered,
        }
    }

    /// Waits for the answer to a call whose long body is written meanwhile. A server that does not
    /// want the body may answer before the body is written.
    async fn answer_to_long(
        &self,
        answered: Answered<'_>,
        offered: Offered,
        progress: &Progress,
    ) -> Outcome {
        let len = offered.len();
        progress.reaches(Stage::MemoryThere, len);
        let bulk = async {
            progress.reaches(Stage::Written, len);
            self.bulk().await
        };
        let mut answered = std::pin::pin!(answered);
        tokio::select! {
            biased;
            answer = &mut answered => return answer,
            written = offered.write(bulk) => written.map_err(Failure::OutcomeUnknown)?,
        }
        progress.reaches(Stage::Answer, 0);
        answered.await
    }

    /// Checks whether the server accepts a body of `len` bytes.
    fn fits(&self, len: usize) -> Result<(), Failure> {
        if len as u64 <= self.longest {
            return Ok(());
        }
        let why = format!(
            "the body has {len} bytes, and the server takes {} at the most: raise its `longest_body`, or \
             send a stream",
            self.longest
        );
        Err(Failure::Final(Status::resource_exhausted(why).not_run()))
    }

    /// The bulk connection to the server. It is made when it is first needed, and again when it has
    /// ended.
    async fn bulk(&self) -> Result<Arc<BulkConnection>, Status> {
        let mut bulk = self.bulk.lock().await;
        if let Some(bulk) = bulk.as_ref().filter(|bulk| bulk.is_up()) {
            return Ok(bulk.clone());
        }
        let (nic, address) = (self.endpoint.nic(), self.name.address());
        let made =
            BulkConnection::connect(nic, address, ServiceId(self.bulk_service), self.session)
                .await?;
        Ok(bulk.insert(Arc::new(made)).clone())
    }

    /// Makes the response that an answer carries, and receives the response's long body if one
    /// follows.
    ///
    /// # Errors
    /// The status that the server has answered with, or that of an answer that can't be read.
    async fn response(
        &self,
        calls: &Calls,
        key: CallKey,
        answer: Answer,
        progress: &Progress,
    ) -> Result<Response<Body>, Status> {
        let Answer { flags, payload, stream } = answer;
        if flags.code != Code::Ok.number() {
            let message = String::from_utf8_lossy(&payload);
            let status = Status::new(Code::from_number(flags.code), message);
            return Err(if flags.not_run { status.not_run() } else { status });
        }
        let Received { metadata, body, long } = wire::split(flags, payload)
            .map_err(|why| Status::internal(format!("the server's answer can't be read: {why}")))?;
        let body = match long {
            None => body,
            Some(len) => Box::pin(self.long_body(calls, key, len, progress)).await?,
        };
        Ok(Response::with_metadata(metadata, stream.unwrap_or(Body::Whole(body))))
    }

    /// Receives the body of a response that is too long for a message.
    async fn long_body(
        &self,
        calls: &Calls,
        key: CallKey,
        len: u64,
        progress: &Progress,
    ) -> Result<Bytes, Status> {
        let len = calls.transfers.check(len).map_err(|why| why.status("the response"))?;
        let bulk = self.bulk().await?;
        progress.reaches(Stage::MemoryHere, len);
        let memory = calls.share.lend(len).await.map_err(|why| why.status("the response"))?;
        progress.reaches(Stage::Received, len);
        calls.transfers.receive(key, &self.peer, &bulk, memory).await
    }

    /// Sends the request of a call, as soon as there is a credit for it.
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

    /// The longest message that the server accepts, in bytes.
    pub fn longest_message(&self) -> usize {
        self.peer.longest_payload()
    }

    /// Decides from an error of sending whether the call may be sent again.
    #[cold]
    fn unsent(&self, why: SendError) -> Failure {
        let text = chain(&why);
        match why {
            SendError::Payload { .. } => Failure::Final(Status::resource_exhausted(text).not_run()),
            SendError::NoCredit { .. } => Failure::Final(Status::deadline_exceeded(text).not_run()),
            _ => {
                self.broken.store(true, Ordering::Relaxed);
                Failure::NotSent(Status::unavailable(text))
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if *self.is_left.get_mut() {
            let (peer, session) = (self.peer.within(LEFT_PATIENCE), self.session);
            self.peer.runtime().spawn(async move { peer.request(LEFT, [session]).await });
        }
    }
}

/// Gives a call up when dropped while armed: ends its streams, and tells the server. Armed while
/// the call waits for its answer, and while its request still streams.
struct GivenUp {
    peer: Peer,
    streams: Arc<Streams>,
    key: CallKey,
    armed: bool,
}

impl GivenUp {
    /// Whether the request is a stream that has not ended.
    fn is_sending(&self) -> bool {
        self.streams.is_sending(self.key, &self.peer)
    }

    /// Wraps the body of a response, so that the end of that body also ends the request's stream.
    fn with(mut self, body: Body) -> Body {
        self.armed = false;
        let ends = EndsSending(self);
        Body::stream(body.pieces().map(move |piece| {
            let _kept = &ends;
            piece
        }))
    }

    /// Tells the server that nobody waits for the call any more.
    fn cancel(&self) {
        let words = <[u64; 2]>::from(self.key);
        match self.peer.try_credit() {
            Ok(Some(credit)) => _ = credit.request(CANCEL, words),
            Ok(None) => {
                let peer = self.peer.within(Duration::from_secs(1));
                self.peer.runtime().spawn(async move { peer.request(CANCEL, words).await });
            }
            // A server knows by itself which clients have gone.
            Err(_) => {}
        }
    }
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        if self.armed {
            self.streams.end(self.key, &Status::cancelled("the call was given up"));
            self.cancel();
        }
    }
}

/// Gives a call up when dropped, if its request is still being sent.
struct EndsSending(GivenUp);

impl Drop for EndsSending {
    fn drop(&mut self) {
        self.0.armed = self.0.is_sending();
    }
}
