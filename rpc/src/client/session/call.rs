//! A call's way, from its permit to its response: [`Session::call`] and what follows it here, read
//! from top to bottom.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use doorbell_am::{Credit, Peer, SendError};
use doorbell_verbs::floor::watch_over;
use tokio::time::Instant;

use super::Session;
use super::calls::{Answer, Answered, Outcome};
use super::connection::Connection;
use super::given_up::GivenUp;
use super::history::{Begun, History};
use super::permits::Permit;
use super::response::HeldStream;
use super::states::{Failure, Progress, Stage};
use crate::alarm::{Late, until};
use crate::bulk::Offered;
use crate::message::{Body, Pieces, Request, Response};
use crate::metadata::{Metadata, MetadataError};
use crate::meters;
use crate::method::MethodId;
use crate::status::{Code, Status, chain};
use crate::stream::pump;
use crate::trace::TraceContext;
use crate::wire::{self, CALL, CallHead, CallKey, Content, Flags, Received, Welcome};

/// The end of an attempt: the response, and what gives the call up if its request still streams.
type Attempted = Result<(Response<Body>, GivenUp), Failure>;

/// A call on its way: the request, and what became of the call so far.
struct Call {
    method: MethodId,
    deadline: Option<Instant>,
    /// Whether the call waits for a server that is gone.
    waits: bool,
    metadata: Metadata,
    trace: Option<TraceContext>,
    body: Bytes,
    /// Whether the request is a stream.
    streams: bool,
    /// The pieces of a request that is a stream, until the call is sent.
    pieces: Option<Pieces>,
    progress: Progress,
    history: History,
}

impl Session {
    /// Sends a request with the context of a trace, and waits for the response. If the connection
    /// ends, sends the request over the next one, unless the call may have run and must not run
    /// twice.
    ///
    /// # Errors
    /// The status that the server has answered with, or the reason why there is no answer.
    pub async fn call(
        self: &Arc<Self>,
        request: Request<Body>,
        trace: Option<TraceContext>,
    ) -> Result<Response<Body>, Status> {
        let call = self.begun(request, trace);
        // 1. A permit to be in flight, which the call keeps to its end.
        let taken = until(call.deadline, self.permits.take(self.name())).await;
        taken.unwrap_or_else(|Late| Err(self.too_late(&call.progress)))?;
        self.to_its_end(call, Permit::of(self), None).await
    }

    /// Goes on with a call of which it is known how the wait for its answer has ended: receives
    /// what follows the answer, or sends the call again.
    pub async fn goes_on(
        self: &Arc<Self>,
        request: Request<Body>,
        (connection, key, answer, given_up): (
            Arc<Connection>,
            CallKey,
            impl Future<Output = Outcome>,
            GivenUp,
        ),
        permit: Permit<Self>,
    ) -> Result<Response<Body>, Status> {
        let mut call = self.begun(request, None);
        call.progress.reaches(Stage::Answer, 0);
        let Call { deadline, ref progress, ref mut history, .. } = call;
        let of = (deadline, progress, history);
        let first = self.finish((&connection, key, answer), given_up, of).await;
        self.to_its_end(call, permit, Some(first)).await
    }

    /// Sends a call until it has an outcome, unless its `first` attempt was made already.
    async fn to_its_end(
        self: &Arc<Self>,
        mut call: Call,
        permit: Permit<Self>,
        mut first: Option<Attempted>,
    ) -> Result<Response<Body>, Status> {
        let (response, given_up) = loop {
            // 2. to 6. The connection, the request, and the response.
            let attempted = match first.take() {
                Some(attempted) => attempted,
                None => self.attempt(&mut call).await,
            };
            match attempted {
                Ok(response) => break response,
                // 7. Or else: may the call be sent again?
                Err(failure) => {
                    let taken = call.streams.then(|| call.pieces.is_none());
                    call.history.lost(failure, call.method, taken)?;
                }
            }
            meters::resent(call.method);
        };
        let (metadata, body) = response.into_parts();
        let body = match body {
            Body::Whole(bytes) => Body::Whole(bytes),
            // The stream of a response keeps what the call holds.
            Body::Stream(pieces) => {
                permit.forget();
                Body::stream(HeldStream::new(pieces, call.deadline, given_up, self.clone()))
            }
        };
        Ok(Response::with_metadata(metadata, body))
    }

    /// The call of a request, which is about to wait for a permit.
    fn begun(&self, request: Request<Body>, trace: Option<TraceContext>) -> Call {
        let (method, deadline) = (request.method(), request.deadline());
        let waits = request.waits_for_ready().unwrap_or(self.settings.waits);
        let metadata = request.metadata().clone();
        let (body, pieces) = match request.into_inner() {
            Body::Whole(bytes) => (bytes, None),
            Body::Stream(pieces) => (Bytes::new(), Some(pieces)),
        };
        let (streams, progress) = (pieces.is_some(), Progress::queued(self.permits.most));
        let history = History::default();
        Call { method, deadline, waits, metadata, trace, body, streams, pieces, progress, history }
    }

    /// Sends a call over the present or the next connection, and waits for the response.
    async fn attempt(&self, call: &mut Call) -> Attempted {
        let (deadline, progress) = (call.deadline, &call.progress);
        let behind = |why| call.history.behind(self.name(), why);
        // 2. A connection, in whose session the call may be sent.
        progress.reaches(Stage::Connection, 0);
        let connection = until(deadline, self.connector.connection(call.waits)).await;
        let connection = connection.unwrap_or_else(|Late| Err(self.too_late(progress)));
        let connection = connection.map_err(|why| behind(why.not_run()))?;
        let Welcome { server, session, .. } = connection.welcome;
        let allowed = call.history.allows(call.method, server, session);
        allowed.map_err(behind)?;
        // 3. The request, as it fits the messages of this server. A long body needs a bulk
        // connection.
        let content = call.content(connection.peer.longest_payload());
        let content = content.map_err(|why| Failure::Final(why.not_run()))?;
        if let Some(body) = &content.long {
            connection.fits(body.len()).map_err(Failure::Final)?;
            progress.reaches(Stage::Bulk, body.len());
            let bulk = until(deadline, Box::pin(connection.bulk())).await;
            let bulk = bulk.map_err(|Late| Failure::Final(self.too_late(progress)))?;
            bulk.map_err(|why| {
                // The server may have gone, or be another process by now.
                self.connector.breaks(&connection);
                Failure::NotBegun(why.not_run())
            })?;
        }
        self.send(&connection, &content, call).await
    }

    /// Sends a call over a connection, with its stream or long body, and waits for the whole
    /// response, until the call's deadline. If the future is dropped or the deadline passes, the
    /// call is given up, and the server is told. Also returns what gives the call up if its request
    /// still streams.
    async fn send(
        &self,
        connection: &Arc<Connection>,
        content: &Content,
        call: &mut Call,
    ) -> Attempted {
        let (peer, deadline) = (&connection.peer, call.deadline);
        // 4. A credit, and with it the number of the call: the request is sent.
        let within;
        let mut tried = peer.try_credit();
        while let Err(SendError::InHandler) = tried {
            // A handler that runs where its request was received goes on as a task, which may send.
            tried = not_in_handler(peer).await;
        }
        let credit = match tried.transpose() {
            Some(credit) => credit,
            None => {
                within = connection.within(deadline);
                within.credit().await
            }
        };
        let credit = credit.map_err(|why| self.unsent(connection, why))?;
        let mut head = call.head(connection.welcome.session, content).map_err(Failure::Final)?;
        let (answered, offered, sent) = self.numbers.send(call.history.number(), |number| {
            head.call = number;
            let key = (head.session, number);
            // The answer, or the memory for a long body, may come as soon as the call is sent.
            let answered = self.calls.expect(number, connection);
            let offers = |body| Offered::new(&self.calls.transfers, key, peer, body);
            let offered = content.long.clone().map(offers);
            (answered, offered, credit.request_with(CALL, head.words(), &content.payload))
        });
        sent.map_err(|why| self.unsent(connection, why))?;
        call.progress.reaches(Stage::Answer, 0);
        watch_over(&self.calls, peer.nic(), peer.runtime());
        let (key, streams) = ((head.session, head.call), &self.calls.streams);
        let given_up = self.given_up(connection, key);
        if let Some(pieces) = call.pieces.take() {
            let window = streams.open_outgoing(key, peer);
            peer.runtime().spawn(pump(streams.clone(), key, peer.clone(), window, pieces));
        }
        // 5. and 6. The answer, and what follows it.
        let Call { deadline, ref progress, ref mut history, .. } = *call;
        let answer = async {
            match offered {
                None => answered.await,
                // Large futures, which a call without a long body need not carry.
                Some(offered) => {
                    Box::pin(answer_to_long(connection, answered, offered, progress)).await
                }
            }
        };
        self.finish((connection, key, answer), given_up, (deadline, progress, history)).await
    }

    /// Makes the guard of a call that was sent, which gives the call up when it is dropped.
    pub fn given_up(&self, connection: &Connection, key: CallKey) -> GivenUp {
        let (peer, streams) = (connection.peer.clone(), self.calls.streams.clone());
        GivenUp { peer, streams, key, armed: true }
    }

    /// Waits for the answer to a call that was sent, and for the whole response, until the call's
    /// deadline.
    async fn finish(
        &self,
        (connection, key, answer): (&Arc<Connection>, CallKey, impl Future<Output = Outcome>),
        mut given_up: GivenUp,
        (deadline, progress, history): (Option<Instant>, &Progress, &mut History),
    ) -> Attempted {
        let exchange = pin!(self.exchange(connection, key, answer, progress));
        let response = until(deadline, exchange).await;
        let response = response.map_err(|Late| Failure::Final(self.too_late(progress)))?;
        if let Err(Failure::OutcomeUnknown(_)) = response {
            let Welcome { server, session, .. } = connection.welcome;
            history.may_have_begun(Begun { server, session, number: key.1 });
        }
        // A call that is over must send nothing more, whether or not the server has asked for that.
        // A server whose answer was not taken to its end must not wait for that.
        let is_half_taken = response.is_err() && progress.stage().is_receiving();
        given_up.armed = is_half_taken || given_up.is_sending();
        Ok((response?, given_up))
    }

    /// Waits for the answer to a call that was sent, and for the body that follows the answer.
    async fn exchange(
        &self,
        connection: &Connection,
        key: CallKey,
        answer: impl Future<Output = Outcome>,
        progress: &Progress,
    ) -> Result<Response<Body>, Failure> {
        // 5. The answer. The server may have to be sent a long body first.
        let answer = answer.await?;
        if answer.flags.leaves {
            // No other call goes there, and those that have gone there are waited for.
            self.connector.leaves(&connection.peer);
            return Err(Failure::NotBegun(error(answer.flags, &answer.payload)));
        }
        // 6. The response, with its stream or long body.
        let Answer { flags, payload, stream } = answer;
        if flags.code != Code::Ok.number() {
            return Err(Failure::Final(error(flags, &payload)));
        }
        let received = wire::split(flags, payload).map_err(unreadable);
        let Received { metadata, body, long } = received.map_err(Failure::Final)?;
        let body = match long {
            None => body,
            Some(len) => {
                let body = Box::pin(self.long_body(connection, key, len, progress)).await;
                body.map_err(Failure::Final)?
            }
        };
        Ok(Response::with_metadata(metadata, stream.unwrap_or(Body::Whole(body))))
    }

    /// Receives the body of a response that is too long for a message.
    async fn long_body(
        &self,
        connection: &Connection,
        key: CallKey,
        len: u64,
        progress: &Progress,
    ) -> Result<Bytes, Status> {
        let calls = &self.calls;
        progress.reaches(Stage::Received, usize::try_from(len).unwrap_or(usize::MAX));
        let len = calls.transfers.check(len).map_err(|why| why.status("the response"))?;
        let bulk = connection.bulk().await?;
        progress.reaches(Stage::MemoryHere, len);
        let memory = calls.share.lend(len).await.map_err(|why| why.status("the response"))?;
        progress.reaches(Stage::Received, len);
        calls.transfers.receive(key, &connection.peer, &bulk, memory).await
    }

    /// Decides from an error of sending whether the call may be sent again.
    #[cold]
    fn unsent(&self, connection: &Arc<Connection>, why: SendError) -> Failure {
        let text = chain(&why);
        match why {
            SendError::TooLong { .. } => Failure::Final(Status::resource_exhausted(text).not_run()),
            SendError::NoCredit { .. } => Failure::Final(Status::deadline_exceeded(text).not_run()),
            _ => {
                self.connector.breaks(connection);
                Failure::NotBegun(Status::unavailable(text).not_run())
            }
        }
    }

    /// The status of a call whose deadline has passed while it waited for its answer.
    #[cold]
    pub fn unanswered(&self) -> Status {
        let progress = Progress::queued(0);
        progress.reaches(Stage::Answer, 0);
        self.too_late(&progress)
    }

    /// The status of a call whose deadline has passed.
    #[cold]
    fn too_late(&self, progress: &Progress) -> Status {
        progress.too_late(self.name(), || self.connector.no_connection_in_time())
    }
}

/// Waits for the answer to a call whose long body is written meanwhile. A server that does not want
/// the body may answer before the body is written.
async fn answer_to_long(
    connection: &Connection,
    answered: Answered<'_>,
    offered: Offered,
    progress: &Progress,
) -> Outcome {
    let len = offered.len();
    progress.reaches(Stage::MemoryThere, len);
    let bulk = async {
        progress.reaches(Stage::Written, len);
        connection.bulk().await
    };
    let mut answered = pin!(answered);
    tokio::select! {
        biased;
        answer = &mut answered => return answer,
        written = offered.write(bulk) => written.map_err(Failure::OutcomeUnknown)?,
    }
    progress.reaches(Stage::Answer, 0);
    answered.await
}

/// Lets the task go on elsewhere, and then takes a credit if there is one.
async fn not_in_handler(peer: &Peer) -> Result<Option<Credit<'_>>, SendError> {
    tokio::task::yield_now().await;
    peer.try_credit()
}

impl Call {
    /// The content of the request's message, for a server that takes messages of at most `most`
    /// bytes. The metadata have the context of the call's trace, as far as there is room.
    fn content(&self, most: usize) -> Result<Content, Status> {
        let mut metadata = Cow::Borrowed(&self.metadata);
        if let Some(trace) = &self.trace {
            trace.write_within(metadata.to_mut(), Content::most_metadata(most));
        }
        Content::new(&metadata, self.body.clone(), most)
    }

    /// The head of the call, which is about to be sent, without its number.
    ///
    /// # Errors
    /// When the call's deadline has passed.
    fn head(&self, session: u64, content: &Content) -> Result<CallHead, Status> {
        Ok(CallHead {
            session,
            call: 0,
            method: self.method.number(),
            schema: self.method.schema_number(),
            timeout: remaining(self.deadline)?,
            flags: Flags { streams: self.streams, ..content.flags },
        })
    }
}

/// The microseconds until a deadline, at least one; zero if there is no deadline.
pub fn remaining(deadline: Option<Instant>) -> Result<u64, Status> {
    let Some(deadline) = deadline else { return Ok(0) };
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        let late = Status::deadline_exceeded("the call's time was over before it was sent");
        return Err(late.not_run());
    }
    Ok(u64::try_from(left.as_micros()).unwrap_or(u64::MAX).max(1))
}

/// The status of a call whose answer can't be taken apart.
#[cold]
pub fn unreadable(why: MetadataError) -> Status {
    Status::internal(format!("the server's answer can't be read: {why}"))
}

/// The status that an answer tells of, which is an error.
#[cold]
fn error(flags: Flags, message: &[u8]) -> Status {
    let status = Status::new(Code::from_number(flags.code), String::from_utf8_lossy(message));
    if flags.not_run { status.not_run() } else { status }
}
