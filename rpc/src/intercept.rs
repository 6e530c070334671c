//! Interceptors: functions that see each call before its body is decoded, and may refuse it.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt;

use crate::message::Request;
use crate::method::MethodId;
use crate::status::{Status, panic_text};

/// What an interceptor returns: the request, which it may have changed, or why it refuses the call.
pub type Intercepted = Result<Request<()>, Status>;

type Intercepting = Pin<Box<dyn Future<Output = Intercepted> + Send>>;

/// An interceptor, whose type is erased.
#[derive(Clone)]
pub enum Interceptor {
    /// A function that decides at once.
    AtOnce(Arc<dyn Fn(Request<()>) -> Intercepted + Send + Sync>),
    /// An async function.
    Waits(Arc<dyn Fn(Request<()>) -> Intercepting + Send + Sync>),
}

/// The interceptors of a method, in the order in which they see its calls.
#[derive(Clone, Default)]
pub struct Interceptors(Option<Arc<[Interceptor]>>);

impl Interceptors {
    /// Adds interceptors behind those that there are.
    pub fn append(&mut self, others: &Self) {
        if let Some(others) = &others.0 {
            let own = self.0.iter().flat_map(|own| own.iter());
            self.0 = Some(own.chain(others.iter()).cloned().collect());
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Has each interceptor see a request, until one refuses it. Whatever request an interceptor
    /// returns, its method, its caller and its deadline are those of the call.
    ///
    /// # Errors
    /// The status of the interceptor that has refused the call, whose handler then does not run. An
    /// interceptor that panics refuses the call.
    pub async fn see<T>(&self, request: Request<T>) -> Result<Request<T>, Status> {
        let Some(interceptors) = &self.0 else { return Ok(request) };
        let (mut head, body) = request.split();
        let origin = head.origin();
        for interceptor in interceptors.iter() {
            // What an interceptor returns at once is a future, too, so that a panic is contained.
            let sees = async {
                match interceptor {
                    Interceptor::AtOnce(sees) => sees(head),
                    Interceptor::Waits(sees) => sees(head).await,
                }
            };
            let seen = AssertUnwindSafe(sees).catch_unwind().await;
            let seen = seen.unwrap_or_else(|panic| Err(panicked(origin.method(), &*panic)));
            head = seen.map_err(Status::not_run)?.of_origin(&origin);
        }
        Ok(head.map(|()| body))
    }
}

/// The status for the caller of a method of which an interceptor has panicked.
#[cold]
fn panicked(method: MethodId, panic: &(dyn Any + Send)) -> Status {
    tracing::error!(%method, text = panic_text(panic), "an interceptor panicked");
    Status::internal(format!("an interceptor of {method} panicked"))
}

impl From<Interceptor> for Interceptors {
    fn from(interceptor: Interceptor) -> Self {
        Self(Some(Arc::new([interceptor])))
    }
}

impl Interceptor {
    pub fn at_once(sees: impl Fn(Request<()>) -> Intercepted + Send + Sync + 'static) -> Self {
        Self::AtOnce(Arc::new(sees))
    }

    pub fn waits<F>(sees: impl Fn(Request<()>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Intercepted> + Send + 'static,
    {
        Self::Waits(Arc::new(move |request| Box::pin(sees(request))))
    }
}
