//! A connection of a client to its server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use doorbell_am::{CallError, Endpoint, Name, Peer, SendError, Undeliverable};
use doorbell_verbs::ServiceId;
use futures_util::StreamExt;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::calls::{Answer, Answered, Calls, Outcome};
use super::lost::Lost;
use super::stage::{Progress, Stage};
use crate::bulk::{Line, Offered};
use crate::message::{Body, Pieces, Response};
use crate::status::{Code, Status, chain};
use crate::stream::{Key, Streams, pump};
use crate::wire::{
    self, CALL, CANCEL, CallHead, Content, HELLO, Hello, Received, VERSION, WELCOME, Welcome,
};

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
    /// The service by which the server takes lines for long bodies, and the line if there is one.
    lines: u64,
    line: Mutex<Option<Arc<Line>>>,
    endpoint: Endpoint,
    name: Name,
    broken: AtomicBool,
}

/// The status of a greeting that was not answered. An endpoint that has no handler for greetings
/// will not have one when asked again.
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
    .with_source(why)
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
            Status::unavailable(format!("connecting to {name}: {}", chain(&why))).with_source(why)
        })?;
        let hello = Hello { version: VERSION, client, session: before };
        let reply = peer.call(HELLO, hello.words()).await;
        let reply = reply.map_err(|why| ungreeted(name, why))?;
        let words = reply.arguments(WELCOME).map_err(|why| {
            Status::unavailable(format!("{name} is no RPC server: {why}")).with_source(why)
        })?;
        let Welcome { version, session, server, longest, lines } = Welcome::from_words(words);
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
        Ok(Arc::new(Self {
            peer,
            session,
            server,
            longest,
            lines,
            line: Mutex::default(),
            endpoint: endpoint.clone(),
            name: name.clone(),
            broken: AtomicBool::new(false),
        }))
    }

    /// Whether calls may go over the connection.
    pub fn is_up(&self) -> bool {
        !self.broken.load(Ordering::Relaxed) && self.peer.ending().is_none()
    }

    /// Prepares what a call needs before it is sent: for a body that is too long for a message, the
    /// line, until a deadline.
    ///
    /// # Errors
    /// When the server takes no body of that length, or there is no line in time.
    pub async fn prepare(&self, content: &Content, deadline: Option<Instant>) -> Result<(), Lost> {
        let Some(body) = &content.long else { return Ok(()) };
        self.fits(body.len())?;
        let line = match deadline {
            None => self.line().await,
            Some(deadline) => {
                let line = tokio::time::timeout_at(deadline, self.line()).await;
                line.map_err(|_| Lost::Over(self.no_line_in_time()))?
            }
        };
        line.map(drop).map_err(|why| {
            // The server may have gone, or be another process by now: the next attempt asks.
            self.broken.store(true, Ordering::Relaxed);
            Lost::Unsent(why)
        })
    }

    #[cold]
    fn no_line_in_time(&self) -> Status {
        Status::deadline_exceeded(format!(
            "there was no connection to {} for bodies that are too long for messages before the call's \
             time was over",
            self.name
        ))
    }

    /// Sends a call that is [prepared](Self::prepare), with what follows it, and waits for its
    /// answer and what belongs to that, until a deadline. A call that is dropped meanwhile, or
    /// whose deadline is over, is given up, and the server told.
    pub async fn call(
        &self,
        calls: &Arc<Calls>,
        head: CallHead,
        content: &Content,
        pieces: &mut Option<Pieces>,
        deadline: Option<Instant>,
    ) -> Result<Response<Body>, Lost> {
        let key = (head.session, head.call);
        let answered = calls.expect(key, &self.peer);
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
                Some(offered) => self.answer_to_long(answered, offered, &progress).await?,
            };
            self.response(calls, key, answer, &progress).await.map_err(Lost::Over)
        };
        let outcome = match deadline {
            None => Ok(exchanged.await),
            Some(deadline) => tokio::time::timeout_at(deadline, exchanged).await,
        };
        let Ok(answered) = outcome else {
            return Err(Lost::Over(progress.too_late()));
        };
        // A call that is over sends nothing more, whether or not the server has said so.
        given_up.armed = given_up.is_sending();
        let is_stream = |response: &Response<Body>| matches!(response.get_ref(), Body::Stream(_));
        match answered {
            Ok(response) if given_up.armed && is_stream(&response) => {
                Ok(response.map(|body| given_up.with(body)))
            }
            answered => answered,
        }
    }

    /// Waits for the answer to a call whose body is written meanwhile. The answer may come before
    /// that is done, if the server does not want the body.
    async fn answer_to_long(
        &self,
        answered: Answered<'_>,
        offered: Offered,
        progress: &Progress,
    ) -> Outcome {
        let len = offered.len();
        progress.reaches(Stage::MemoryThere, len);
        let line = async {
            progress.reaches(Stage::Written, len);
            self.line().await
        };
        let mut answered = std::pin::pin!(answered);
        tokio::select! {
            biased;
            answer = &mut answered => return answer,
            written = offered.write(line) => written.map_err(Lost::Unknown)?,
        }
        progress.reaches(Stage::Answer, 0);
        answered.await
    }

    /// Whether the server takes a body of a length.
    fn fits(&self, len: usize) -> Result<(), Lost> {
        if len as u64 <= self.longest {
            return Ok(());
        }
        Err(Lost::Over(Status::resource_exhausted(format!(
            "the body has {len} bytes, and the server takes {} at the most: raise its `longest_body`, or \
             send a stream",
            self.longest
        ))))
    }

    /// The line for long bodies, which is made when it is needed and there is none.
    async fn line(&self) -> Result<Arc<Line>, Status> {
        let mut line = self.line.lock().await;
        if let Some(line) = line.as_ref().filter(|line| line.is_up()) {
            return Ok(line.clone());
        }
        let (nic, address) = (self.endpoint.nic(), self.name.address());
        let made = Line::connect(nic, address, ServiceId(self.lines), self.session).await?;
        Ok(line.insert(Arc::new(made)).clone())
    }

    /// The response that an answer carries, with a body that follows.
    ///
    /// # Errors
    /// The status that the server has answered with, or that of an answer that can't be read.
    async fn response(
        &self,
        calls: &Calls,
        key: Key,
        answer: Answer,
        progress: &Progress,
    ) -> Result<Response<Body>, Status> {
        let Answer { flags, payload, stream } = answer;
        if flags.code != Code::Ok.number() {
            let message = String::from_utf8_lossy(&payload);
            return Err(Status::new(Code::from_number(flags.code), message));
        }
        let Received { metadata, body, long } = wire::split(flags, payload)
            .map_err(|why| Status::internal(format!("the server's answer can't be read: {why}")))?;
        let body = match long {
            None => body,
            Some(len) => {
                let len = calls.transfers.check(len).map_err(|why| why.status("the response"))?;
                let line = self.line().await?;
                progress.reaches(Stage::MemoryHere, len);
                let memory = calls.share.lend(len).await;
                progress.reaches(Stage::Received, len);
                calls.transfers.receive(key, &self.peer, &line, memory).await?
            }
        };
        Ok(Response::with_metadata(metadata, stream.unwrap_or(Body::Whole(body))))
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

    /// The longest message that the server takes.
    pub fn longest_message(&self) -> usize {
        self.peer.longest_payload()
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
}

/// Tells the server when a call is given up that was sent, or is over while its request is still
/// being sent.
struct GivenUp {
    peer: Peer,
    streams: Arc<Streams>,
    key: Key,
    armed: bool,
}

impl GivenUp {
    /// Whether the request is a stream that has not ended.
    fn is_sending(&self) -> bool {
        self.streams.is_sending(self.key, &self.peer)
    }

    /// The body of a response, with whose end the stream of the request ends, too.
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
            // The server knows by itself of calls whose clients have gone.
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

/// Gives a call up when this is dropped, if its request is still being sent.
struct EndsSending(GivenUp);

impl Drop for EndsSending {
    fn drop(&mut self) {
        self.0.armed = self.0.is_sending();
    }
}
