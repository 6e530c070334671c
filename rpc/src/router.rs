//! The router: which handler each method of a server has.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::StreamExt;
use tower_service::Service;

use crate::codec::{Codec, encoded};
use crate::message::{Body, Request, Response, Streaming};
use crate::meters::Meters;
use crate::method::{Method, MethodId};
use crate::status::Status;

/// The result of a handler: a response with an encoded body, or a status.
pub type Answered = Result<Response<Body>, Status>;

/// The future that a handler returns.
pub type Answering = Pin<Box<dyn Future<Output = Answered> + Send>>;

/// A handler whose request and response types are erased.
pub type Handler = Arc<dyn Fn(Request<Body>) -> Answering + Send + Sync>;

/// A method and its handler.
#[derive(Clone)]
pub struct Route {
    pub method: MethodId,
    pub handler: Handler,
    pub meters: Meters,
    /// Whether the handler may run where its request was received, rather than as a task.
    pub inline: bool,
}

/// The methods of a server and their handlers, which are async functions or tower services.
///
/// The attribute [`service`](macro@crate::service) makes a router from the methods of a trait. A
/// router can also be made by hand:
///
/// ```
/// use doorbell::rpc::{Channel, Client, Method, Router, Server};
///
/// const GREET: Method<String, String> = Method::new("greeter/greet");
///
/// # #[tokio::main]
/// # async fn main() -> anyhow::Result<()> {
/// let greeter = Router::new().unary(GREET, |request| async move {
///     Ok(format!("Hello, {}!", request.into_inner()))
/// });
/// let server = Server::builder().add_service(greeter).open("udp:127.0.0.1:0").await?;
///
/// let client = Client::new(Channel::connect(server.name()).await?);
/// let greeting = client.unary(GREET, "Ann".to_owned()).await?.into_inner();
/// assert_eq!(greeting, "Hello, Ann!");
/// # Ok(())
/// # }
/// ```
///
/// A router is a tower service itself, which runs handlers in the task that calls them. Tests of
/// handlers, and services within one process, need no server for that.
///
/// ```
/// use doorbell::rpc::{Client, Method, Router, Status};
///
/// const DIVIDE: Method<(u64, u64), u64> = Method::new("calculator/divide");
#[derive(Clone, Default)]
pub struct Router {
    routes: Arc<HashMap<u64, Route>>,
}

impl Router {
    /// Makes a router without methods.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a method that takes one message and answers with one.
    ///
    /// # Panics
    /// When the router has the method already.
    #[must_use]
    #[track_caller]
    pub fn unary<A, R, C, F, O>(
        self,
        method: Method<A, R, C>,
        handler: impl Fn(Request<A>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        C: Codec<A> + Codec<R>,
        A: Send + 'static,
        R: Send + 'static,
        F: Future<Output = Result<O, Status>> + Send + 'static,
        O: Into<Response<R>>,
    {
        let handler = move |request: Request<Body>| -> Answering {
            match decoded::<A, C>(request) {
                Err(status) => Box::pin(async { Err(status) }),
                Ok(request) => {
                    let answer = handler(request);
                    Box::pin(async { whole::<R, C>(ran(answer.await)?.into()) })
                }
            }
        };
        self.put(method.id(), Arc::new(handler))
    }

    /// Adds a tower service as the handler of a method. The service handles bodies that are not
    /// decoded.
    ///
    /// Each request is handled by a clone of the service, as soon as the clone is ready. An error
    /// of the service becomes a status: the [`Status`] that caused the error, if one did.
    ///
    /// # Panics
    /// When the router has the method already.
    #[must_use]
    #[track_caller]
    pub fn service<S>(self, method: MethodId, service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        // Services need not be `Sync`.
        let service = Mutex::new(service);
        let handler = move |request| -> Answering {
            let mut service = service.lock().unwrap_or_else(PoisonError::into_inner).clone();
            Box::pin(async move {
                let ready = std::future::poll_fn(|context| service.poll_ready(context)).await;
                ready.map_err(|why| Status::from_error(why.into()))?;
                service.call(request).await.map_err(|why| Status::from_error(why.into()))
            })
        };
        self.put(method, Arc::new(handler))
    }

    /// Runs the handler of a method where its request is received, rather than as a task. That
    /// saves starting a task, and suits handlers that take microseconds and seldom wait. While the
    /// handler runs, the NIC and all other requests wait. A handler that does wait is moved to a
    /// task.
    ///
    /// # Panics
    /// When the router has no such method.
    #[must_use]
    #[track_caller]
    pub fn inline(mut self, method: impl Into<MethodId>) -> Self {
        let method = method.into();
        let route = Arc::make_mut(&mut self.routes).get_mut(&method.number());
        route
            .unwrap_or_else(|| panic!("the router has no method `{method}` to run inline"))
            .inline = true;
        self
    }

    /// Adds all methods of another router.
    ///
    /// # Panics
    /// When both routers have a method with the same path.
    #[must_use]
    #[track_caller]
    pub fn merge(mut self, other: Self) -> Self {
        for route in Arc::unwrap_or_clone(other.routes).into_values() {
            self = self.put_route(route);
        }
        self
    }

    /// The methods of the router, in no particular order.
    pub fn methods(&self) -> impl Iterator<Item = MethodId> {
        self.routes.values().map(|route| route.method)
    }

    #[track_caller]
    fn put(self, method: MethodId, handler: Handler) -> Self {
        let meters = Meters::of_server(method);
        self.put_route(Route { method, handler, meters, inline: false })
    }

    #[track_caller]
    fn put_route(mut self, route: Route) -> Self {
        let method = route.method;
        let before = Arc::make_mut(&mut self.routes).insert(method.number(), route);
        match before {
            None => self,
            Some(other) if other.method.path() == method.path() => {
                panic!("two handlers have the method `{method}`")
            }
            Some(other) => panic!(
                "the methods `{method}` and `{}` have paths of the same number: rename either",
                other.method
            ),
        }
    }

    /// The route of the method whose path has the number `number`.
    pub(crate) fn route(&self, number: u64) -> Option<&Route> {
        self.routes.get(&number)
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.methods().map(|method| method.path())).finish()
    }
}

impl Service<Request<Body>> for Router {
    type Response = Response<Body>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Status>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let method = request.method();
        match self.route(method.number()) {
            Some(route) if method.fits(&route.method) => (route.handler)(request),
            Some(route) => {
                let schema = route.method.schema_text();
                let asked = method.schema_text();
                let why = format!("{method} is called as `{asked}`, and the router has `{schema}`");
                Box::pin(async { Err(Status::failed_precondition(why)) })
            }
            None => {
                let why = format!("the router has no method {method}; it has {self:?}");
                Box::pin(async { Err(Status::unimplemented(why)) })
            }
        }
    }
}

impl<A, R, C> From<Method<A, R, C>> for MethodId {
    fn from(method: Method<A, R, C>) -> Self {
        method.id()
    }
}

/// The answer of a handler that has run. A status that the handler has from a call of its own says
/// nothing about the call that the handler works on.
fn ran<O>(answer: Result<O, Status>) -> Result<O, Status> {
    answer.map_err(Status::may_have_run)
}

/// Decodes the one message of a request.
fn decoded<A, C: Codec<A>>(request: Request<Body>) -> Result<Request<A>, Status> {
    let method = request.method();
    request.try_map(|body| decode::<A, C>(method, body.whole()?))
}

fn decode<A, C: Codec<A>>(method: MethodId, bytes: bytes::Bytes) -> Result<A, Status> {
    let len = bytes.len();
    C::decode(bytes).map_err(|why| {
        Status::invalid_argument(format!(
            "the body of {len} bytes that came for {method} is no {}: {why}",
            std::any::type_name::<A>()
        ))
    })
}

/// Encodes the one message of a response.
fn whole<R, C: Codec<R>>(response: Response<R>) -> Answered {
    response.try_map(|message| encoded::<R, C>(message).map(Body::Whole))
}

impl Router {
    /// Adds a method that takes one message and answers with a stream.
    ///
    /// # Panics
    /// When the router has the method already.
    #[must_use]
    #[track_caller]
    pub fn server_streaming<A, R, C, F, O>(
        self,
        method: Method<A, R, C>,
        handler: impl Fn(Request<A>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        C: Codec<A> + Codec<R>,
        A: Send + 'static,
        R: Send + 'static,
        F: Future<Output = Result<O, Status>> + Send + 'static,
        O: Into<Response<Streaming<R>>>,
    {
        let handler = move |request: Request<Body>| -> Answering {
            match decoded::<A, C>(request) {
                Err(status) => Box::pin(async { Err(status) }),
                Ok(request) => {
                    let answer = handler(request);
                    Box::pin(async { Ok(pieces::<R, C>(ran(answer.await)?.into())) })
                }
            }
        };
        self.put(method.id(), Arc::new(handler))
    }

    /// Adds a method that takes a stream and answers with one message.
    ///
    /// # Panics
    /// When the router has the method already.
    #[must_use]
    #[track_caller]
    pub fn client_streaming<A, R, C, F, O>(
        self,
        method: Method<A, R, C>,
        handler: impl Fn(Request<Streaming<A>>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        C: Codec<A> + Codec<R>,
        A: Send + 'static,
        R: Send + 'static,
        F: Future<Output = Result<O, Status>> + Send + 'static,
        O: Into<Response<R>>,
    {
        let handler = move |request: Request<Body>| -> Answering {
            let answer = handler(streamed::<A, C>(request));
            Box::pin(async { whole::<R, C>(ran(answer.await)?.into()) })
        };
        self.put(method.id(), Arc::new(handler))
    }

    /// Adds a method that takes a stream and answers with a stream.
    ///
    /// # Panics
    /// When the router has the method already.
    #[must_use]
    #[track_caller]
    pub fn streaming<A, R, C, F, O>(
        self,
        method: Method<A, R, C>,
        handler: impl Fn(Request<Streaming<A>>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        C: Codec<A> + Codec<R>,
        A: Send + 'static,
        R: Send + 'static,
        F: Future<Output = Result<O, Status>> + Send + 'static,
        O: Into<Response<Streaming<R>>>,
    {
        let handler = move |request: Request<Body>| -> Answering {
            let answer = handler(streamed::<A, C>(request));
            Box::pin(async { Ok(pieces::<R, C>(ran(answer.await)?.into())) })
        };
        self.put(method.id(), Arc::new(handler))
    }
}

/// Decodes the messages of a request that is a stream, one by one as they are read.
fn streamed<A: Send + 'static, C: Codec<A>>(request: Request<Body>) -> Request<Streaming<A>> {
    let method = request.method();
    request
        .map(|body| Streaming::new(body.pieces().map(move |piece| decode::<A, C>(method, piece?))))
}

/// Encodes the messages of a response that is a stream, one by one as they are sent.
fn pieces<R: Send + 'static, C: Codec<R>>(response: Response<Streaming<R>>) -> Response<Body> {
    response.map(|messages| Body::stream(messages.map(|message| encoded::<R, C>(message?))))
}
