//! The delivery of one call, over as many connections as it takes.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::time::Instant;

use super::calls::Calls;
use super::connector::Connector;
use super::failure::Failure;
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
    metadata: Metadata,
    trace: Option<TraceContext>,
    body: Bytes,
    /// The pieces of a request that is a stream, until the call is sent.
    pieces: Option<Pieces>,
    /// Whether the request is a stream.
    streams: bool,
    /// The number of the call, once it was drawn.
    call: u64,
    /// The server and the session that may have begun the call, if any have.
    sent_by: Option<(u64, u64)>,
    /// The failure of the last attempt.
    lost: Option<Status>,
    resends: usize,
}

impl Delivery {
    pub fn new(request: Request<Body>, trace: Option<TraceContext>) -> Self {
        let (method, deadline) = (request.method(), request.deadline());
        let metadata = request.metadata().clone();
        let (body, pieces) = match request.into_inner() {
            Body::Whole(bytes) => (bytes, None),
            Body::Stream(pieces) => (Bytes::new(), Some(pieces)),
        };
        let streams = pieces.is_some();
        let (call, sent_by, lost, resends) = (0, None, None, 0);
        Self {
            method,
            deadline,
            metadata,
            trace,
            body,
            pieces,
            streams,
            call,
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
        numbers: &AtomicU64,
    ) -> Result<Response<Body>, Failure> {
        let (method, deadline) = (self.method, self.deadline);
        let connection = connector.connection(deadline).await;
        let connection = connection.map_err(|why| Failure::Final(self.behind(why).not_run()))?;
        let session = (connection.server, connection.session);
        if !method.is_idempotent() && self.sent_by.is_some_and(|before| before != session) {
            let why = format!(
                "the server that is there now does not know whether {method} ran; mark the method \
                 idempotent to have it called again"
            );
            return Err(Failure::Final(self.behind(Status::unavailable(why))));
        }
        let most = connection.longest_message();
        let metadata = with_trace(&self.metadata, self.trace.as_ref(), most);
        let content = Content::new(&metadata, self.body.clone(), most);
        let content = content.map_err(|why| Failure::Final(why.not_run()))?;
        connection.prepare(&content, deadline).await?;
        // A server forgets calls that thousands of later ones have overtaken, so a call gets its
        // number only when it can be sent.
        if self.sent_by.is_none() {
            self.call = numbers.fetch_add(1, Ordering::Relaxed);
        }
        let head = CallHead {
            session: connection.session,
            call: self.call,
            method: method.number(),
            schema: method.schema_number(),
            timeout: remaining(deadline).map_err(|why| Failure::Final(why.not_run()))?,
            flags: Flags { streams: self.streams, ..content.flags },
        };
        let response = connection.call(calls, head, &content, &mut self.pieces, deadline).await;
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
            Failure::NotSent(status) => status.not_run(),
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
    fn behind(&self, why: Status) -> Status {
        let Some(lost) = &self.lost else { return why };
        let text = format!("{}; then: {}", lost.message(), why.message());
        Status::new(why.code(), text)
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

/// The microseconds until a deadline, at least one; zero if there is no deadline.
fn remaining(deadline: Option<Instant>) -> Result<u64, Status> {
    let Some(deadline) = deadline else { return Ok(0) };
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Status::deadline_exceeded("the call's time was over before it was sent"));
    }
    Ok(u64::try_from(left.as_micros()).unwrap_or(u64::MAX).max(1))
}

/// Adds the path of the method to a status which says that the server does not have the method. The
/// server knows only the number of the path.
fn unknown_method(status: Status, method: MethodId) -> Status {
    match status.code() {
        Code::Unimplemented if status.message().starts_with(NO_METHOD) => {
            let text = format!("calling {method}: {}", status.message());
            let named = Status::unimplemented(text);
            if status.has_not_run() { named.not_run() } else { named }
        }
        _ => status,
    }
}
