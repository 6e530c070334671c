//! A connection of a client to its server: sending one call, with all that belongs to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use doorbell_am::{CallError, Credit, Endpoint, Name, Peer, SendError, Undeliverable};
use doorbell_verbs::floor::watch_over;
use doorbell_verbs::{ConnectError, ReachError, RejectReason, ServiceId};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::calls::{Answer, Answered, Calls, Outcome};
use super::failure::Failure;
use super::given_up::GivenUp;
use super::numbers::{Number, Numbers};
use super::stage::{Progress, Stage};
use crate::alarm::{Late, until};
use crate::bulk::{BulkConnection, Offered};
use crate::message::{Body, Pieces, Response};
use crate::status::{Code, Status, chain};
use crate::stream::pump;
use crate::wire::{
    self, CALL, CallHead, CallKey, Content, Flags, HELLO, Hello, LEFT, Received, VERSION, WELCOME,
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

/// A call as it is sent over a connection.
pub struct Outgoing<'c> {
    /// The head of the call. Its number and its time-out are filled in when the call is sent.
    pub head: CallHead,
    pub content: &'c Content,
    /// The pieces of a request that is a stream. They are taken when the call is sent.
    pub pieces: &'c mut Option<Pieces>,
    pub deadline: Option<Instant>,
}

/// The error of an attempt to connect.
pub struct Unopened {
    pub status: Status,
    /// Whether the server may be there nevertheless: nothing has come from it, as from one that is
    /// stopped, or it asks to be tried again.
    pub may_be_there: bool,
}

impl From<Status> for Unopened {
    fn from(status: Status) -> Self {
        Self { status, may_be_there: false }
    }
}

/// A system that knows that nobody is there says so sooner than this. Who says so later has waited
/// for an answer in vain.
const AT_ONCE: Duration = Duration::from_secs(1);

impl Unopened {
    /// The error of an attempt in which mapping the server failed after the time `took`.
    #[cold]
    fn mapping(name: &Name, why: &ConnectError, took: Duration) -> Self {
        let may_be_there = may_be_there(why, took);
        Self { status: Status::unavailable(unnamed(&chain(why), name)), may_be_there }
    }
}

/// Whether a server may be there to which an attempt to connect has failed after the time `took`.
/// One that was stopped, and goes on, gives up connections that others asked for meanwhile.
fn may_be_there(why: &ConnectError, took: Duration) -> bool {
    use ConnectError::{Crowded, Lost, PeerLeft, Reach, Refused, Stale, TimedOut};
    match why {
        TimedOut { .. } | Crowded { .. } | Stale { .. } | PeerLeft { .. } => true,
        // It has connected, and was silent then.
        Lost { .. } => true,
        Refused { reason, .. } => {
            [RejectReason::TIMEOUT, RejectReason::STALE_CONNECTION].contains(reason)
        }
        Reach(ReachError::Nobody { .. }) => took >= AT_ONCE,
        _ => false,
    }
}

/// The status that an answer tells of, which is an error.
#[cold]
fn error(flags: Flags, message: &[u8]) -> Status {
    let status = Status::new(Code::from_number(flags.code), String::from_utf8_lossy(message));
    if flags.not_run { status.not_run() } else { status }
}

/// A text about a server that stands behind the server's name, and does not repeat the name.
pub fn unnamed(text: &str, name: &Name) -> String {
    text.replace(&name.to_string(), "the server").replace(name.address(), "the server")
}

/// The status of a client whose hello was not answered. An endpoint that has no handler for hellos
/// will not get one by asking again, so that failure is final.
#[cold]
fn ungreeted(name: &Name, why: CallError) -> Unopened {
    use Undeliverable::{Arguments, NoHandler};
    let text = unnamed(&chain(&why), name);
    match why {
        CallError::Undeliverable { why: NoHandler | Arguments, .. } => Status::failed_precondition(
            format!("{name} is an endpoint of Active Messages, but no RPC server: {text}"),
        )
        .into(),
        // A server that is gone refuses the next attempt.
        _ => Unopened {
            status: Status::unavailable(format!("greeting it failed: {text}")),
            may_be_there: true,
        },
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
    ) -> Result<Arc<Self>, Unopened> {
        let began = Instant::now();
        let peer = endpoint
            .connect(name)
            .await
            .map_err(|why| Unopened::mapping(name, &why, began.elapsed()))?;
        let hello = Hello { version: VERSION, client, session: before };
        let reply = peer.call(HELLO, hello.words()).await;
        let reply = reply.map_err(|why| ungreeted(name, why))?;
        let words = reply
            .arguments(WELCOME)
            .map_err(|why| Status::unavailable(format!("it is no RPC server: {why}")))?;
        let Welcome { version, session, server, longest, bulk_service } =
            Welcome::from_words(words);
        if version != VERSION {
            return Err(Status::failed_precondition(format!(
                "{name} speaks version {version} of Doorbell's RPC, and this client version {VERSION}: \
                 build both from the same version"
            ))
            .into());
        }
        if session == Welcome::LEAVES {
            // A server that takes its time to end is asked again and again, and keeps no
            // connection of each time.
            if left != Some(&peer) {
                peer.runtime().clone().spawn(async move { peer.disconnect().await });
            }
            return Err(Status::unavailable("the server is shutting down").into());
        }
        if session == 0 {
            return Err(Status::resource_exhausted(format!(
                "{name} has as many clients as it knows at a time: raise its limit of sessions"
            ))
            .into());
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
        let bulk = until(deadline, self.bulk()).await;
        let bulk = bulk.map_err(|Late| Failure::Final(self.no_bulk_in_time()))?;
        bulk.map(drop).map_err(|why| {
            // The server may have gone, or be another process by now, so the next attempt connects
            // anew.
            self.broken.store(true, Ordering::Relaxed);
            Failure::NotBegun(why.not_run())
        })
    }

    #[cold]
    fn no_bulk_in_time(&self) -> Status {
        Status::deadline_exceeded(format!(
            "there was no connection to {} for bodies that are too long for messages before the call's \
             time was over",
            self.name
        ))
        .not_run()
    }

    /// Sends a call that is [prepared](Self::prepare), with its stream or long body, and waits for
    /// the whole response, until a deadline. If the future is dropped or the deadline passes, the
    /// call is given up, and the server is told.
    ///
    /// The call gets its number when there is a credit to send it by.
    pub async fn call(
        &self,
        calls: &Arc<Calls>,
        (numbers, number): (&Numbers, &mut Number),
        Outgoing { mut head, content, pieces, deadline }: Outgoing<'_>,
    ) -> Result<Response<Body>, Failure> {
        let within = self.within(deadline);
        let credit = self.credit(&within).await.map_err(|why| self.unsent(why))?;
        head.timeout = remaining(deadline).map_err(Failure::Final)?;
        let (answered, offered, sent) = numbers.send(number, |number| {
            head.call = number;
            let key = (head.session, number);
            // The answer, or the memory for a long body, may come as soon as the call is sent.
            let answered = calls.expect(key, &self.peer);
            let offers = |body| Offered::new(&calls.transfers, key, &self.peer, body);
            let offered = content.long.clone().map(offers);
            (answered, offered, credit.request_with(CALL, head.words(), &content.payload))
        });
        sent.map_err(|why| self.unsent(why))?;
        watch_over(calls, self.peer.nic(), self.peer.runtime());
        let key = (head.session, head.call);
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
            if answer.flags.leaves {
                // No other call goes there, and those that have gone there are waited for.
                calls.leaves(&self.peer);
                return Err(Failure::NotBegun(error(answer.flags, &answer.payload)));
            }
            self.response(calls, key, answer, &progress).await.map_err(Failure::Final)
        };
        let Ok(answered) = until(deadline, exchanged).await else {
            return Err(Failure::Final(progress.too_late()));
        };
        // A call that is over must send nothing more, whether or not the server has asked for that.
        // A server whose answer was not taken to its end must not wait for that.
        let is_half_taken = answered.is_err() && progress.is_receiving();
        given_up.armed = is_half_taken || given_up.is_sending();
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
            return Err(error(flags, &payload));
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
        progress.reaches(Stage::Received, usize::try_from(len).unwrap_or(usize::MAX));
        let len = calls.transfers.check(len).map_err(|why| why.status("the response"))?;
        let bulk = self.bulk().await?;
        progress.reaches(Stage::MemoryHere, len);
        let memory = calls.share.lend(len).await.map_err(|why| why.status("the response"))?;
        progress.reaches(Stage::Received, len);
        calls.transfers.receive(key, &self.peer, &bulk, memory).await
    }

    /// The server as a peer that is waited for until a deadline at the most.
    fn within(&self, deadline: Option<Instant>) -> Option<Peer> {
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        deadline.map(|deadline| self.peer.within(left(deadline)))
    }

    /// Waits for a credit. The peer `within` bounds the wait, if there is a bound.
    async fn credit<'p>(&'p self, within: &'p Option<Peer>) -> Result<Credit<'p>, SendError> {
        match self.peer.try_credit()? {
            Some(credit) => Ok(credit),
            None => within.as_ref().unwrap_or(&self.peer).credit().await,
        }
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
            SendError::TooLong { .. } => Failure::Final(Status::resource_exhausted(text).not_run()),
            SendError::NoCredit { .. } => Failure::Final(Status::deadline_exceeded(text).not_run()),
            _ => {
                self.broken.store(true, Ordering::Relaxed);
                Failure::NotBegun(Status::unavailable(text).not_run())
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

/// The microseconds until a deadline, at least one; zero if there is no deadline.
fn remaining(deadline: Option<Instant>) -> Result<u64, Status> {
    let Some(deadline) = deadline else { return Ok(0) };
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        let late = Status::deadline_exceeded("the call's time was over before it was sent");
        return Err(late.not_run());
    }
    Ok(u64::try_from(left.as_micros()).unwrap_or(u64::MAX).max(1))
}
