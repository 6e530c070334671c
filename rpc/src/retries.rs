//! Retries: making calls again that have failed, as a policy for tower's retry layer.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tower::retry::Policy;
use tower::retry::budget::{Budget, TpsBudget};

use crate::alarm::Alarm;
use crate::client::Backoff;
use crate::context::deadline;
use crate::deadlines::{deadline_after, earlier};
use crate::message::{Body, Request, Response};
use crate::status::{Code, Status};

/// A policy for tower's `Retry` that makes calls again which have failed. Above a balancer, another
/// attempt goes to whichever server the balancer gives.
///
/// A call is made again if its status has a code of [`codes`](Self::codes), and if either its
/// method is idempotent or the call [has not run](Status::has_not_run). Attempts have pauses
/// between them, are bounded in number, and never begin behind the call's deadline. A budget, which
/// all clones share, bounds the retries of all calls together, so that servers which are overloaded
/// are not called even more. A call whose request is a stream is made once.
///
/// ```
/// use doorbell_rpc::{Channel, Client, Method, Retries, Router, Server};
/// use tower::ServiceBuilder;
///
/// const DOUBLE: Method<u64, u64> = Method::new("double").idempotent();
///
/// # #[tokio::main]
/// # async fn main() -> anyhow::Result<()> {
/// # let router = Router::new().unary(DOUBLE, |request| async move { Ok(2 * request.into_inner()) });
/// # let server = Server::builder().add_service(router).open("shm").await?;
/// # let name = server.name();
/// let channel = Channel::connect(name).await?;
/// let retries = ServiceBuilder::new().retry(Retries::new()).service(channel);
/// let client = Client::new(retries);
/// assert_eq!(client.unary(DOUBLE, 4).await?.into_inner(), 8);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a policy does nothing until a layer has it"]
pub struct Retries {
    codes: Codes,
    attempts: u32,
    backoff: Backoff,
    budget: Arc<TpsBudget>,
    /// The attempts of the present call that have failed.
    failed: u32,
    /// Whether an attempt of the call may have run.
    may_have_run: bool,
}

/// A set of codes, a bit for each.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Codes(u32);

impl Codes {
    fn of(codes: impl IntoIterator<Item = Code>) -> Self {
        Self(codes.into_iter().fold(0, |bits, code| bits | 1 << code.number()))
    }

    fn contains(self, code: Code) -> bool {
        self.0 >> code.number() & 1 == 1
    }
}

/// For how long a call counts in the budget.
const COUNTS: Duration = Duration::from_secs(10);

impl Default for Retries {
    fn default() -> Self {
        Self {
            codes: Codes::of([Code::Unavailable]),
            attempts: 5,
            backoff: Backoff::default(),
            budget: Arc::new(TpsBudget::new(COUNTS, 10, 0.2)),
            failed: 0,
            may_have_run: false,
        }
    }
}

impl Retries {
    /// A policy that makes a call five times at the most, while its status is
    /// [`Unavailable`](Code::Unavailable).
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the codes of statuses for which a call is made again.
    pub fn codes(self, codes: impl IntoIterator<Item = Code>) -> Self {
        Self { codes: Codes::of(codes), ..self }
    }

    /// Sets how often a call is made at the most, counting the first time: five unless set.
    pub fn attempts(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }

    /// Sets the pauses between the attempts of a call.
    pub fn backoff(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    /// Sets the budget of all calls together: `part` of the calls of the last ten seconds may be
    /// made again, between 0 and 1000, and `each_second` retries in each of those seconds besides.
    /// Unless set, that is a fifth of the calls, and ten in a second.
    ///
    /// # Panics
    /// When `part` is not between 0 and 1000, or `each_second` does not fit into 31 bits.
    pub fn budget(self, each_second: u32, part: f32) -> Self {
        Self { budget: Arc::new(TpsBudget::new(COUNTS, each_second, part)), ..self }
    }

    /// Whether a call with this status may be made again, as far as the status says.
    fn covers(&self, request: &Request<Body>, status: &Status) -> bool {
        let may_repeat = request.method().is_idempotent() || status.has_not_run();
        may_repeat && self.codes.contains(status.code())
    }
}

impl<E: Failed> Policy<Request<Body>, Response<Body>, E> for Retries {
    type Future = Alarm;

    fn retry(
        &mut self,
        request: &mut Request<Body>,
        answer: &mut Result<Response<Body>, E>,
    ) -> Option<Alarm> {
        let Err(failed) = answer else {
            self.budget.deposit();
            return None;
        };
        let status = failed.status();
        let covers = status.is_some_and(|status| self.covers(request, status));
        self.may_have_run |= !status.is_some_and(Status::has_not_run);
        if self.may_have_run {
            // The last attempt tells nothing about those before.
            failed.mark_may_have_run();
        }
        if !covers {
            return None;
        }
        self.failed += 1;
        let next = deadline_after(self.backoff.pause(self.failed));
        let in_time = |end: Instant| next < end;
        let may_begin = earlier(request.deadline(), deadline()).is_none_or(in_time);
        (self.failed < self.attempts && may_begin && self.budget.withdraw())
            .then(|| Alarm::at(next))
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        request.try_clone()
    }
}

/// The error of a service, in which there may be a status.
pub trait Failed {
    /// The status that the error is, or was caused by.
    fn status(&self) -> Option<&Status>;

    /// Takes back that the call [has not run](Status::has_not_run), if the status says so.
    fn mark_may_have_run(&mut self);
}

impl Failed for Status {
    fn status(&self) -> Option<&Status> {
        Some(self)
    }

    fn mark_may_have_run(&mut self) {
        *self = self.clone().may_have_run();
    }
}

impl Failed for Box<dyn Error + Send + Sync> {
    fn status(&self) -> Option<&Status> {
        let mut cause: Option<&(dyn Error + 'static)> = Some(&**self);
        while let Some(found) = cause {
            if let Some(status) = found.downcast_ref() {
                return Some(status);
            }
            cause = found.source();
        }
        None
    }

    fn mark_may_have_run(&mut self) {
        if let Some(status) = self.status().filter(|status| status.has_not_run()) {
            *self = Box::new(status.clone().may_have_run());
        }
    }
}

impl fmt::Debug for Retries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retries")
            .field("attempts", &self.attempts)
            .field("backoff", &self.backoff)
            .finish_non_exhaustive()
    }
}
