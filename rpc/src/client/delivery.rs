//! The delivery of one call, over as many connections as it takes.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use doorbell_am::Name;
use tokio::time::Instant;

use super::calls::Calls;
use super::connection::{Outgoing, unnamed};
use super::connector::Connector;
use super::failure::Failure;
use super::numbers::{Number, Numbers};
use crate::message::{Body, Pieces, Request, Response};
use crate::metadata::Metadata;
use crate::method::MethodId;
use crate::status::{Code, Status};
use crate::trace::TraceContext;
use crate::wire::{CallHead, Content, Flags, NO_METHOD};

/// How many times a call is sent again after its connection has ended.
const RESENDS: usize = 8;

/// A call that is being delivered, with what became of it so far.
pub struct Delivery {
    method: MethodId,
    deadline: Option<Instant>,
    /// Whether the call waits for a server that is gone.
    waits: bool,
    metadata: Metadata,
    trace: Option<TraceContext>,
    body: Bytes,
    /// The pieces of a request that is a stream, until the call is sent.
    pieces: Option<Pieces>,
    /// Whether the request is a stream.
    streams: bool,
    /// The number of the call, once the call was sent.
    number: Number,
    /// The server and the session that may have begun the call, if any have.
    sent_by: Option<(u64, u64)>,
    /// The failure of the last attempt.
    lost: Option<Status>,
    resends: usize,
}

impl Delivery {
    /// The delivery of a request, with the context of a trace. With `waits`, the call waits for a
    /// server that is gone.
    pub fn new(request: Request<Body>, trace: Option<TraceContext>, waits: bool) -> Self {
        let (method, deadline) = (request.method(), request.deadline());
        let metadata = request.metadata().clone();
        let (body, pieces) = match request.into_inner() {
            Body::Whole(bytes) => (bytes, None),
            Body::Stream(pieces) => (Bytes::new(), Some(pieces)),
        };
        let streams = pieces.is_some();
        let (number, sent_by, lost, resends) = (Number::default(), None, None, 0);
        Self {
            method,
            deadline,
            waits,
            metadata,
            trace,
            body,
            pieces,
            streams,
            number,
            sent_by,
            lost,
            resends,
        }
    }

    /// Sends the call over the present or the next connection, and waits for the response. A call
    /// that is sent for the first time takes its number from `numbers`.
    pub async fn attempt(
        &mut self,
        connector: &Connector,
        calls: &Arc<Calls>,
        numbers: &Numbers,
    ) -> Result<Response<Body>, Failure> {
        let (method, deadline) = (self.method, self.deadline);
        let connection = connector.connection(deadline, self.waits).await;
        let connection =
            connection.map_err(|why| Failure::Final(self.behind(connector.name(), why)))?;
        let session = (connection.server, connection.session);
        if !method.is_idempotent() && self.sent_by.is_some_and(|before| before != session) {
            let why = format!(
                "the server that is there now does not know whether {method} ran; mark the method \
                 idempotent to have it called again"
            );
            let why = Status::unavailable(why);
            return Err(Failure::Final(self.behind(connector.name(), why)));
        }
        let most = connection.longest_message();
        let metadata = with_trace(&self.metadata, self.trace.as_ref(), most);
        let content = Content::new(&metadata, self.body.clone(), most);
        let content = content.map_err(|why| Failure::Final(why.not_run()))?;
        connection.prepare(&content, deadline).await?;
        // Only a call that its server may have begun keeps its number.
        if self.sent_by.is_none() {
            self.number = Number::default();
        }
        let head = CallHead {
            session: connection.session,
            call: 0,
            method: method.number(),
            schema: method.schema_number(),
            timeout: 0,
            flags: Flags { streams: self.streams, ..content.flags },
        };
        let outgoing = Outgoing { head, content: &content, pieces: &mut self.pieces, deadline };
        let response = connection.call(calls, (numbers, &mut self.number), outgoing).await;
        if let Err(Failure::OutcomeUnknown(_)) = response {
            self.sent_by = Some(session);
        }
        response
    }

    /// Decides whether the call is sent again after a failure, and if so notes the failure.
    ///
    /// # Errors
    /// The status of the call, if it is not sent again.
    pub fn retry_after(&mut self, failure: Failure) -> Result<(), Status> {
        let status = match failure {
            Failure::Final(status) => {
                return Err(self.ended(unknown_method(status, self.method)));
            }
            Failure::OutcomeUnknown(status) if self.streams => return Err(status),
            Failure::OutcomeUnknown(status) => status,
            // What was taken of the request's stream is lost.
            Failure::NotBegun(status) if self.streams && self.pieces.is_none() => {
                return Err(status.not_run());
            }
            Failure::NotBegun(status) => status.not_run(),
        };
        if self.resends == RESENDS {
            return Err(self.ended(status));
        }
        self.lost = Some(status);
        self.resends += 1;
        Ok(())
    }

    /// The status of a call whose last attempt has ended with `status`. An attempt that did not run
    /// tells nothing about those before.
    fn ended(&self, status: Status) -> Status {
        if self.sent_by.is_some() { status.may_have_run() } else { status }
    }

    /// The status of a call that is not sent again because of `why`. Mentions first why the call
    /// was lost before, if it was.
    #[cold]
    fn behind(&self, server: &Name, why: Status) -> Status {
        let Some(lost) = &self.lost else { return why };
        why.with_message(|why| format!("{}; then: {}", lost.message(), unnamed(why, server)))
    }
}

/// The metadata of a call, with the context of its trace added as far as there is room in a message
/// of at most `most` bytes.
fn with_trace<'m>(
    metadata: &'m Metadata,
    trace: Option<&TraceContext>,
    most: usize,
) -> Cow<'m, Metadata> {
    let Some(trace) = trace else { return Cow::Borrowed(metadata) };
    let mut metadata = metadata.clone();
    trace.write_within(&mut metadata, Content::most_metadata(most));
    Cow::Owned(metadata)
}

/// Adds the path of the method to a status which says that the server does not have the method. The
/// server knows only the number of the path.
fn unknown_method(status: Status, method: MethodId) -> Status {
    match status.code() {
        Code::Unimplemented if status.message().starts_with(NO_METHOD) => {
            status.with_message(|message| format!("calling {method}: {message}"))
        }
        _ => status,
    }
}
